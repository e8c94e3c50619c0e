//! Watching by a change stream: the server pushes, in the order of its log, what a majority has confirmed.

use crate::database::is_internal;
use crate::fault::{Deed, timed_out};
use crate::list::prefix_range;
use crate::site::{Site, Topology};
use mongodb::bson::{Bson, Document, doc};
use mongodb::change_stream::ChangeStream;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Fault, FencingToken, LeaseName, Scope, StoreError, WatchEvent};
use tenure_remote::{OwnThread, ReadWatch, Told};
use tokio::sync::mpsc;

/// Watches of one store at a time. Each keeps one of the client's connections busy, and renewals need some.
pub(crate) const WATCHES_MAX: usize = 64;

/// How long the server waits for something to tell before it says that there is nothing.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// Opens the stream; answers when the server has, so that every later change is in it.
pub(crate) async fn open(site: Arc<Site>, thread: &OwnThread, scope: Scope) -> Result<ReadWatch, StoreError> {
    if let Some(Unwatchable { what, way_out }) = site.unwatchable() {
        return Err(StoreError::not_applied(
            Fault::Unsupported,
            format!(
                "{}: {what} has no change streams; wait by the remaining time, or {way_out}",
                site.place
            ),
        ));
    }
    let permit = site.watches.take(&site.place)?;
    let place = site.place.clone();
    let opened = Arc::clone(&site);
    let stream = thread
        .run(async move { opened.at_ours(Deed::Read, opened.open_stream(&scope)).await })
        .await??;
    Ok(ReadWatch::start(thread, permit, place, |events| {
        read(site, stream, events)
    }))
}

/// Why nothing here can be watched.
pub(crate) struct Unwatchable {
    /// What has no change streams.
    pub(crate) what: &'static str,
    pub(crate) way_out: &'static str,
}

impl Site {
    /// `None` where the collection can be watched.
    pub(crate) fn unwatchable(&self) -> Option<Unwatchable> {
        if self.topology == Topology::Standalone {
            return Some(Unwatchable {
                what: "a standalone server",
                way_out: "make it a replica set: start it with --replSet rs, then rs.initiate(), then start the processes anew",
            });
        }
        is_internal(self.database.name()).then_some(Unwatchable {
            what: "a database of the server's own",
            way_out: "name another database than admin or config",
        })
    }

    /// Warns whoever has taken the database that knows the users for that of the leases.
    pub(crate) fn warn_if_internal(&self) {
        if is_internal(self.database.name()) {
            tracing::warn!(
                place = %self.place,
                "the database is the server's own and has no change streams, so candidates wait for the remaining time, and no \
                 transactions, so none can enter a fence there; name another one"
            );
        }
    }

    /// Opens the stream; answers when the server has.
    pub(crate) async fn open_stream(&self, scope: &Scope) -> Result<ChangeStream<Document>, StoreError> {
        let request = self
            .leases
            .watch()
            .pipeline(pipeline(scope))
            .max_await_time(QUIET_MAX)
            .read_concern(mongodb::options::ReadConcern::majority());
        let stream = self
            .within(Deed::Read, "the watch", request.into_future())
            .await?;
        Ok(stream.with_type::<Document>())
    }
}

/// Only what somebody waits for, and only as much of it as tells name, change and term. Renewals change none
/// of these fields, and records of other programs lack them.
fn pipeline(scope: &Scope) -> [Document; 2] {
    let watched = match scope {
        Scope::Name(name) => doc! { "documentKey._id": name.as_str() },
        Scope::Prefix(prefix) => doc! { "documentKey._id": prefix_range(prefix) },
    };
    let updated =
        |field: &str| doc! { format!("updateDescription.updatedFields.{field}"): { "$exists": true } };
    [
        doc! { "$match": { "$or": [
            // What concerns the whole collection ends the watch.
            { "operationType": { "$nin": ["insert", "replace", "update", "delete"] } },
            { "$and": [watched, { "$or": [
                { "operationType": "delete" },
                { "operationType": { "$in": ["insert", "replace"] }, "fullDocument.generation": { "$exists": true } },
                updated("generation"),
                updated("released.generation"),
                updated("stepDownAsked.generation"),
            ] }] },
        ] } },
        doc! { "$project": {
            "operationType": 1,
            "documentKey": 1,
            "fullDocument.generation": 1,
            "fullDocument.released": 1,
            "fullDocument.stepDownAsked": 1,
            "updateDescription.updatedFields.generation": 1,
            "updateDescription.updatedFields.released": 1,
            "updateDescription.updatedFields.stepDownAsked": 1,
        } },
    ]
}

