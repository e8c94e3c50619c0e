//! The order of what a bucket keeps, on one server and on three: after the mark of a term, nothing of an
//! older one.

use crate::common::{Beneath, Scratch, in_time, name, shared, shared_cluster};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{Fault, Fence, FenceError, FencingToken, Leases, ResourceName, StoreError, Term};
use tenure_nats::NatsFence;
use tokio::sync::watch;

const TERMS: u64 = 10;

/// Accepted writes after which the next term claims: the ones before are then in the midst of theirs.
const WRITES_PER_TERM: u64 = 3;

/// Later terms claim at so many different moments of a write, so far apart.
const PHASES: u64 = 8;
const PHASE: Duration = Duration::from_millis(3);

/// Accepted writes of each of the last term's writers, which nobody ends.
const LAST_WRITES: u64 = 20;

/// Most writes of one writer: then no later term has come.
const TRIES_MAX: u32 = 10_000;

/// How often all of it is begun anew, where the copies had to elect a leader in the midst: of a write that
/// was lost then, nobody knows whether it is there.
const ROUNDS_MAX: u32 = 5;

/// How far all writers have come.
#[derive(Clone, Copy)]
struct Course {
    accepted: u64,
    /// One of them was not answered.
    is_disturbed: bool,
}

fn resource(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a test gives a valid name")
}

fn term(token: u64) -> Term {
    let token = FencingToken::new(token).expect("a test gives a valid token");
    Term::new(name("job"), token)
}

async fn fence(scratch: &Scratch) -> NatsFence {
    let url = scratch.store_url();
    in_time("a fence", || NatsFence::connect(&url, Leases::Elsewhere)).await
}

/// The copies of a new bucket may lose the leader that they have elected first.
async fn until_it_takes_writes(fence: &NatsFence) {
    for token in 1..=3 {
        let (warm, term) = (resource("warm"), term(token));
        in_time("a claim", async || told(fence.claim(&warm, &term).await)).await;
        in_time("a write", async || {
            told(fence.put(&warm, &term, "warm", "1").await)
        })
        .await;
    }
}

/// What the servers said, where nobody else claims.
fn told<T>(answer: Result<T, FenceError>) -> Result<T, StoreError> {
    match answer {
        Err(FenceError::Store(error)) => Err(error),
        sure => Ok(sure.expect("nobody else claims")),
    }
}

/// Whether it may go on after this answer, which is no refusal; others are told if not.
fn goes_on(error: &FenceError, course: &watch::Sender<Course>) -> bool {
    match error {
        FenceError::Store(error) if error.fault == Fault::Busy => true,
        FenceError::Store(error) if matches!(error.fault, Fault::Unreachable | Fault::TimedOut) => {
            course.send_modify(|course| course.is_disturbed = true);
            false
        }
        error => panic!("{error}"),
    }
}

/// Claims in its turn.
async fn lead(fence: NatsFence, token: u64, course: watch::Sender<Course>) {
    let mut others = course.subscribe();
    let so_far = (token - 1) * WRITES_PER_TERM;
    let turn = others.wait_for(|course| course.is_disturbed || course.accepted >= so_far);
    turn.await.expect("it is sent to");
    tokio::time::sleep(PHASE * u32::try_from(token % PHASES).expect("it is little")).await;
    let ledger = resource("ledger");
    loop {
        match fence.claim(&ledger, &term(token)).await {
            Ok(_claimed) => break,
            // A later one was quicker.
            Err(FenceError::Stale { .. }) => return,
            Err(error) if goes_on(&error, &course) => {}
            Err(_disturbed) => return,
        }
    }
    tokio::join!(
        write(&fence, token, "data.1", &course),
        write(&fence, token, "data.2", &course)
    );
}

/// Writes as fast as it can, until a later term has claimed.
async fn write(fence: &NatsFence, token: u64, key: &str, course: &watch::Sender<Course>) {
    let (ledger, term, mut stored) = (resource("ledger"), term(token), 0);
    for _try in 0..TRIES_MAX {
        match fence.put(&ledger, &term, key, token.to_string()).await {
            Ok(_revision) => {
                stored += 1;
                course.send_modify(|course| course.accepted += 1);
            }
            Err(FenceError::Stale { .. }) => return,
            Err(error) if goes_on(&error, course) => {}
            Err(_disturbed) => return,
        }
        if course.borrow().is_disturbed || (token == TERMS && stored >= LAST_WRITES) {
            return;
        }
    }
    panic!("no later term came");
}

/// The writes of each term that the stream keeps, whose order is the proof.
async fn writes_in_order(beneath: &Beneath, stream: &str) -> BTreeMap<u64, u64> {
    let info = beneath.info().await;
    let last = info["state"]["last_seq"].as_u64().expect("a number");
    let (mut mark, mut of_terms) = (0, BTreeMap::new());
    for sequence in 1..=last {
        let request = json!({ "seq": sequence });
        let answer = beneath.call(&format!("STREAM.MSG.GET.{stream}"), request).await;
        let subject = answer["message"]["subject"].as_str().expect("a subject");
        let value = STANDARD.decode(answer["message"]["data"].as_str().unwrap_or_default());
        let value = String::from_utf8(value.expect("base64")).expect("text");
        if subject.ends_with(".tenure-fence.ledger") {
            let value: Value = serde_json::from_str(&value).expect("a mark");
            let token = value["token"].as_u64().expect("a token");
            assert!(token > mark, "marks rise");
            mark = token;
        } else if subject.contains(".data.") {
            let token: u64 = value.parse().expect("a token");
            assert_eq!(
                token, mark,
                "message {sequence} of term {token} was stored after the claim of {mark}"
            );
            *of_terms.entry(token).or_insert(0) += 1;
        }
    }
    of_terms
}

/// Terms claim and write at once, each through two writers, as fast as they can.
async fn nothing_of_an_older_term_is_stored_after_a_claim(url: &str, replicas: u32) {
    for _round in 0..ROUNDS_MAX {
        let scratch = Scratch::on(url);
        let beneath = scratch.beneath().await;
        beneath
            .make(json!({ "max_msgs_per_subject": -1, "num_replicas": replicas }))
            .await;
        until_it_takes_writes(&fence(&scratch).await).await;
        let course = watch::Sender::new(Course {
            accepted: 0,
            is_disturbed: false,
        });
        let mut leaders = Vec::new();
        for token in 1..=TERMS {
            let fence = fence(&scratch).await;
            leaders.push(tokio::spawn(lead(fence, token, course.clone())));
        }
        for leader in leaders {
            leader.await.expect("the term ends");
        }
        let of_terms = writes_in_order(&beneath, &scratch.stream()).await;
        let ended = *course.borrow();
        if !ended.is_disturbed {
            let stored: u64 = of_terms.values().sum();
            assert_eq!(
                stored, ended.accepted,
                "what was confirmed is there, and nothing else"
            );
            assert!(of_terms.len() > 2, "terms wrote: {of_terms:?}");
            return;
        }
    }
    panic!("a writer was not answered in each of {ROUNDS_MAX} rounds");
}

#[tokio::test]
async fn nothing_of_an_older_term_is_stored_after_a_claim_on_one_server() {
    nothing_of_an_older_term_is_stored_after_a_claim(&shared().await.url(), 1).await;
}

#[tokio::test]
async fn nothing_of_an_older_term_is_stored_after_a_claim_in_a_cluster() {
    nothing_of_an_older_term_is_stored_after_a_claim(&shared_cluster().await.url(), 3).await;
}
