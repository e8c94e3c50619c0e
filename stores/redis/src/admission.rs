//! Asking a server, on each new connection, which store it is of, or which member of the quorum it is.

use crate::alone::Quorate;
use crate::connect::{CONNECTION_TIME_MAX, Dialled, Target};
use crate::fault::ends_connection;
use crate::keys::Keys;
use crate::membership::{Entry, FIELD_COMPLETE, FIELD_ID, FIELD_ROSTER, Kept, Membership};
use crate::not_greeted::silent;
use crate::script::{Arguments, MEMBERSHIP};
use redis::{Cmd, RedisError};
use std::sync::Arc;
use tenure_core::StoreError;

/// How often a server is asked again that has meanwhile kept what somebody else told it.
const ROUNDS_MAX: usize = 3;

/// The place of a server in a quorum.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) membership: Arc<Membership>,
    pub(crate) place: usize,
}

impl Target {
    /// The same server, if it is let in: another one may be, of those that there are.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub(crate) async fn admitted(&self, mut dialled: Dialled) -> Result<Dialled, StoreError> {
        Box::pin(self.admit(&mut dialled)).await?;
        Ok(dialled)
    }

    /// Lets a server in that is of the store, or the member, that it should be. One that is to keep who it
    /// is, and may not be told by this user, or as who only looks, is let in all the same.
    ///
    /// # Errors
    /// As [`Membership::admit`], and if it does not answer.
    async fn admit(&self, dialled: &mut Dialled) -> Result<(), StoreError> {
        let Some(Admission { membership, place }) = &self.admission else {
            self.recognise(dialled).await?;
            dialled.quorate = Quorate::told(&dialled.greeting);
            return Ok(());
        };
        dialled.is_recognised(true);
        // Nothing that stands there keeps anybody from recording the members anew.
        if membership.lets_all_in() {
            return Ok(());
        }
        let look = look(&self.keys);
        let failed = |error: &RedisError, dialled: &Dialled| self.failed(error, &dialled.host);
        let mut kept = match asked(&look, dialled).await? {
            Ok(kept) => kept,
            Err(error) => return Err(failed(&error, dialled)),
        };
        for _round in 0..ROUNDS_MAX {
            let Some(entry) = membership.admit(*place, kept)? else {
                break;
            };
            if !membership.records() {
                break;
            }
            kept = match asked(&keep(&self.keys, &entry).by_text(&MEMBERSHIP), dialled).await? {
                Ok(kept) => kept,
                Err(error) if ends_connection(&error) => return Err(failed(&error, dialled)),
                Err(error) => {
                    tracing::debug!(host = %dialled.host, %error, "the server keeps nothing of its quorum");
                    break;
                }
            };
        }
        Ok(())
    }
}

/// Asks what a server keeps.
pub(crate) fn look(keys: &Keys) -> Cmd {
    let mut look = redis::cmd("HMGET");
    look.arg(keys.membership())
        .arg(FIELD_ID)
        .arg(FIELD_ROSTER)
        .arg(FIELD_COMPLETE);
    look
}

/// What a server is told to keep, if it keeps nothing of the kind.
pub(crate) fn keep(keys: &Keys, entry: &Entry) -> Arguments {
    let roster = entry
        .roster
        .as_ref()
        .map_or_else(String::new, ToString::to_string);
    let arguments = Arguments::on([keys.membership()]).with(&entry.id).with(roster);
    arguments.with(u8::from(entry.complete))
}

/// What the server keeps, by its answer to either command.
async fn asked(command: &Cmd, dialled: &mut Dialled) -> Result<Result<Kept, RedisError>, StoreError> {
    let asking =
        command.query_async::<(Option<String>, Option<String>, Option<String>)>(&mut dialled.connection);
    match tokio::time::timeout(CONNECTION_TIME_MAX, asking).await {
        Ok(Ok((id, roster, complete))) => {
            Kept::read(id.as_deref(), roster.as_deref(), complete.as_deref()).map(Ok)
        }
        Ok(Err(error)) => Ok(Err(error)),
        Err(_late) => Err(silent(&dialled.host)),
    }
}
