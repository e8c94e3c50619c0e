//! The short way: what a store has taken or given back itself it takes, and gives back, without having its
//! rules read anew. It comes to the same as the common statements, and touches no record that is another by
//! then.

use crate::common::{Scratch, give_back, giving_back, granted, name, raw, renewal, request, seconds, take};
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Attempt, End, Fault, FencingToken, LeaseStore, Released, Renewed, Ttl,
};
use tenure_mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, in_one_of};

/// A store, the collection beneath it, and a holder that has taken "job" with it and given it back, so that
/// the store has the record in mind.
struct Given {
    scratch: Scratch,
    store: MongoStore,
    leases: Collection<Document>,
    asked: Acquire,
    token: FencingToken,
}

impl Given {
    async fn back() -> Self {
        let given = Self::taken().await;
        give_back(&given.store, &given.asked, given.token).await;
        given
    }

    /// The same, but for giving it back.
    async fn taken() -> Self {
        let scratch = Scratch::new(ReplicaSet::shared().await.uri());
        let store = scratch.store().await;
        let asked = request("job", "holder", seconds(60));
        let token = take(&store, &asked).await.token;
        Self {
            leases: scratch.leases().await,
            scratch,
            store,
            asked,
            token,
        }
    }

    fn next(&self) -> Acquire {
        next(&self.asked)
    }

    async fn set(&self, changes: Document) {
        let change = self
            .leases
            .update_one(doc! { "_id": "job" }, doc! { "$set": changes });
        assert_eq!(change.await.expect("the test may write").matched_count, 1);
    }

    async fn raw(&self) -> Document {
        raw(&self.leases, "job").await.expect("the record")
    }
}

/// The same process asks by its next attempt.
fn next(asked: &Acquire) -> Acquire {
    Acquire {
        attempt: asked.attempt.next(),
        ..asked.clone()
    }
}

/// How large each command was that changes a record, in bytes.
#[derive(Clone, Default)]
struct Changes(Arc<Mutex<Vec<usize>>>);

impl Changes {
    fn handler(&self) -> EventHandler<CommandEvent> {
        let changes = self.clone();
        EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event
                && started.command_name == "findAndModify"
            {
                let size = started.command.to_vec().map_or(0, |command| command.len());
                changes.0.lock().expect("nobody panics here").push(size);
            }
        })
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().expect("nobody panics here"))
    }
}

/// A store that tells how large the commands are.
async fn counted(scratch: &Scratch) -> (MongoStore, Changes) {
    let mut options = ClientOptions::parse(&scratch.uri).await.expect("a URL");
    let changes = Changes::default();
    (options.retry_writes, options.command_event_handler) = (Some(false), Some(changes.handler()));
    let client = Client::with_options(options).expect("a client");
    let store = MongoStore::with_client(client, &scratch.database, "job_leases");
    (store.await.expect("attaches"), changes)
}

#[tokio::test]
async fn lease_of_mongodb_that_was_given_back_here_is_taken_and_given_back_by_short_statements() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (store, changes) = counted(&scratch).await;
    let mut asked = request("job", "holder", seconds(60));
    let (mut taking, mut giving) = (Vec::new(), Vec::new());
    for _round in 0..3 {
        changes.take();
        let token = take(&store, &asked).await.token;
        taking.extend(changes.take());
        give_back(&store, &asked, token).await;
        giving.extend(changes.take());
        asked = next(&asked);
    }
    let (&[common, second, third], &[first_back, second_back, _]) = (&taking[..], &giving[..]) else {
        panic!("not one command each: {taking:?} {giving:?}")
    };
    assert!(second < common / 2 && third < common / 2, "{taking:?}");
    assert!(first_back < common / 2 && second_back < common / 2, "{giving:?}");
}

/// The same by a store that keeps one in mind, and by stores that are new at each step, on two names.
#[tokio::test]
async fn the_short_way_of_mongodb_writes_what_the_common_statements_write() {
    in_one_of(
        ROUNDS_MAX,
        "an acquisition with a short ttl was given up",
        short_way_writes_the_same,
    )
    .await;
}

/// How often a machine may be too slow for a short ttl.
const ROUNDS_MAX: u32 = 5;

