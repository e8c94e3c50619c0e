//! The one store that is asked, which replication carries along: each other would have leaders and marks of
//! its own.

use crate::alone;
use crate::connect::{CONNECTION_TIME_MAX, Dialled, Target};
use crate::fault::{Deed, code, ends_connection};
use crate::id::Id;
use crate::keys::Keys;
use crate::not_greeted::silent;
use crate::script::{Arguments, STORE};
use crate::site::Site;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::{Durability, Fault, Finding, StoreError};
use tenure_remote::findings::{good, unknown, warning};

/// The field of the id.
const FIELD_ID: &str = "id";

pub(crate) const WAY_OUT: &str = "have the Redis URL lead to one server alone, and its replicas";

/// The id of the store that was met first. All connections of a store or a fence share it.
#[derive(Default)]
pub(crate) struct OneStore {
    id: OnceLock<Id>,
    /// What a confirmed write was worth there, when it was connected to.
    durability: OnceLock<Durability>,
    /// The user may not have an id kept there.
    is_refused: AtomicBool,
}

/// What a server keeps, as it has said when it was dialled.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// The id of its store.
    store: Result<(Option<String>,), RedisError>,
    /// The members of its quorum, and whether all of them keep that.
    pub(crate) quorum: Result<(Option<String>, Option<String>), RedisError>,
}

impl Default for Greeting {
    fn default() -> Self {
        Self {
            store: Ok((None,)),
            quorum: Ok((None, None)),
        }
    }
}

/// What a server is by what it keeps of its store.
enum Kind {
    /// Of ours, or nobody knows any yet.
    Ours,
    /// It keeps nothing, and ours may have forgotten everything.
    Emptied(Id),
}

impl OneStore {
    /// It is known what a confirmed write is worth there.
    pub(crate) fn is_worth(&self, durability: Durability) {
        self.durability.get_or_init(|| durability);
    }

    /// Whether that is known.
    pub(crate) fn is_assessed(&self) -> bool {
        self.durability.get().is_some()
    }

    /// Whether it is known which one it is.
    pub(crate) fn is_known(&self) -> bool {
        self.id.get().is_some()
    }

    /// Whether a server may be asked, by the id that it keeps: which is ours from the first on that does. Why
    /// not, otherwise.
    fn judge(&self, host: &str, kept: Option<Id>) -> Result<Kind, String> {
        let ours = match &kept {
            Some(theirs) => Some(self.id.get_or_init(|| theirs.clone())),
            None => self.id.get(),
        };
        let Some(ours) = ours.filter(|ours| kept.as_ref() != Some(ours)) else {
            return Ok(Kind::Ours);
        };
        // What keeps each write does not come back empty.
        if kept.is_none() && self.durability.get() != Some(&Durability::Safe) {
            return Ok(Kind::Emptied(ours.clone()));
        }
        let theirs = kept.map_or_else(|| "of none".to_owned(), |theirs| format!("of store {theirs}"));
        Err(format!(
            "{host} is {theirs}, and whoever was connected to first is of store {ours}: each would have a leader of its own; \
             {WAY_OUT}, and start this process anew if its data were removed or put back"
        ))
    }
}

impl Target {
    /// Lets a server in that is of the store that was met first. Nobody is asked before one is known.
    ///
    /// # Errors
    /// [`Fault::AnotherStore`], and if it does not answer. Not applied.
    pub(crate) async fn recognise(&self, dialled: &mut Dialled) -> Result<(), StoreError> {
        let kept = match self.kept_id(dialled) {
            // Where it may do all else, it is warned before its first write.
            Err(error) if error.fault == Fault::Forbidden && !self.store.is_known() => return Ok(()),
            kept => kept?,
        };
        let is_known = kept.is_some();
        match self.judged(kept, dialled)? {
            Kind::Ours => dialled.is_recognised(is_known),
            Kind::Emptied(ours) => {
                self.remind(&ours, dialled).await?;
                dialled.is_recognised(true);
            }
        }
        Ok(())
    }

