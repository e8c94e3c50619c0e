//! Which store it is: a document beside the leases that says so, and of what its server was a member when it
//! was written.
//!
//! A command cannot look at it together with a lease, and the driver has no place in which to ask a new
//! connection. But it tells of each: after one, the next requests look, before what they ask and before their
//! answer is believed. So they do where a record is gone: the mark may be gone with it.

use crate::fault::{DUPLICATE_KEY, Deed, after_a_step, line, server_code};
use crate::heard::Heard;
use crate::site::{Site, Topology};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::{Collection, error};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenure_core::{Fault, StoreError};

/// How long a server may take for one look, beside the request that it is for.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// What errors are about.
pub(crate) const SUBJECT: &str = "the mark of the store";

const WAY_OUT: &str = "start this process anew, and all that were connected before, if the store was restored, moved or made anew; else see \
                       where its address leads";

/// The key of the mark: no lease's, as that is a text.
pub(crate) fn key() -> Document {
    doc! { "tenure": "store" }
}

/// More doubts than there ever are: of a client by which nobody has looked yet.
const NONE_CONFIRMED: u64 = u64::MAX;

/// The store that was met first, and what one client knows of who answers it.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    met: Arc<Met>,
    /// How many doubts there were at the last look that found it.
    confirmed: AtomicU64,
    heard: Arc<Heard>,
}

/// The store that was met first, by whichever client.
#[derive(Debug, Default)]
struct Met {
    id: OnceLock<ObjectId>,
    /// Whether nothing is to be written any more.
    is_marked: AtomicBool,
    /// How often something spoke against it.
    signs: AtomicU64,
}

/// Whose term an answer tells of.
pub(crate) enum Whose {
    /// The one that was asked for.
    Ours,
    Anothers,
    /// There is no record.
    Nobodys,
}

/// What the document says.
pub(crate) struct Mark {
    pub(crate) id: ObjectId,
    /// Whose member its server was, if of any.
    pub(crate) of: Option<String>,
}

/// Reads it, as a majority has confirmed it.
pub(crate) async fn mark(leases: &Collection<Document>) -> error::Result<Option<Mark>> {
    let found = leases
        .find_one(doc! { "_id": key() })
        .max_time(LOOK_TIME_MAX)
        .await?;
    Ok(found.and_then(|found| {
        Some(Mark {
            id: found.get_object_id("id").ok()?,
            of: found.get_str("of").ok().map(line),
        })
    }))
}

impl Identity {
    /// By what connecting has found. A client of the user's own tells of no connection.
    pub(crate) fn new(heard: Option<Arc<Heard>>) -> Self {
        let heard = heard.unwrap_or_default();
        Self {
            confirmed: AtomicU64::new(heard.connections()),
            heard,
            ..Self::default()
        }
    }

    /// The same store, of which another client has asked nobody yet.
    pub(crate) fn of_another_client(&self, heard: Arc<Heard>) -> Self {
        Self {
            met: Arc::clone(&self.met),
            confirmed: AtomicU64::new(NONE_CONFIRMED),
            heard,
        }
    }

    /// Whether there is a connection since the last look, or none any more, or something spoke against it.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.confirmed.load(Ordering::SeqCst) != self.doubts()
    }

    fn doubts(&self) -> u64 {
        self.heard.connections() + self.met.signs.load(Ordering::SeqCst)
    }

    /// Puts it in doubt to every client: a record that was there is gone, or the whole collection, or one
    /// client has found another store. Where the mark is gone, whoever learned that at a new connection only
    /// would lead until the next fail-over, and never again.
    pub(crate) fn doubt(&self) {
        self.met.signs.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether what was found is the mark of the store that was met first, which is known from the first one
    /// on.
    fn compare(&self, found: Option<&Mark>) -> Result<(), String> {
        let theirs = found.map(|mark| mark.id);
        let ours = match theirs {
            Some(theirs) => self.met.id.get_or_init(|| theirs),
            None => match self.met.id.get() {
                Some(ours) => ours,
                None => return Ok(()),
            },
        };
        match theirs {
            Some(theirs) if theirs == *ours => Ok(()),
            Some(theirs) => Err(format!(
                "another store answers: it is {theirs}, and the one that was connected to first is {ours}"
            )),
            None => Err(format!(
                "another store answers: it has no mark, and the one that was connected to first is {ours}"
            )),
        }
    }
}