/// Not, on a machine so slow that the server had no time for the short ttl of one.
async fn short_way_writes_the_same() -> bool {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let leases = scratch.leases().await;
    let url = scratch.url("purgeAfter=2d");
    let connect = async || MongoStore::connect(&url).await.expect("the store connects");
    let remembering = connect().await;
    let first = request("short", "first", seconds(60));
    let other = request("short", "$other", seconds(60));
    let brief = Ttl::from_millis(200).expect("a ttl");
    let mut token = [FencingToken::MAX; 2];
    // Taken, given back, taken by another, given up for a later attempt, and once more when it has run out.
    let steps = [
        (&first, 1, true, false),
        (&first, 2, true, false),
        (&other, 1, false, false),
        (&other, 2, false, true),
        (&other, 3, true, false),
        (&first, 3, true, false),
    ];
    for (step, (asked, attempt, gives_back, runs_out)) in steps.into_iter().enumerate() {
        let asked_for = |lease| Acquire {
            name: name(lease),
            attempt: Attempt::new(attempt).expect("an attempt"),
            ttl: if runs_out { brief } else { asked.ttl },
            ..asked.clone()
        };
        let [short, common] = ["short", "common"].map(asked_for);
        for (place, asked, store) in [(0, &short, &remembering), (1, &common, &connect().await)] {
            let grant = match store.acquire(asked).await {
                Err(error) if runs_out && error.fault == Fault::TimedOut => return false,
                answer => granted(answer.expect("it answers")),
            };
            assert!(step == 0 || grant.token > token[place], "step {step}, {place}");
            token[place] = grant.token;
        }
        alike(&leases, step).await;
        if runs_out {
            tokio::time::sleep(2 * brief.duration()).await;
        }
        if gives_back {
            give_back(&remembering, &short, token[0]).await;
            give_back(&connect().await, &common, token[1]).await;
        }
        alike(&leases, step).await;
    }
    true
}

async fn alike(leases: &Collection<Document>, step: usize) {
    let [short, common] = [shape(leases, "short").await, shape(leases, "common").await];
    assert_eq!(short, common, "step {step}");
}

/// A record with its times and tokens named by what they are, where they are to be related: all else is
/// compared as it is.
async fn shape(leases: &Collection<Document>, lease: &str) -> Vec<(String, String)> {
    let record = raw(leases, lease).await.expect("the record");
    let mut known: Vec<(String, Bson)> = Vec::new();
    let mut shape = Vec::new();
    let date = |field: &str| record.get_datetime(field).expect("a date").timestamp_millis();
    shape.push((
        "acquired to expiry, if held".to_owned(),
        match record.get("released") {
            Some(Bson::Null) => (date("expiresAt") - date("acquiredAt")).to_string(),
            _ => "given back".to_owned(),
        },
    ));
    // Of the term before: its generation is the earliest that the clean-up looks at.
    let used = match record.get_document("released") {
        Ok(released) => released.get_datetime("at").expect("a date").timestamp_millis(),
        Err(_) => date("acquiredAt"),
    };
    shape.push((
        "last use to clean-up, in s".to_owned(),
        ((date("purgeAt") - used) / 1000).to_string(),
    ));
    if let Ok(previous) = record.get_document("previous") {
        let ended = previous.get_datetime("at").expect("a date").timestamp_millis();
        shape.push((
            "over before this one began".to_owned(),
            (ended <= date("acquiredAt")).to_string(),
        ));
    }
    note("", &record, &mut known, &mut shape);
    shape
}

/// Each value of a document: one of a time by the first field that has the same, if it is no older one.
fn note(path: &str, document: &Document, known: &mut Vec<(String, Bson)>, shape: &mut Vec<(String, String)>) {
    for (field, value) in document {
        let path = format!("{path}{field}");
        match value {
            Bson::Document(part) => note(&format!("{path}."), part, known, shape),
            Bson::DateTime(_) => shape.push((path, "a date".to_owned())),
            Bson::Int64(number) if *number > 1_000_000_000 => {
                let alias = known
                    .iter()
                    .find(|(_, earlier)| earlier == value)
                    .map(|(path, _)| path.clone());
                if alias.is_none() {
                    known.push((path.clone(), value.clone()));
                }
                shape.push((path, format!("a token, that of {alias:?}")));
            }
            _ if field == "_id" => {}
            other => shape.push((path, other.to_string())),
        }
    }
}

#[tokio::test]
async fn what_another_has_taken_and_given_back_meanwhile_is_its_own_in_the_history() {
    let given = Given::back().await;
    let others = given.scratch.store().await;
    let other = request("job", "other", seconds(60));
    let theirs = take(&others, &other).await.token;
    give_back(&others, &other, theirs).await;
    let grant = take(&given.store, &given.next()).await;
    assert!(grant.token > theirs);
    let predecessor = grant.predecessor.expect("one");
    assert_eq!(
        (predecessor.candidate.as_str(), predecessor.token, predecessor.end),
        ("other", theirs, End::Released)
    );
    assert_eq!(grant.terms, 3);
}

#[tokio::test]
async fn what_another_has_taken_meanwhile_is_held_and_that_is_asked_once() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (store, changes) = counted(&scratch).await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    give_back(&store, &asked, token).await;
    let theirs = take(&scratch.store().await, &request("job", "other", seconds(60))).await;
    changes.take();
    let answer = store.acquire(&next(&asked)).await;
    assert!(
        matches!(&answer, Ok(Acquired::Held(lease)) if lease.token == theirs.token),
        "{answer:?}"
    );
    assert_eq!(changes.take().len(), 1);
}

