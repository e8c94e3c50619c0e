//! What a quorum tells of a lease while a candidate has taken its members, or has died before it had a token.

use crate::common::guess::{KEY, LATER, are_ahead, asked_of, had, set, three};
use crate::common::{hosts, in_an_hour, name, quorum_at, record_in, request, seconds, take};
use tenure_core::{
    Bump, Fence, FencingToken, Lease, LeaseStore, Leases, Listed, Occupancy, Page, ResourceName,
};
use tenure_redis::{QuorumStore, RedisFence};
use tenure_testkit::RedisServer;

/// What a candidate makes of a record that was given back, as `quorum_take.lua` does.
async fn candidacy(server: &RedisServer) {
    let soon = in_an_hour();
    let before = record_in(server, "job").await;
    let over = [
        ("previousOwner", before["owner"].as_str()),
        ("previousGeneration", &before["generation"]),
        ("previousEnd", "released"),
        ("previousAt", &before["releasedAt"]),
    ];
    let taken = [
        ("owner", "b"),
        ("incarnation", "0123456789abcdef0123456789abcdef"),
        ("attempt", "1"),
        ("note", "a candidate's"),
        ("expiresAt", soon.as_str()),
        ("unconfirmed", "later"),
    ];
    asked_of(server, redis::cmd("HSET").arg(KEY).arg(&over).arg(&taken)).await;
    asked_of(server, redis::cmd("HDEL").arg(KEY).arg("releasedAt")).await;
}

async fn listed(store: &QuorumStore) -> Vec<Listed> {
    let page = Page::first("", 10);
    store.list(&page).await.expect("a list").leases
}

/// As `get` and as `list` show it.
async fn shown(store: &QuorumStore) -> Lease {
    let lease = store.get(&name("job")).await.expect("a read").expect("a term");
    let listed = listed(store).await;
    assert!(
        matches!(&listed[..], [Listed::Lease(one)] if (one.token, &one.holder) == (lease.token, &lease.holder)),
        "{listed:?}"
    );
    lease
}

/// Also where one member has missed the term, which shows an older one. The tokens are ahead of the clock of
/// the fence, so that it is told of them, or would admit a term from before.
#[tokio::test]
async fn term_before_a_candidacy_is_told_and_what_bumps_a_mark_is_above_it() {
    let servers = three().await;
    let store = quorum_at(&hosts(&servers)).await;
    let mut a = request("job", "a", seconds(300));
    let before = had(&store, &servers, &mut a).await;
    let missed = record_in(&servers[2], "job").await;
    are_ahead(&servers).await;
    let soon = in_an_hour();
    for is_missed in [false, true] {
        for server in &servers {
            if !record_in(server, "job").await.contains_key("unconfirmed") {
                candidacy(server).await;
            }
        }
        if is_missed {
            set(&servers[2], &missed).await;
        }
        for expires_at in [soon.as_str(), "1"] {
            for server in &servers[..2] {
                let expires = [("expiresAt", expires_at)];
                asked_of(server, redis::cmd("HSET").arg(KEY).arg(&expires)).await;
            }
            let lease = shown(&store).await;
            let told = (lease.token.number(), lease.holder.id.as_str(), lease.occupancy());
            assert_eq!(told, (LATER, "a", Occupancy::Vacant), "{is_missed}, {expires_at}");
            assert_eq!((lease.terms, lease.note.as_str()), (before.terms, ""));
            assert_ne!(
                lease.holder.incarnation, a.candidate.incarnation,
                "it is not kept"
            );
        }
    }
    let fence = RedisFence::connect(&servers[0].url(), Leases::Elsewhere).await;
    let bump = Bump {
        resource: ResourceName::new("ledger").expect("a name"),
        above: Some(shown(&store).await.token),
        lease: None,
    };
    let mark = fence.expect("a fence").bump(&bump).await.expect("bumped");
    assert!(mark.token.number() > LATER, "{mark:?}");
    let next = take(&store, &request("job", "c", seconds(300))).await;
    assert!(Some(next.token) > FencingToken::new(LATER).ok(), "{next:?}");
}

/// A name that nobody had before is none while it is only taken.
#[tokio::test]
async fn first_candidacy_of_a_name_is_told_as_no_term() {
    let servers = three().await;
    let store = quorum_at(&hosts(&servers)).await;
    had(&store, &servers, &mut request("job", "a", seconds(300))).await;
    for server in &servers {
        candidacy(server).await;
        let first = [("unconfirmed", "first"), ("generation", "1"), ("terms", "1")];
        asked_of(server, redis::cmd("HSET").arg(KEY).arg(&first)).await;
        let previous = ["previousOwner", "previousGeneration", "previousEnd", "previousAt"];
        asked_of(server, redis::cmd("HDEL").arg(KEY).arg(&previous)).await;
    }
    assert_eq!(store.get(&name("job")).await, Ok(None));
    assert_eq!(listed(&store).await, []);
}
