//! Ending what a killed predecessor has left open.
//!
//! A transaction outlives the process that began it: the server keeps it, and every document that it has
//! written, the fence's mark among them, for a minute (`transactionLifetimeLimitSeconds`). The claim of the
//! next term would wait so long. So each term notes its session, and the next one ends it: before each of its
//! claims, as the predecessor may begin a transaction until one has succeeded.

use crate::ledger::LedgerError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::{ClientSession, Database};
use tenure::FencingToken;

/// Notes and answers with a session for this term.
pub async fn begin(database: &Database, token: FencingToken) -> Result<ClientSession, LedgerError> {
    let session = database.client().start_session().await?;
    let note = doc! { "_id": token.signed(), "session": session.id() };
    // Also where this was asked before, and the answer did not come in time: that session has begun nothing.
    let this = doc! { "_id": token.signed() };
    let noted = database.collection::<Document>(SESSION);
    noted.replace_one(this, note).upsert(true).await?;
    Ok(session)
}

/// Ends the sessions of terms before this one, and answers with their notes, to be [forgotten](forget) when
/// this term has claimed.
///
/// A term that is not the latest can do no harm by it: it ends only sessions of terms before its own, and a
/// transaction that is ended was not committed.
pub async fn end_earlier(database: &Database, token: FencingToken) -> Result<Vec<Bson>, LedgerError> {
    let noted = database.collection::<Document>(SESSION);
    let mut earlier = noted.find(doc! { "_id": { "$lt": token.signed() } }).await?;
    let (mut notes, mut sessions) = (Vec::new(), Vec::new());
    while earlier.advance().await? {
        let mut note = earlier.deserialize_current()?;
        notes.extend(note.remove("_id"));
        sessions.extend(note.remove("session"));
    }
    if !sessions.is_empty() {
        let kill = doc! { "killSessions": Bson::Array(sessions) };
        database.client().database("admin").run_command(kill).await?;
    }
    Ok(notes)
}

/// Forgets these notes, and none that was made since.
pub async fn forget(database: &Database, notes: &[Bson]) -> Result<(), LedgerError> {
    if !notes.is_empty() {
        let noted = database.collection::<Document>(SESSION);
        noted.delete_many(doc! { "_id": { "$in": notes } }).await?;
    }
    Ok(())
}

const SESSION: &str = "session";