#[tokio::test]
async fn what_was_cleaned_up_meanwhile_is_taken_with_a_higher_token() {
    let given = Given::back().await;
    let removed = given.leases.delete_one(doc! { "_id": "job" }).await;
    assert_eq!(removed.expect("removed").deleted_count, 1);
    let grant = take(&given.store, &given.next()).await;
    assert!(grant.token > given.token);
    assert_eq!((grant.terms, grant.predecessor), (1, None));
}

/// By a value that is wrong, and by numbers that are equal to the server, and of another type.
#[tokio::test]
async fn record_that_was_damaged_meanwhile_is_left_as_it_is() {
    for is_given_back in [true, false] {
        for damage in 0..5 {
            let given = match is_given_back {
                true => Given::back().await,
                false => Given::taken().await,
            };
            let nested = if is_given_back {
                "released.generation"
            } else {
                "generation"
            };
            given
                .set(match damage {
                    0 => doc! { "note": 5_i64 },
                    1 => doc! { "terms": 1_i32 },
                    2 => doc! { "terms": 1.0 },
                    3 => doc! { "owner": Bson::Symbol("holder".to_owned()) },
                    _ => doc! { nested: given.token.signed() as f64 },
                })
                .await;
            let before = given.raw().await;
            let answer = match is_given_back {
                true => given.store.acquire(&given.next()).await.map(drop),
                false => {
                    let release = giving_back(&given.asked, given.token);
                    given.store.release(&[release]).await.remove(0).map(drop)
                }
            };
            let error = answer.expect_err("it is damaged");
            assert_eq!(error.fault, Fault::Unreadable, "{damage}: {error}");
            assert_eq!(given.raw().await, before, "{damage}");
        }
    }
}

#[tokio::test]
async fn fields_that_others_add_to_a_record_meanwhile_are_kept() {
    let given = Given::back().await;
    given
        .set(doc! { "theirs": { "as": "it is" }, "released.theirs": "goes with it" })
        .await;
    for round in 0..2_u64 {
        let mut asked = given.next();
        asked.attempt = Attempt::new(2 + round).expect("an attempt");
        let grant = take(&given.store, &asked).await;
        give_back(&given.store, &asked, grant.token).await;
        let theirs = given.raw().await.get_document("theirs").cloned();
        assert_eq!(theirs.expect("it is there"), doc! { "as": "it is" });
    }
}

#[tokio::test]
async fn term_that_was_renewed_or_asked_back_meanwhile_is_given_back() {
    for renews in [true, false] {
        let given = Given::taken().await;
        if renews {
            let renewed = given
                .store
                .renew(&[renewal(&given.asked, given.token)])
                .await
                .remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        } else {
            let ask = Ask {
                name: given.asked.name.clone(),
                token: given.token,
            };
            let asked = given.scratch.store().await.ask(&ask).await;
            assert_eq!(asked, Ok(Asked::Noted));
        }
        give_back(&given.store, &given.asked, given.token).await;
        let lease = given
            .store
            .get(&given.asked.name)
            .await
            .expect("a read")
            .expect("it");
        assert!(lease.released && !lease.asked_to_step_down);
    }
}

#[tokio::test]
async fn term_that_another_has_taken_over_meanwhile_is_not_given_back() {
    let given = Given::taken().await;
    given.set(doc! { "expiresAt": DateTime::now() }).await;
    let (others, other) = (given.scratch.store().await, request("job", "other", seconds(60)));
    let theirs = tenure_testkit::eventually_async(Duration::from_secs(30), "the take-over", || async {
        match others.acquire(&other).await {
            Ok(Acquired::Granted(grant)) => Ok(grant.token),
            answer => Err(format!("{answer:?}")),
        }
    })
    .await;
    let back = [giving_back(&given.asked, given.token)];
    let released = given.store.release(&back).await.remove(0);
    assert!(
        matches!(&released, Ok(Released::NotYours(Some(lease))) if lease.token == theirs),
        "{released:?}"
    );
}

/// Taken by another store of the process, whose answer was lost: the record has less time than a new term.
#[tokio::test]
async fn attempt_that_was_granted_elsewhere_is_extended_and_not_taken_for_a_new_term() {
    let given = Given::back().await;
    let asked = given.next();
    let first = take(&given.scratch.store().await, &asked).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let again = take(&given.store, &asked).await;
    assert_eq!((again.token, again.again), (first.token, true));
    let lease = given.store.get(&asked.name).await.expect("a read").expect("it");
    assert!(lease.renewed_ago < lease.held_for, "{lease:?}");
    give_back(&given.store, &asked, again.token).await;
}