    /// What a server that was just dialled keeps of its store and of its quorum, asked beside its greeting. A
    /// member of a quorum is asked by itself, when that is known of it.
    pub(crate) async fn greeting(&self, connection: MultiplexedConnection) -> Greeting {
        if self.admission.is_some() {
            return Greeting::default();
        }
        let (mut asked, mut beside) = (connection.clone(), connection);
        let (store, quorum) = (look(&self.keys), alone::look(&self.keys));
        let (store, quorum) = tokio::join!(store.query_async(&mut asked), quorum.query_async(&mut beside));
        Greeting { store, quorum }
    }

    /// The id that a server keeps that was just dialled.
    pub(crate) fn kept_id(&self, dialled: &Dialled) -> Result<Option<Id>, StoreError> {
        match &dialled.greeting.store {
            Ok(kept) => self.read(kept, dialled),
            Err(error) => Err(self.failed(error, &dialled.host)),
        }
    }

    /// Gives a server its id back that has forgotten everything: else whoever knows it could not go on there.
    async fn remind(&self, ours: &Id, dialled: &mut Dialled) -> Result<(), StoreError> {
        tracing::warn!(
            host = %dialled.host,
            store = %ours,
            "the server keeps nothing of its store any more; it is taken for the same, as it does not keep all that it confirms"
        );
        match self.told(give(&self.keys, ours), dialled).await? {
            Ok(kept) => {
                let kept = self.read(&kept, dialled)?;
                self.judged(kept, dialled).map(drop)
            }
            Err(error) if ends_connection(&error) => Err(self.failed(&error, &dialled.host)),
            Err(error) => {
                tracing::debug!(host = %dialled.host, %error, "the server was not given its id back");
                Ok(())
            }
        }
    }

    fn judged(&self, kept: Option<Id>, dialled: &Dialled) -> Result<Kind, StoreError> {
        let judged = self.store.judge(&dialled.host.to_string(), kept);
        judged.map_err(|why| StoreError::not_applied(Fault::AnotherStore, why))
    }

    /// The id, if there is one.
    fn read(&self, (kept,): &(Option<String>,), dialled: &Dialled) -> Result<Option<Id>, StoreError> {
        let Some(text) = kept else { return Ok(None) };
        let unreadable = || {
            StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "{}: what key \"{}\" says of the store cannot be read; end all that use it, and remove the key",
                    dialled.host,
                    self.keys.store().escape_debug()
                ),
            )
        };
        Id::read(text).map(Some).ok_or_else(unreadable)
    }

    /// What a server that was just dialled says.
    pub(crate) async fn told<T: FromRedisValue>(
        &self,
        command: Cmd,
        dialled: &mut Dialled,
    ) -> Result<Result<T, RedisError>, StoreError> {
        let asking = command.query_async::<T>(&mut dialled.connection);
        let told = tokio::time::timeout(CONNECTION_TIME_MAX, asking).await;
        told.map_err(|_late| silent(&dialled.host))
    }
}

impl Site {
    /// Before the first write: the store has an id, by which whoever connects tells it from others.
    ///
    /// # Errors
    /// Not applied: [`Fault::AnotherStore`], or the server does not answer.
    pub(crate) async fn identify(&self) -> Result<(), StoreError> {
        let store = &self.target.store;
        let is_done = store.is_known() || store.is_refused.load(Ordering::Relaxed);
        if is_done || self.target.admission.is_some() {
            return Ok(());
        }
        self.in_time(Deed::Read, "connecting", self.give_id()).await
    }

    /// Asks what the server keeps of what it confirms, and whether there is no other in its place.
    ///
    /// # Errors
    /// As [`assess`](Self::assess) and [`refuse_division`](Self::refuse_division).
    pub(crate) async fn meet(&self) -> Result<Durability, StoreError> {
        let meeting = async {
            let (durability, _) = self.assess().await?;
            self.refuse_division().await?;
            Ok(durability)
        };
        let durability = self.in_time(Deed::Read, "connecting", meeting).await?;
        self.target.store.is_worth(durability);
        Ok(durability)
    }

