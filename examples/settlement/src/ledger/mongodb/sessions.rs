//! Ending what a killed predecessor has left open.
//!
//! A transaction outlives the process that began it: the server keeps it, and every document that it has
//! written, the fence's mark among them, for a minute (`transactionLifetimeLimitSeconds`). The claim of the
//! next term would wait so long. So each term notes its session, and the next one ends it.

use crate::ledger::LedgerError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::{ClientSession, Database};
use tenure::FencingToken;

/// Ends the sessions of earlier terms, and notes and answers with one for this term.
///
/// A term that is not the latest can do no harm by it: it ends only sessions of terms before its own, and a
/// transaction that is ended was not committed.
pub async fn succeed(database: &Database, token: FencingToken) -> Result<ClientSession, LedgerError> {
    let noted = database.collection::<Document>(SESSION);
    let earlier = doc! { "_id": { "$lt": token.signed() } };
    let mut former = noted.find(earlier.clone()).await?;
    let mut ids = Vec::new();
    while former.advance().await? {
        ids.extend(former.deserialize_current()?.remove("session"));
    }
    if !ids.is_empty() {
        let kill = doc! { "killSessions": Bson::Array(ids) };
        database.client().database("admin").run_command(kill).await?;
        noted.delete_many(earlier).await?;
    }
    let session = database.client().start_session().await?;
    let note = doc! { "_id": token.signed(), "session": session.id() };
    // Also where this was asked before, and the answer did not come in time: that session has begun nothing.
    let this = doc! { "_id": token.signed() };
    noted.replace_one(this, note).upsert(true).await?;
    Ok(session)
}

const SESSION: &str = "session";