/// Hands on events until the stream or the reader's interest ends.
async fn read(site: Arc<Site>, mut stream: ChangeStream<Document>, events: mpsc::Sender<Told>) {
    let silence_max = QUIET_MAX + site.time_max;
    loop {
        let event = tokio::select! {
            () = events.closed() => return,
            event = tokio::time::timeout(silence_max, stream.next_if_any()) => event,
        };
        let event = match event {
            Ok(Ok(Some(document))) if concerns_the_collection(&document) => Err(over(&site).await),
            Ok(Ok(Some(document))) => match translate(&document) {
                Some(told) => Ok(told),
                None => continue,
            },
            Ok(Ok(None)) if stream.is_alive() => match site.is_ours().await {
                Ok(()) => continue,
                Err(another) => Err(another),
            },
            Ok(Ok(None)) => Err(over(&site).await),
            Ok(Err(error)) => Err(site.error(&error, Deed::Read, "the watch")),
            Err(_late) => Err(timed_out(Deed::Read, "the watch", &site.place, silence_max)),
        };
        // The driver goes on with a stream by itself over a new connection, whoever answers it there.
        let event = match event {
            Ok(told) => site.is_ours().await.map(|()| told),
            over => over,
        };
        let ended = event.is_err();
        if events.send(event).await.is_err() || ended {
            return;
        }
    }
}

/// Whether it was dropped or renamed, or its database was.
fn concerns_the_collection(event: &Document) -> bool {
    !matches!(
        event.get_str("operationType"),
        Ok("insert" | "replace" | "update" | "delete")
    )
}

/// One event of a record; `None` if it is about what no lease is called. What cannot be told apart is a gap:
/// the reader looks for itself.
fn translate(event: &Document) -> Option<WatchEvent> {
    let name = event
        .get_document("documentKey")
        .and_then(|key| key.get_str("_id"))
        .ok()
        .and_then(|name| LeaseName::new(name).ok())?;
    let part = match event.get_str("operationType") {
        Ok("delete") => {
            return Some(WatchEvent::Changed {
                name,
                change: Change::Vacated,
                token: None,
            });
        }
        Ok("update") => event
            .get_document("updateDescription")
            .and_then(|delta| delta.get_document("updatedFields")),
        _ => event.get_document("fullDocument"),
    };
    let told = part.ok().and_then(change);
    Some(
        told.map_or(WatchEvent::Gap, |(change, token)| WatchEvent::Changed {
            name,
            change,
            token: Some(token),
        }),
    )
}

/// What the changed fields, or the whole record, say. A release comes first: a whole record still has the
/// generation of the term that was released.
fn change(fields: &Document) -> Option<(Change, FencingToken)> {
    let marked = |field: &str| {
        fields
            .get_document(field)
            .ok()
            .and_then(|mark| token(mark.get("generation")))
    };
    if let Some(token) = marked("released") {
        Some((Change::Vacated, token))
    } else if let Some(token) = marked("stepDownAsked") {
        Some((Change::Asked, token))
    } else {
        token(fields.get("generation")).map(|token| (Change::Taken, token))
    }
}

fn token(value: Option<&Bson>) -> Option<FencingToken> {
    FencingToken::from_signed(value?.as_i64()?).ok()
}

/// With the collection its mark is gone.
async fn over(site: &Site) -> StoreError {
    site.identity.doubt();
    let over = format!(
        "the watch at {} is over: the collection was dropped or renamed; start a new one, then look again",
        site.place
    );
    match site.is_ours().await {
        Ok(()) => StoreError::not_applied(Fault::Unreachable, over),
        Err(another) => another,
    }
}