    /// Before anything that a fence asks, which is assessed by no one else.
    ///
    /// # Errors
    /// As [`identify`](Self::identify).
    pub(crate) async fn is_ready(&self, deed: Deed) -> Result<(), StoreError> {
        let store = &self.target.store;
        if !store.is_assessed() {
            self.meet().await?;
        }
        match deed {
            Deed::Read => Ok(()),
            Deed::Write => self.identify().await,
        }
    }

    async fn give_id(&self) -> Result<(), StoreError> {
        let open = self.requests.open().await?;
        let dialled = &open.connection;
        // It may have told one by now.
        if self.target.store.is_known() {
            return Ok(());
        }
        let answer = self.requests.ask(&open, give(&self.keys, &Id::any())).await;
        match answer.and_then(|answer| Ok(redis::from_redis_value::<(Option<String>,)>(answer)?)) {
            Ok(kept) => {
                let kept = self.target.read(&kept, dialled)?;
                self.target.judged(kept, dialled)?;
                dialled.is_recognised(true);
                Ok(())
            }
            Err(error) if ends_connection(&error) => Err(self.target.failed(&error, &dialled.host)),
            // What is to be written next says what is wrong, if it is refused as well.
            Err(error) => {
                let is_lasting = code(&error) == Some("NOPERM");
                let was_told = self
                    .target
                    .store
                    .is_refused
                    .fetch_or(is_lasting, Ordering::Relaxed);
                if is_lasting && !was_told {
                    tracing::warn!(
                        host = %dialled.host,
                        %error,
                        "the user may not have the server keep which store it is: another one at this address would not be noticed"
                    );
                } else {
                    tracing::debug!(host = %dialled.host, %error, "the server keeps no id of its store");
                }
                Ok(())
            }
        }
    }

    /// Which store the server is of.
    pub(crate) async fn which_store(&self) -> Finding {
        let asking = self.requests.look(look(&self.keys), "its store", &self.place);
        let told = match self.in_time(Deed::Read, "its store", asking).await {
            Ok(told) => redis::from_redis_value::<(Option<String>,)>(told),
            Err(error) if error.fault == Fault::Forbidden => {
                return warning(
                    "store",
                    "the user may not ask which one it is: another server at this address would not be noticed",
                    "grant the rights in the README of tenure-redis",
                );
            }
            Err(error) => return unknown("store", &error),
        };
        match told {
            Ok((Some(id),)) => good("store", format!("{id}, by which another server would be noticed")),
            Ok((None,)) | Err(_) => good(
                "store",
                "has no id yet; whoever takes the first lease gives it one",
            ),
        }
    }
}

/// Asks which store it is.
fn look(keys: &Keys) -> Cmd {
    let mut look = redis::cmd("HMGET");
    look.arg(keys.store()).arg(FIELD_ID);
    look
}

/// Has it be this one, if it has no id.
fn give(keys: &Keys, id: &Id) -> Cmd {
    Arguments::on([keys.store()]).with(id).by_text(&STORE)
}

#[cfg(test)]
mod tests {
    use super::{Id, Kind, OneStore};
    use tenure_core::Durability;

    #[test]
    fn first_id_is_ours_and_no_other() {
        let (store, ours) = (OneStore::default(), Id::any());
        assert!(matches!(store.judge("a", None), Ok(Kind::Ours)));
        for _time in 0..2 {
            assert!(matches!(store.judge("a", Some(ours.clone())), Ok(Kind::Ours)));
        }
        assert!(store.judge("b", Some(Id::any())).is_err());
        assert!(matches!(store.judge("a", Some(ours)), Ok(Kind::Ours)));
    }

    #[test]
    fn only_what_may_forget_comes_back_with_nothing() {
        for (durability, is_ours) in [
            (None, true),
            (Some(Durability::FenceOnly("it is a cache")), true),
            (Some(Durability::Safe), false),
        ] {
            let store = OneStore::default();
            let _ours = store.judge("a", Some(Id::any()));
            durability
                .into_iter()
                .for_each(|durability| store.is_worth(durability));
            assert_eq!(store.judge("a", None).is_ok(), is_ours, "{durability:?}");
        }
    }
}
