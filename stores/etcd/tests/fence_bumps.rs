//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{
    Scratch, give_back, giving_back, pauses, put, remove, request, seconds, shared, take, value,
};
use crate::faults::BOUND;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, Mark,
    ResourceName, Term,
};
use tenure_etcd::{EtcdFence, Fenced, FencedTransaction};
use tenure_testkit::{Fault as ProxyFault, FaultProxy, RequestFault, eventually_async};

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).expect("a name"), token(number))
}

fn bump() -> Bump {
    Bump {
        resource: ledger(),
        above: None,
        lease: None,
    }
}

async fn scratch() -> (Scratch, EtcdFence) {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    (scratch, fence)
}

/// A mark that term 7 of "nightly" had claimed before it was bumped.
async fn bumped_after_a_claim() -> (Scratch, EtcdFence, Mark) {
    let (scratch, fence) = scratch().await;
    let claimed = fence.claim(&ledger(), &term("nightly", 7)).await;
    claimed.expect("a claim");
    let mark = fence.bump(&bump()).await.expect("bumped");
    (scratch, fence, mark)
}

fn mark_key(scratch: &Scratch) -> String {
    format!("{}/fence/ledger", scratch.prefix)
}

async fn stored(scratch: &Scratch) -> Option<String> {
    value(shared().await, 0, &mark_key(scratch))
}

async fn write(scratch: &Scratch, fence: &EtcdFence, term: &Term) -> Result<Fenced, FenceError> {
    let transaction = FencedTransaction::new().put(data(scratch), "1");
    fence.write(&ledger(), term, &transaction).await
}

fn data(scratch: &Scratch) -> String {
    format!("{}-balance", scratch.prefix)
}

#[tokio::test]
async fn a_mark_in_etcd_that_was_bumped_admits_nobody_of_its_own_number_until_it_is_claimed() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    let same = term("nightly", mark.token.number());
    for refused in [
        fence.check(&ledger(), &same).await,
        write(&scratch, &fence, &same).await.map(drop),
    ] {
        assert!(
            matches!(refused, Err(FenceError::Unclaimed { .. })),
            "{refused:?}"
        );
    }
    // What another client compares.
    let condition = String::from_utf8(fence.condition(&ledger(), &same).value).expect("a text");
    assert_ne!(stored(&scratch).await.as_ref(), Some(&condition));
    assert_eq!(value(shared().await, 0, &data(&scratch)), None);
    // It may be the very next token that its lease grants.
    let from = Some(mark.token);
    assert_eq!(fence.claim(&ledger(), &same).await, Ok(Claimed::Raised { from }));
    assert_eq!(fence.claim(&ledger(), &same).await, Ok(Claimed::Already));
    assert_eq!(fence.check(&ledger(), &same).await, Ok(()));
    let written = write(&scratch, &fence, &same).await;
    assert!(matches!(written, Ok(Fenced::Written { .. })), "{written:?}");
    assert_eq!(stored(&scratch).await, Some(condition));
}

#[tokio::test]
async fn a_bumped_mark_in_etcd_still_belongs_to_its_lease() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    assert_eq!(mark.lease, Some(term("nightly", 7).lease));
    for number in [mark.token.number(), mark.token.number() + 1] {
        let foreign = term("hourly", number);
        for refused in [
            fence.claim(&ledger(), &foreign).await.map(drop),
            fence.check(&ledger(), &foreign).await,
            write(&scratch, &fence, &foreign).await.map(drop),
        ] {
            assert!(matches!(refused, Err(FenceError::Foreign { .. })), "{refused:?}");
        }
    }
    // Bumped again, and bound to the other lease.
    let bump = Bump {
        lease: Some(term("hourly", 1).lease),
        ..bump()
    };
    let moved = fence.bump(&bump).await.expect("bumped");
    assert_eq!(moved.lease, bump.lease);
    let claimed = fence
        .claim(&ledger(), &term("hourly", moved.token.number()))
        .await;
    let from = Some(moved.token);
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
}

