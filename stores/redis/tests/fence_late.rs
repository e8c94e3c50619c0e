//! What reaches a mark late, after somebody else has changed it.

use crate::common::{Scratch, shared};
use std::time::Duration;
use tenure_core::{Claimed, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_redis::{FencedWrites, RedisFence};
use tenure_testkit::{FaultProxy, RedisBuild, RequestFault, eventually_async};

const BUILDS: [RedisBuild; 2] = [RedisBuild::Redis, RedisBuild::Valkey];

/// How long something is waited for, on a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

/// How late a request arrives once more.
const LATE: Duration = Duration::from_millis(1_500);

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("nightly").expect("a name"), token(number))
}

async fn fence_at(scratch: &Scratch) -> RedisFence {
    RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence")
}

/// A claim looks and then raises what it has found: what it has found may be over when it raises.
#[tokio::test]
async fn claim_that_arrives_again_after_a_later_one_lowers_no_mark() {
    for build in BUILDS {
        let server = shared(build).await;
        let proxy = FaultProxy::redis(server.address()).expect("a proxy");
        let scratch = Scratch::on(&server.url());
        let through = Scratch {
            url: format!("redis://{}", proxy.address()),
            prefix: scratch.prefix.clone(),
        };
        let (direct, late) = (fence_at(&scratch).await, fence_at(&through).await);
        // So that the server knows both scripts, and each is one request.
        let warm = ResourceName::new("warm").expect("a name");
        late.claim(&warm, &term(1)).await.expect("a claim");
        proxy.next_commands(2, "EVALSHA", RequestFault::DuplicateLater(LATE));
        let claimed = late.claim(&ledger(), &term(5)).await;
        assert_eq!(claimed, Ok(Claimed::Raised { from: None }), "{build:?}");
        assert_eq!(proxy.faults_left(), 0, "nothing is late");
        let from = Some(token(5));
        let claimed = direct.claim(&ledger(), &term(9)).await;
        assert_eq!(claimed, Ok(Claimed::Raised { from }), "{build:?}");
        let arrived = async || proxy.counts().duplicated == 2;
        eventually_async(BOUND, "the duplicates", arrived).await;
        let mark = direct.mark(&ledger()).await.expect("a look").expect("a mark");
        assert_eq!(mark.token, token(9), "{build:?}: the mark fell");
        let data = format!("{{{}}}:balance", scratch.prefix);
        let writes = FencedWrites::new().command(&[&data], ["INCR", &data]);
        let stale = late.write(&ledger(), &term(5), &writes).await;
        assert!(
            matches!(stale, Err(FenceError::Stale { .. })),
            "{build:?}: {stale:?}"
        );
    }
}

/// Each raises what it has found, and looks again where another was faster.
#[tokio::test]
async fn claims_at_once_of_one_mark_in_redis_end_with_the_latest_and_none_breaks_off() {
    for build in BUILDS {
        let scratch = Scratch::on(&shared(build).await.url());
        let mut fences = Vec::new();
        for _ in 0..6 {
            fences.push(fence_at(&scratch).await);
        }
        for round in 0..20 {
            let resource = ResourceName::new(format!("ledger-{round}")).expect("a name");
            let terms: Vec<Term> = (1..=6).map(term).collect();
            let claims = fences.iter().zip(&terms);
            let claims = claims.map(|(fence, term)| fence.claim(&resource, term));
            let claimed = futures_util::future::join_all(claims).await;
            for claimed in &claimed {
                let is_decided = matches!(claimed, Ok(_) | Err(FenceError::Stale { .. }));
                assert!(is_decided, "{build:?}: {claimed:?}");
            }
            assert!(claimed[5].is_ok(), "{build:?}: {claimed:?}");
            let mark = fences[0].mark(&resource).await.expect("a look").expect("a mark");
            assert_eq!(mark.token, token(6), "{build:?}");
        }
    }
}
