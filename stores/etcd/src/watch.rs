//! Watching the keys of leases.

use crate::connection::{Answers, Connection};
use crate::fault::Failure;
use crate::found::token_of_holder;
use crate::keys::Part;
use crate::site::Site;
use crate::wire::path;
use crate::wire::watch::{
    DELETE, Event, PUT, Wanted, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Fault, FencingToken, LeaseName, Scope, StoreError, WatchEvent};
use tenure_remote::{Deed, OwnThread, ReadWatch, Told};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// How often a silent stream is asked whether it lives.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A stream that says nothing for so long, although it was asked, is dead.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How often a stream that broke is opened again, from where it broke, before the watch is over.
const RESUMES_MAX: u32 = 5;

/// The wait before the second of them; it doubles.
const RESUME_AFTER: Duration = Duration::from_millis(100);

/// A stream that ends sooner than this was of no use: before the next one there is a wait that doubles each
/// time, up to this, or what lets every stream begin and then ends it would be dialled as often as it can be.
const STEADY_AFTER: Duration = Duration::from_secs(3);

/// Starts a watch; answers when the server has confirmed it, so that every later change is told.
pub(crate) async fn open(site: Arc<Site>, thread: &OwnThread, scope: Scope) -> Result<ReadWatch, StoreError> {
    let permit = site.watches.take(&site.place)?;
    let place = site.place.clone();
    let opened = Arc::clone(&site);
    let (listening, scope) = thread
        .run(async move {
            let listening = Listening::open(&opened, &scope, 0).await;
            let failed = |failure: Failure| failure.error(Deed::Read, "the watch", &opened.place);
            Ok::<_, StoreError>((listening.map_err(failed)?, scope))
        })
        .await??;
    Ok(ReadWatch::start(thread, permit, place, |events| {
        read(site, listening, scope, events)
    }))
}

/// A confirmed stream of events.
struct Listening {
    answers: Answers<WatchResponse>,
    requests: mpsc::Sender<WatchRequest>,
    /// The first revision to be told of; 0 for whatever comes.
    from: i64,
    /// The first revision that was not told yet.
    next: i64,
    /// The server's revision when it was confirmed.
    begun: i64,
}

/// Why a stream of events ended.
enum Ended {
    /// It broke: what comes after it can be had from another.
    Broken(Status),
    /// What comes after it cannot be had: it is compacted, or the server was put back to before it.
    Missed,
    /// Nobody is interested any more.
    Unwanted,
}

impl Listening {
    /// Listens from a revision on; from now on if that is 0.
    ///
    /// The one before it is asked for, too: newer servers, as 3.5.30, give no sign of life to who waits for a
    /// revision that is not there yet, so that in a cluster in which nobody writes each stream would seem to
    /// fall silent.
    async fn open(site: &Site, scope: &Scope, from: i64) -> Result<Self, Failure> {
        let (key, range_end) = match scope {
            Scope::Name(name) => site.keys.of_lease(name),
            Scope::Prefix(prefix) => site.keys.of_leases(prefix, None),
        };
        let create = WatchRequest {
            wanted: Some(Wanted::Create(WatchCreateRequest {
                key,
                range_end,
                start_revision: match from {
                    0 => 0,
                    from => i64::max(from - 1, 1),
                },
                prev_kv: true,
            })),
        };
        let begin = |connection: Connection, create: WatchRequest| async move {
            let (requests, waiting) = mpsc::channel(1);
            requests
                .try_send(create)
                .map_err(|_| Failure::Status(Status::internal("no room for the first request")))?;
            let stream = connection.stream(path::WATCH, ReceiverStream::new(waiting));
            let mut answers: Answers<WatchResponse> = stream.await.map_err(Failure::Status)?;
            let first = answers.message().await.map_err(Failure::Status)?;
            let first =
                first.ok_or_else(|| Failure::Status(Status::unavailable("the watch ended at once")))?;
            if !first.created || first.canceled {
                let status = refusal(&first);
                return Err(
                    match status.code() == Code::PermissionDenied && connection.has_token() {
                        true => Failure::Denied(status),
                        false => Failure::Status(status),
                    },
                );
            }
            let now = first.header.map_or(0, |header| header.revision);
            Ok(Self {
                answers,
                requests,
                from,
                next: match from {
                    0 => now + 1,
                    from => from,
                },
                begun: now,
            })
        };
        let opening = |connection| begin(connection, create.clone());
        site.watching.call(opening).await
    }