impl Site {
    /// Does this at the store that was met first: it is looked for before and afterwards, where there is a
    /// new connection since.
    ///
    /// # Errors
    /// [`Fault::AnotherStore`]; after a write it may have been applied there.
    pub(crate) async fn at_ours<T>(
        &self,
        deed: Deed,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.is_ours().await?;
        let answer = work.await?;
        self.is_ours().await.map_err(|error| match deed {
            Deed::Read => error,
            Deed::Write => after_a_step(error),
        })?;
        Ok(answer)
    }

    /// The same of a batch of renewals or releases. Only where they find no term of ours may they have come
    /// to another store, or to what is left of this one.
    pub(crate) async fn all_at_ours<T>(
        &self,
        count: usize,
        work: impl Future<Output = Vec<Result<T, StoreError>>>,
        whose: impl Fn(&T) -> Whose,
    ) -> Vec<Result<T, StoreError>> {
        if let Err(error) = self.is_ours().await {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let mut answers = work.await;
        if answers
            .iter()
            .flatten()
            .any(|answer| matches!(whose(answer), Whose::Nobodys))
        {
            self.identity.doubt();
        }
        let is_doubtful = |answer: &Result<T, StoreError>| {
            let whose = answer.as_ref().map(&whose);
            matches!(whose, Ok(Whose::Anothers | Whose::Nobodys))
        };
        if answers.iter().any(is_doubtful)
            && let Err(error) = self.is_ours().await
        {
            for answer in answers.iter_mut().filter(|answer| is_doubtful(answer)) {
                *answer = Err(after_a_step(error.clone()));
            }
        }
        answers
    }

    /// Whether who answers is the store that was met first, where that is in doubt.
    pub(crate) async fn is_ours(&self) -> Result<(), StoreError> {
        if let Some(primary) = self.identity.heard.outdated() {
            return Err(self.another(&format!(
                "the primary {primary} has its set as of an earlier time than was met before"
            )));
        }
        match self.identity.is_in_doubt() {
            true => self.look().await,
            false => Ok(()),
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let doubts = self.identity.doubts();
        let looking = mark(&self.leases);
        // Longer than the driver looks for a primary: why it finds none shall be told.
        let found = self.within(Deed::Read, SUBJECT, looking).await?;
        if let Err(why) = self.identity.compare(found.as_ref()) {
            self.identity.doubt();
            return Err(self.another(&why));
        }
        self.identity.confirmed.store(doubts, Ordering::SeqCst);
        Ok(())
    }

    fn another(&self, why: &str) -> StoreError {
        StoreError::not_applied(Fault::AnotherStore, format!("{}: {why}; {WAY_OUT}", self.place))
    }

    /// Takes what connecting has found for the store that is meant.
    pub(crate) fn meets(&self, found: Option<&Mark>) {
        let is_alone = self.topology == Topology::Standalone;
        let is_marked = found.is_some_and(|mark| is_alone || mark.of.is_some());
        self.identity.met.is_marked.store(is_marked, Ordering::SeqCst);
        // The first one.
        let _same = self.identity.compare(found);
    }

    /// Makes the mark before the first lease is taken, where there is none, or where it does not say of what
    /// the server is a member. Where the collection takes none, leases do without it.
    pub(crate) async fn identify(&self) -> Result<(), StoreError> {
        if self.identity.met.is_marked.load(Ordering::SeqCst) {
            return Ok(());
        }
        let mut update = doc! { "$setOnInsert": { "id": ObjectId::new() } };
        if let Some(of) = self.topology.name() {
            update.insert("$set", doc! { "of": of });
        }
        let write = self.leases.update_one(doc! { "_id": key() }, update).upsert(true);
        let written = async {
            match write.await {
                // Somebody else has made it meanwhile.
                Err(error) if server_code(&error) == Some(DUPLICATE_KEY) => Ok(()),
                written => written.map(drop),
            }
        };
        match self.within(Deed::Write, SUBJECT, written).await {
            Ok(()) => self.look().await?,
            Err(error) if error.fault.is_misconfiguration() => {
                // Told once a process.
                tracing::warn!(
                    place = %self.place,
                    %error,
                    "the collection takes no mark, so the store cannot be told from another at its address"
                );
            }
            // Of the lease nothing was changed.
            Err(error) => return Err(StoreError::not_applied(error.fault, error.message)),
        }
        self.identity.met.is_marked.store(true, Ordering::SeqCst);
        Ok(())
    }
}
