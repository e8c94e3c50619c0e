//! One server that is a member of a quorum, named alone: whoever led by it would lead beside whoever leads by
//! the quorum. As while programs are brought from the one to the other, or by a URL that was forgotten.

use crate::common::{
    BOUND, connection, giving_back, granted, hosts, in_every_member, name, quorum_at, renewal, request,
    seconds, take, three_servers, unused_for_a_day,
};
use tenure_conformance::asking::finding;
use tenure_core::{
    Ask, Certainty, Fault, Fence, FenceError, Interest, LeasePurge, LeaseStore, Leases, Page, Purging,
    Released, ResourceName, Scope, StoreError, Term, Verdict,
};
use tenure_redis::{RedisFence, RedisStore};
use tenure_testkit::{RedisServer, eventually_async};

#[track_caller]
fn names_the_quorum(error: &StoreError, servers: &[RedisServer]) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Invalid, Certainty::NotApplied),
        "{error}"
    );
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    assert!(
        hosts.iter().all(|host| error.message.contains(host.as_str())),
        "{error}"
    );
    assert!(error.message.contains("redis+quorum://"), "{error}");
}

#[tokio::test]
async fn member_of_a_quorum_gives_no_lease_away_alone() {
    let servers = three_servers().await;
    // Connected before there was a quorum, and after.
    let before = RedisStore::connect(&servers[0].url()).await.expect("a server");
    let quorum = quorum_at(&hosts(&servers)).await;
    let asked = request("job", "a", seconds(300));
    let token = take(&quorum, &asked).await.token;
    in_every_member(&servers, token).await;
    let after = RedisStore::connect(&servers[0].url()).await.expect("a server");
    let rival = request("other", "b", seconds(300));
    for store in [&before, &after] {
        names_the_quorum(&store.acquire(&rival).await.expect_err("granted"), &servers);
    }
    let key = "{tenure}:lease:other";
    let exists = redis::cmd("EXISTS").arg(key).to_owned();
    let exists: bool = exists
        .query_async(&mut connection(&servers[0].url()).await)
        .await
        .expect("an answer");
    assert!(!exists);
    let renewed = after.renew(&[renewal(&asked, token)]).await.remove(0);
    names_the_quorum(&renewed.expect_err("renewed"), &servers);
    let wish = Ask {
        name: asked.name.clone(),
        token,
    };
    names_the_quorum(&after.ask(&wish).await.expect_err("asked"), &servers);
    let clean_up = unused_for_a_day(Purging::Removes);
    names_the_quorum(&after.purge(&clean_up).await.expect_err("removed"), &servers);

    // Whoever only looks is told what this one has.
    let lease = after.get(&asked.name).await.expect("a look").expect("a lease");
    assert_eq!(lease.token, token);
    let page = Page::first("", 10);
    assert_eq!(after.list(&page).await.expect("a page").leases.len(), 1);
    after
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .expect("a watch");
    let told = finding(&after, "topology").await;
    assert_eq!(told.verdict, Verdict::Bad, "{told:?}");
    assert!(told.detail.contains("a member of the quorum"), "{told:?}");
    let fence = async |leases| {
        let fence = RedisFence::connect(&servers[0].url(), leases).await;
        fence.expect("a fence")
    };
    let (ledger, term) = (
        ResourceName::new("ledger").expect("a name"),
        Term::new(name("job"), token),
    );
    match fence(Leases::Here).await.claim(&ledger, &term).await {
        Err(FenceError::Store(error)) => {
            names_the_quorum(&error, &servers);
            assert!(error.message.contains("needs Leases::Elsewhere"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    fence(Leases::Elsewhere)
        .await
        .claim(&ledger, &term)
        .await
        .expect("claimed");
}

/// The quorum waits for it; then it is the quorum's.
#[tokio::test]
async fn leader_of_one_server_ends_its_term_before_a_quorum_with_it_begins() {
    let servers = three_servers().await;
    let alone = RedisStore::connect(&servers[0].url()).await.expect("a server");
    let standby = RedisStore::connect(&servers[0].url()).await.expect("a server");
    let asked = request("job", "a", seconds(300));
    let token = take(&alone, &asked).await.token;
    let quorum = quorum_at(&hosts(&servers)).await;
    let (rival, waiting) = (
        request("job", "b", seconds(300)),
        request("other", "c", seconds(300)),
    );
    quorum.acquire(&rival).await.expect_err("two lead");
    let renewed = alone.renew(&[renewal(&asked, token)]).await.remove(0);
    renewed.expect("it leads on");
    let released = alone.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let grant = granted(eventually_async(BOUND, "a term", || quorum.acquire(&rival)).await);
    assert!(grant.token > token);
    names_the_quorum(&standby.acquire(&waiting).await.expect_err("two lead"), &servers);
}