/// The revision is above every token that the lease was granted: the clock would refuse its next one for
/// ever.
#[tokio::test]
async fn a_mark_in_etcd_whose_lease_has_no_record_is_bumped_to_the_revision() {
    let (scratch, fence) = scratch().await;
    let (store, etcd) = (scratch.store().await, shared().await);
    let asked = request("nightly", "a", seconds(60));
    let before = take(&store, &asked).await.token;
    let resources = ["claimed", "fresh"].map(|name| ResourceName::new(name).expect("a name"));
    let old = Term::new(asked.name.clone(), before);
    fence.claim(&resources[0], &old).await.expect("a claim");
    let released = store.release(&[giving_back(&asked, before)]).await.remove(0);
    released.expect("released");
    let record = scratch.key("nightly", "");
    assert!(remove(etcd, 0, &record, &format!("{record}\u{a}")) > 0);
    for resource in &resources {
        let bump = Bump {
            resource: resource.clone(),
            lease: Some(asked.name.clone()),
            ..bump()
        };
        let mark = fence.bump(&bump).await.expect("bumped");
        assert!(mark.token > before, "{mark:?}");
        let refused = fence.claim(resource, &old).await;
        assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    }
    let next = take(&store, &request("nightly", "b", seconds(60))).await.token;
    for resource in &resources {
        let claimed = fence.claim(resource, &Term::new(asked.name.clone(), next)).await;
        assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    }
}

#[tokio::test]
async fn a_mark_in_etcd_of_leases_elsewhere_that_count_is_bumped_by_counting() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Elsewhere).await;
    let fence = fence.expect("a fence");
    fence
        .claim(&ledger(), &term("nightly", 7))
        .await
        .expect("a claim");
    let mark = fence.bump(&bump()).await.expect("bumped");
    assert_eq!(mark.token, token(8));
    // Tokens that follow the clock: above the clock, and above them.
    let clocked = Bump {
        above: Some(token(1_000_000_000_000)),
        ..bump()
    };
    let mark = fence.bump(&clocked).await.expect("bumped");
    assert!(mark.token > token(1_700_000_000_000), "{mark:?}");
    // Nothing is known of the tokens.
    let fresh = Bump {
        resource: ResourceName::new("fresh").expect("a name"),
        ..bump()
    };
    let mark = fence.bump(&fresh).await.expect("bumped");
    assert!(mark.token > token(1_700_000_000_000), "{mark:?}");
}

