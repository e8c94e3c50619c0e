//! Removing what nobody uses takes two visits, and what happens between them counts.

use crate::common::{
    Scratch, giving_back, put, range, remove, request, seconds, shared, take, unused_for_a_day, value,
};
use crate::faults::{BOUND, proxied};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Acquire, Fault as StoreFault, Fence, FencingToken, LeaseName, LeasePurge, LeaseStore, Leases, Purge,
    Purged, Purging, Released, ResourceName, Term,
};
use tenure_etcd::{EtcdFence, EtcdStore};
use tenure_testkit::{Etcd, EtcdOptions, Fault, RequestFault, eventually_async};

/// How often what has to come in between may come too late, on a machine that stalls.
pub const ROUNDS_MAX: u32 = 5;

/// As long as is asked.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// More than one transaction takes.
const MANY: usize = 130;

async fn purge(store: &EtcdStore, purging: Purging) -> Purged {
    store.purge(&unused_for_a_day(purging)).await.expect("it may")
}

/// Nothing is removed: neither is anything old enough.
async fn visit(store: &EtcdStore) {
    let purged = purge(store, Purging::Removes).await;
    assert_eq!((purged.unused, purged.removed), (Vec::new(), 0));
}

async fn give_back(store: &EtcdStore, asked: &Acquire, token: FencingToken) {
    let released = store.release(&[giving_back(asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
}

async fn used(store: &EtcdStore, name: &str) -> FencingToken {
    let asked = request(name, "a", seconds(60));
    let token = take(store, &asked).await.token;
    give_back(store, &asked, token).await;
    token
}

fn names(purged: &Purged) -> Vec<&str> {
    purged.unused.iter().map(LeaseName::as_str).collect()
}

/// All keys of a place, without what tells of them.
fn keys(etcd: &Etcd, scratch: &Scratch) -> Vec<String> {
    let (from, end) = (format!("{}/", scratch.prefix), format!("{}0", scratch.prefix));
    let key = |row: &Value| {
        BASE64
            .decode(row["key"].as_str().expect("a key"))
            .expect("base64")
    };
    let text = |row: &Value| String::from_utf8(key(row)).expect("a text").split_off(from.len());
    range(etcd, 0, &from, &end).iter().map(text).collect()
}

/// Makes the note on a name look a day older.
fn age(etcd: &Etcd, scratch: &Scratch, name: &str) {
    let key = scratch.note(name);
    let mut note: Value = serde_json::from_str(&value(etcd, 0, &key).expect("a note")).expect("JSON");
    let day_ms = u64::try_from(DAY.as_millis()).expect("a number");
    note["notedAt"] = (note["notedAt"].as_u64().expect("a time") - day_ms).into();
    put(etcd, 0, &key, &note.to_string());
}

fn age_all(etcd: &Etcd, scratch: &Scratch) {
    for key in keys(etcd, scratch) {
        if let Some(name) = key.strip_prefix("unused/") {
            age(etcd, scratch, name);
        }
    }
}

#[tokio::test]
async fn what_is_used_between_two_visits_or_held_at_the_second_outlives_a_clean_up() {
    let (etcd, scratch) = (shared().await, Scratch::new().await);
    let (store, other) = (scratch.store().await, scratch.store().await);
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .unwrap();
    let ledger = ResourceName::new("ledger").unwrap();
    let old = used(&store, "old").await;
    let term = Term::new(crate::common::name("old"), old);
    fence.claim(&ledger, &term).await.unwrap();
    let (again, held) = (used(&store, "again").await, used(&store, "held").await);
    visit(&store).await;
    assert!(used(&other, "again").await > again);
    let holding = request("held", "b", seconds(60));
    let holding_token = take(&other, &holding).await.token;
    assert!(holding_token > held);
    age_all(etcd, &scratch);
    let mark = fence.mark(&ledger).await.unwrap();

    let looked = purge(&store, Purging::OnlyLooks).await;
    assert_eq!((names(&looked), looked.removed), (vec!["old"], 0));
    let purged = purge(&store, Purging::Removes).await;
    assert_eq!((names(&purged), purged.removed), (vec!["old"], 1));
    assert_eq!(
        keys(etcd, &scratch),
        [
            "fence/ledger",
            "lease/again",
            "lease/held",
            "lease/held\tholder",
            "lease/held\tterm",
            "unused/again"
        ],
        "nothing of it is left, and no note on what is held"
    );
    assert_eq!(fence.mark(&ledger).await.unwrap(), mark);
    // The note is of this visit.
    visit(&store).await;
    assert_eq!(store.get(&crate::common::name("old")).await, Ok(None));
    let next = take(&other, &request("old", "b", seconds(60))).await;
    assert!(next.token > old && next.terms == 1, "{next:?} after {old}");
    give_back(&other, &holding, holding_token).await;
}

/// It was given back after it had been seen to have expired: that is used, too.
#[tokio::test]
async fn expired_term_that_is_given_back_between_two_visits_outlives_a_clean_up() {
    let (etcd, scratch) = (shared().await, Scratch::new().await);
    let store = scratch.store().await;
    let asked = request("job", "a", store.traits().ttl_min);
    let token = take(&store, &asked).await.token;
    let free = || async {
        store
            .get(&asked.name)
            .await
            .unwrap()
            .filter(|lease| lease.remaining.is_zero())
    };
    eventually_async(BOUND, "the end of the lease", free).await;
    visit(&store).await;
    age_all(etcd, &scratch);
    let looked = purge(&store, Purging::OnlyLooks).await;
    assert_eq!(names(&looked), ["job"]);
    give_back(&store, &asked, token).await;
    visit(&store).await;
    age_all(etcd, &scratch);
    let purged = purge(&store, Purging::Removes).await;
    assert_eq!((names(&purged), purged.removed), (vec!["job"], 1));
    assert!(keys(etcd, &scratch).is_empty(), "{:?}", keys(etcd, &scratch));
}

#[tokio::test]
async fn record_that_is_used_while_many_are_removed_stays_alone() {
    let etcd = shared().await;
    for _round in 0..ROUNDS_MAX {
        let (proxy, store) = proxied().await;
        let scratch = Scratch {
            url: etcd.url(),
            prefix: store.traits().location.split_once('/').unwrap().1.to_owned(),
        };
        let direct = scratch.store().await;
        for name in ["a", "b", "c"] {
            used(&direct, name).await;
        }
        visit(&direct).await;
        age_all(etcd, &scratch);
        let before = proxy.counts().requests;
        proxy.set(Fault::Delay {
            to_server: Duration::ZERO,
            to_client: Duration::from_millis(200),
        });
        let store = Arc::new(store);
        let purging = tokio::spawn({
            let store = Arc::clone(&store);
            async move { purge(&store, Purging::Removes).await }
        });
        // The records are read when the notes are asked for.
        let read = || async { proxy.counts().requests >= before + 2 };
        eventually_async(BOUND, "the page", read).await;
        let held = take(&direct, &request("b", "b", seconds(60))).await;
        // It looks as before, but for its term.
        let again = used(&direct, "c").await;
        let purged = purging.await.unwrap();
        assert_eq!(names(&purged), ["a", "b", "c"]);
        let lease = async |name| direct.get(&crate::common::name(name)).await.unwrap().unwrap();
        let (b, c) = (lease("b").await, lease("c").await);
        if (b.terms, c.terms) != (2, 2) {
            // It came too late.
            continue;
        }
        assert_eq!(purged.removed, 1);
        assert_eq!((b.token, b.released), (held.token, false));
        assert_eq!((c.token, c.released), (again, true));
        return;
    }
    panic!("every time it was used too late");
}

#[tokio::test]
async fn late_duplicate_of_a_removal_leaves_the_next_term_alone() {
    let etcd = shared().await;
    let (proxy, store) = proxied().await;
    let scratch = Scratch {
        url: etcd.url(),
        prefix: store.traits().location.split_once('/').unwrap().1.to_owned(),
    };
    let direct = scratch.store().await;
    used(&direct, "job").await;
    visit(&direct).await;
    age_all(etcd, &scratch);
    let before = proxy.counts().requests;
    let later = RequestFault::DuplicateLater(Duration::from_millis(1_500));
    proxy.set(Fault::EveryRequest(later));
    assert_eq!(purge(&store, Purging::Removes).await.removed, 1);
    proxy.heal();
    let next = take(&direct, &request("job", "b", seconds(60))).await;
    let (written, sent) = (keys(etcd, &scratch), proxy.counts().requests - before);
    let arrived = || async { proxy.counts().duplicated == sent };
    eventually_async(BOUND, "the duplicates", arrived).await;
    assert_eq!(keys(etcd, &scratch), written);
    assert_eq!(
        direct
            .get(&crate::common::name("job"))
            .await
            .unwrap()
            .unwrap()
            .token,
        next.token
    );
}

#[tokio::test]
async fn notes_on_what_is_gone_go_and_what_cannot_be_understood_stays_with_its_own() {
    let (etcd, scratch) = (shared().await, Scratch::new().await);
    let store = scratch.store().await;
    for name in ["damaged", "gone", "odd", "well"] {
        used(&store, name).await;
    }
    visit(&store).await;
    // By hand; and what neither a lease nor a clean-up of Tenure's own can have written.
    remove(etcd, 0, &scratch.key("gone", ""), &scratch.key("gone", "\n"));
    put(etcd, 0, &scratch.key("damaged", ""), "green");
    put(etcd, 0, &scratch.key("no\u{7}name", ""), "blue");
    put(etcd, 0, &scratch.note("no\u{7}name"), "blue");
    age(etcd, &scratch, "damaged");
    put(etcd, 0, &scratch.note("odd"), "red");
    visit(&store).await;
    assert_eq!(
        keys(etcd, &scratch),
        [
            "lease/damaged",
            "lease/no\u{7}name",
            "lease/odd",
            "lease/well",
            "unused/damaged",
            "unused/no\u{7}name",
            "unused/odd",
            "unused/well"
        ]
    );
    remove(etcd, 0, &scratch.note("no\u{7}name"), &scratch.note("no\u{8}"));
    age_all(etcd, &scratch);
    let purged = purge(&store, Purging::Removes).await;
    assert_eq!((names(&purged), purged.removed), (vec!["odd", "well"], 2));
    assert_eq!(
        keys(etcd, &scratch),
        ["lease/damaged", "lease/no\u{7}name", "unused/damaged"]
    );
}

/// A clock that was ahead is no reason to keep a record for ever, nor one to remove it now.
#[tokio::test]
async fn note_from_the_future_counts_as_none() {
    let (etcd, scratch) = (shared().await, Scratch::new().await);
    let store = scratch.store().await;
    let token = used(&store, "job").await;
    let ahead = json!({ "token": token.number(), "released": true, "notedAt": u64::MAX });
    put(etcd, 0, &scratch.note("job"), &ahead.to_string());
    visit(&store).await;
    age_all(etcd, &scratch);
    assert_eq!(purge(&store, Purging::Removes).await.removed, 1);
}

/// More than one transaction takes, page by page, beside notes of which each page reads but a part.
#[tokio::test]
async fn many_records_and_notes_are_removed_page_by_page() {
    let (etcd, scratch) = (shared().await, Scratch::new().await);
    let store = scratch.store().await;
    for number in 0..MANY {
        used(&store, &format!("job/{number:03}")).await;
    }
    visit(&store).await;
    for number in 0..MANY {
        let orphan = scratch.note(&format!("job/{number:03}/gone"));
        put(etcd, 0, &orphan, "red");
        put(etcd, 0, &format!("{orphan}/too"), "red");
    }
    for number in 0..MANY {
        age(etcd, &scratch, &format!("job/{number:03}"));
    }
    let mut page = Purge {
        limit: 50,
        ..unused_for_a_day(Purging::Removes)
    };
    let (mut removed, mut pages) = (0, 0);
    loop {
        let purged = store.purge(&page).await.unwrap();
        assert!(purged.unused.len() <= 50, "{purged:?}");
        (removed, pages) = (removed + purged.removed, pages + 1);
        page.after = purged.next;
        if page.after.is_none() {
            break;
        }
        assert!(pages < MANY, "pages without end");
    }
    assert_eq!(removed, MANY as u64);
    assert!(keys(etcd, &scratch).is_empty(), "{:?}", keys(etcd, &scratch));
}

/// A service needs no right to what a clean-up notes, and without it cleans up nothing; nor does who may only
/// look.
#[tokio::test]
async fn only_who_may_write_notes_cleans_up() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let scratch = Scratch {
        prefix: "tenure".to_owned(),
        ..Scratch::on(&etcd.url())
    };
    let before = scratch.store().await;
    let last = used(&before, "one").await.max(used(&before, "two").await);
    visit(&before).await;
    age_all(&etcd, &scratch);
    let ask = |path: &str, body: Value| {
        let answer = etcd.post(0, path, &body.to_string()).unwrap();
        assert!(answer.contains("header"), "{path}: {answer}");
    };
    for (user, kind, from, end) in [
        ("service", "READWRITE", "tenure/lease/", "tenure/lease0"),
        ("looker", "READ", "tenure/", "tenure0"),
        ("cleaner", "READWRITE", "tenure/", "tenure0"),
        ("root", "READWRITE", "tenure/", "tenure0"),
    ] {
        let permission =
            json!({ "permType": kind, "key": BASE64.encode(from), "range_end": BASE64.encode(end) });
        ask("/v3/auth/role/add", json!({ "name": user }));
        ask("/v3/auth/role/grant", json!({ "name": user, "perm": permission }));
        ask(
            "/v3/auth/user/add",
            json!({ "name": user, "password": "hunter2" }),
        );
        ask("/v3/auth/user/grant", json!({ "user": user, "role": user }));
    }
    ask("/v3/auth/enable", json!({}));
    let connected = async |user: &str| {
        let url = format!("etcd://{user}:hunter2@{}", etcd.address(0));
        EtcdStore::connect(&url).await.unwrap()
    };
    let (service, cleaner) = (connected("service").await, connected("cleaner").await);
    for store in [&service, &connected("looker").await] {
        let error = store
            .purge(&unused_for_a_day(Purging::Removes))
            .await
            .unwrap_err();
        assert_eq!(error.fault, StoreFault::Forbidden, "{error}");
    }
    let purged = purge(&cleaner, Purging::Removes).await;
    assert_eq!((names(&purged), purged.removed), (vec!["one", "two"], 2));
    let next = take(&service, &request("one", "b", seconds(60))).await;
    assert!(next.token > last && next.terms == 1, "{next:?} after {last}");
}