    /// Hands on events until the stream ends.
    async fn tell(&mut self, site: &Site, scope: &Scope, events: &mpsc::Sender<Told>) -> Ended {
        let mut asking = tokio::time::interval(ASK_EVERY);
        asking.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        // It would say nothing until revisions are there again, and then of half of what happened. That is so
        // of a member, too, that has not caught up yet: then something is told twice.
        if self.next > self.begun + 1 {
            return Ended::Missed;
        }
        loop {
            let answer = tokio::select! {
                biased;
                () = events.closed() => return Ended::Unwanted,
                answer = self.answers.message() => answer,
                _ = asking.tick() => {
                    if heard.elapsed() >= SILENCE_MAX {
                        return Ended::Broken(Status::unavailable("the member fell silent"));
                    }
                    let alive = Wanted::Progress(WatchProgressRequest {});
                    // Full: the last one was not even sent.
                    let _asked = self.requests.try_send(WatchRequest { wanted: Some(alive) });
                    continue;
                }
            };
            let mut answer = match answer {
                Ok(Some(answer)) => answer,
                Ok(None) => return Ended::Broken(Status::unavailable("the stream ended")),
                Err(status) => return Ended::Broken(status),
            };
            if answer.compact_revision > 0 {
                return Ended::Missed;
            }
            if answer.canceled {
                return Ended::Broken(refusal(&answer));
            }
            let is_new = |event: &Event| event.kv.as_ref().is_some_and(|kv| kv.mod_revision >= self.from);
            answer.events.retain(is_new);
            for event in translate(site, scope, &answer.events) {
                if events.send(Ok(event)).await.is_err() {
                    return Ended::Unwanted;
                }
            }
            // Here, and not before: a reader that is slow to take events is no silence of the member.
            heard = Instant::now();
            let told = answer.events.iter().filter_map(|event| event.kv.as_ref());
            self.next = told.map(|kv| kv.mod_revision + 1).fold(self.next, i64::max);
        }
    }
}

/// Hands on events until the watch is over or the reader's interest ends.
async fn read(site: Arc<Site>, mut listening: Listening, scope: Scope, events: mpsc::Sender<Told>) {
    let mut pause = Duration::ZERO;
    loop {
        let began = Instant::now();
        let from = match listening.tell(&site, &scope, &events).await {
            Ended::Unwanted => return,
            Ended::Broken(status) => {
                tracing::debug!(place = %site.place, "the watch broke: {status}");
                listening.next
            }
            Ended::Missed => {
                if events.send(Ok(WatchEvent::Gap)).await.is_err() {
                    return;
                }
                0
            }
        };
        pause = match began.elapsed() < STEADY_AFTER {
            true => (2 * pause).clamp(RESUME_AFTER, STEADY_AFTER),
            false => Duration::ZERO,
        };
        tokio::time::sleep(pause).await;
        listening = match resume(&site, &scope, from).await {
            Ok(resumed) => resumed,
            Err(failure) => {
                let error = failure.error(Deed::Read, "the watch", &site.place);
                let error = over(&site.place, &error.message);
                let _told = events.send(Err(error)).await;
                return;
            }
        };
        // What happened before it was in place, from now on, was told of by nobody.
        if from == 0 && events.send(Ok(WatchEvent::Gap)).await.is_err() {
            return;
        }
    }
}

async fn resume(site: &Site, scope: &Scope, from: i64) -> Result<Listening, Failure> {
    let mut wait = RESUME_AFTER;
    let mut tried = Listening::open(site, scope, from).await;
    for _resume in 1..RESUMES_MAX {
        if tried.is_ok() {
            break;
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
        tried = Listening::open(site, scope, from).await;
    }
    tried
}

/// Why a watch was refused, as a status.
fn refusal(answer: &WatchResponse) -> Status {
    let why = answer.cancel_reason.as_str();
    match why.contains("permission denied") {
        true => Status::permission_denied(why),
        false => Status::unavailable(format!("the watch was refused: {why}")),
    }
}

/// What events of keys say of leases. What is removed in one step is told once.
fn translate(site: &Site, scope: &Scope, events: &[Event]) -> Vec<WatchEvent> {
    let mut ended: HashSet<(&str, i64)> = HashSet::new();
    for event in events.iter().filter(|event| event.kind == DELETE) {
        let Some(kv) = &event.kv else { continue };
        if let Some((name, Part::Term | Part::Record)) = site.keys.read(&kv.key) {
            ended.insert((name, kv.mod_revision));
        }
    }
    let mut told = Vec::new();
    for event in events {
        let Some(kv) = &event.kv else { continue };
        let before = event.prev_kv.as_ref();
        let Some((name, part)) = site.keys.read(&kv.key) else {
            continue;
        };
        let (change, token) = match (event.kind, part) {
            (PUT, Part::Record) => (Change::Taken, FencingToken::from_signed(kv.mod_revision).ok()),
            (PUT, Part::Wish) => (Change::Asked, token_of_wish(&kv.value)),
            (DELETE, Part::Record) => (Change::Vacated, None),
            (DELETE, Part::Term) => {
                let token = before.and_then(|kv| FencingToken::from_signed(kv.mod_revision).ok());
                (Change::Vacated, token)
            }
            // Its session ended, and the lease with it.
            (DELETE, Part::Holder) if !ended.contains(&(name, kv.mod_revision)) => {
                (Change::Vacated, before.and_then(token_of_holder))
            }
            _ => continue,
        };
        if let Ok(name) = LeaseName::new(name)
            && scope.covers(&name)
        {
            told.push(WatchEvent::Changed { name, change, token });
        }
    }
    told
}

fn token_of_wish(value: &[u8]) -> Option<FencingToken> {
    let value: Value = serde_json::from_slice(value).ok()?;
    FencingToken::new(value.get("token")?.as_u64()?).ok()
}

fn over(place: &str, why: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!("the watch at {place} is over: {why}; start a new one, then look again"),
    )
}