#[tokio::test]
async fn a_mark_in_etcd_of_an_earlier_tenure_is_read() {
    let (scratch, fence) = scratch().await;
    let (key, etcd, holder) = (mark_key(&scratch), shared().await, term("nightly", 9));
    put(etcd, 0, &key, r#"{"lease":"nightly","token":9}"#);
    assert_eq!(fence.claim(&ledger(), &holder).await, Ok(Claimed::Already));
    let written = write(&scratch, &fence, &holder).await;
    assert!(matches!(written, Ok(Fenced::Written { .. })), "{written:?}");
    // One that an operator had raised before anybody claimed.
    put(etcd, 0, &key, r#"{"token":9}"#);
    let refused = fence.check(&ledger(), &holder).await;
    assert!(
        matches!(refused, Err(FenceError::Unclaimed { .. })),
        "{refused:?}"
    );
    let from = Some(holder.token);
    assert_eq!(
        fence.claim(&ledger(), &holder).await,
        Ok(Claimed::Raised { from })
    );
}

#[tokio::test]
async fn a_claim_in_etcd_leaves_nothing_of_the_bump_in_the_mark() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    let number = mark.token.number();
    let bumped = format!(r#"{{"bumped":{number},"lease":"nightly","token":{number}}}"#);
    assert_eq!(stored(&scratch).await, Some(bumped));
    fence
        .claim(&ledger(), &term("nightly", number))
        .await
        .expect("a claim");
    let claimed = format!(r#"{{"lease":"nightly","token":{number}}}"#);
    assert_eq!(stored(&scratch).await, Some(claimed));
    // No term compares a mark that was bumped to another number than its own, nor one without a lease that
    // was bumped.
    for damage in [
        r#"{"bumped":8,"lease":"nightly","token":9}"#,
        r#"{"bumped":9,"token":9}"#,
    ] {
        put(shared().await, 0, &mark_key(&scratch), damage);
        let refused = fence.claim(&ledger(), &term("nightly", 9)).await;
        assert!(
            matches!(&refused, Err(FenceError::Store(error)) if error.fault == Fault::Unreadable),
            "{refused:?}"
        );
        assert_eq!(stored(&scratch).await.as_deref(), Some(damage));
    }
}

#[tokio::test]
async fn bump_in_etcd_that_is_not_heard_of_after_it_was_made_is_unknown() {
    let (scratch, direct, before) = bumped_after_a_claim().await;
    let proxy = FaultProxy::http2(shared().await.address(0)).expect("a proxy");
    let beside = Scratch {
        url: format!("etcd://{}", proxy.address()),
        ..scratch
    };
    let proxied = EtcdFence::connect(&beside.store_url(), Leases::Here)
        .await
        .expect("a fence");
    proxied.mark(&ledger()).await.expect("it answers");
    // It looks twice, raises, and looks; nothing happens to the first three as long as the test runs.
    proxy.next_requests(3, RequestFault::DuplicateLater(Duration::from_secs(3_600)));
    proxy.next_requests(1, RequestFault::CutBefore);
    let error = proxied.bump(&bump()).await.expect_err("the look was cut");
    assert_eq!(proxy.counts().cut_before, 1, "the fault happened");
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    let after = direct.mark(&ledger()).await.expect("it answers").expect("a mark");
    assert!(after.token > before.token, "{after:?}");
}

/// As a lock that is never idle: whoever closes a resource need not end the work first.
#[tokio::test]
async fn a_mark_in_etcd_is_bumped_although_its_lease_changes_hands_under_each_look() {
    let proxy = FaultProxy::http2(shared().await.address(0)).expect("a proxy");
    let direct = Scratch::new().await;
    let through = Scratch {
        url: format!("etcd://{}", proxy.address()),
        ..direct.clone()
    };
    let fence = EtcdFence::connect(&through.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let other = direct.store().await;
    let asked = request("nightly", "worker", seconds(60));
    let bump = Bump {
        lease: Some(asked.name.clone()),
        ..bump()
    };
    assert_eq!(fence.mark(&bump.resource).await, Ok(None));
    proxy.set(ProxyFault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(20),
    });
    let mut working = asked;
    let mut work = async || {
        working.attempt = working.attempt.next();
        let token = take(&other, &working).await.token;
        give_back(&other, &working, token).await;
        Term::new(working.name.clone(), token)
    };
    let before = work().await;
    let mark = tokio::select! {
        bumped = fence.bump(&bump) => bumped.expect("bumped"),
        () = async { loop { work().await; } } => unreachable!("it goes on"),
    };
    proxy.heal();
    assert!(mark.token > before.token, "{mark:?}");
    let refused = fence.claim(&bump.resource, &before).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    // Its next terms pass the mark.
    let mut later = work().await;
    while later.token <= mark.token {
        later = work().await;
    }
    let claimed = fence.claim(&bump.resource, &later).await;
    let from = Some(mark.token);
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
}

/// As a leader is, whom nobody has stopped before: its term was there before the bump was done.
#[tokio::test]
async fn term_that_is_granted_while_a_mark_in_etcd_is_bumped_is_not_admitted() {
    let proxy = FaultProxy::http2(shared().await.address(0)).expect("a proxy");
    let direct = Scratch::new().await;
    let through = Scratch {
        url: format!("etcd://{}", proxy.address()),
        ..direct.clone()
    };
    let fence = Arc::new(
        EtcdFence::connect(&through.store_url(), Leases::Here)
            .await
            .expect("a fence"),
    );
    let other = direct.store().await;
    for (round, pause) in (0..).zip(pauses()) {
        let asked = request(&format!("job-{round}"), "leader", seconds(60));
        let bump = Bump {
            resource: ResourceName::new(format!("ledger-{round}")).expect("a name"),
            above: None,
            lease: Some(asked.name.clone()),
        };
        // It is connected, and has nothing to learn.
        assert_eq!(fence.mark(&bump.resource).await, Ok(None));
        let sent = proxy.counts().requests;
        proxy.set(ProxyFault::Delay {
            to_server: Duration::ZERO,
            to_client: pause,
        });
        let bumping = tokio::spawn({
            let (fence, bump) = (Arc::clone(&fence), bump.clone());
            async move { fence.bump(&bump).await }
        });
        let arrived = async || (proxy.counts().requests > sent).then_some(());
        eventually_async(BOUND, "a request", arrived).await;
        // It has looked, and the answer is on the way.
        let granted = take(&other, &asked).await.token;
        let is_between = proxy.counts().requests == sent + 1;
        let mark = bumping.await.expect("no panic").expect("bumped");
        proxy.heal();
        // Otherwise it may be a term that came after the bump.
        if is_between {
            let refused = fence.claim(&bump.resource, &Term::new(asked.name, granted)).await;
            assert!(
                matches!(refused, Err(FenceError::Stale { .. })) && mark.token > granted,
                "{mark:?}, {refused:?}"
            );
            return;
        }
    }
    panic!("the machine stalled each time");
}
