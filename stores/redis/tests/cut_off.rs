//! A primary without the replicas that it must have, as one that is cut off from its sentinels and replicas
//! while another rules: for all that it knows, it is the primary.

use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use tenure_core::{
    Ask, Certainty, Fault, Fence, FenceError, FencingToken, LeaseStore, Leases, Page, Renewed, ResourceName,
    StoreError, Term,
};
use tenure_redis::{FencedScript, FencedWrites, RedisFence};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};

const BUILDS: [RedisBuild; 2] = [RedisBuild::Redis, RedisBuild::Valkey];

async fn server(build: RedisBuild) -> RedisServer {
    let started = RedisServer::start(RedisOptions::default().of(build)).await;
    started.expect("a server")
}

/// From now on it must have so many replicas, and it has none.
fn needs(server: &RedisServer, replicas: u32) {
    let set = server.ask(&format!("CONFIG SET min-replicas-to-write {replicas}"));
    assert_eq!(set.expect("asked"), "+OK");
}

#[track_caller]
fn says_what_it_lacks(error: &StoreError) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Busy, Certainty::NotApplied),
        "{error}"
    );
    assert!(error.message.contains("min-replicas-to-write"), "{error}");
}

#[tokio::test]
async fn primary_without_the_replicas_that_it_must_have_decides_nothing() {
    for build in BUILDS {
        let server = server(build).await;
        let store = Scratch::on(&server.url()).store().await;
        let asked = request("job", "a", seconds(600));
        let token = take(&store, &asked).await.token;
        needs(&server, 1);
        let earlier = FencingToken::new(token.number() - 1).expect("a token");
        let wish = Ask {
            name: asked.name.clone(),
            token: earlier,
        };
        let page = Page::first("", 10);
        for (lease, label) in [("other", "b"), ("job", "b")] {
            let rival = request(lease, label, seconds(600));
            says_what_it_lacks(&store.acquire(&rival).await.expect_err("decided"));
        }
        says_what_it_lacks(&store.acquire(&asked).await.expect_err("granted again"));
        for of in [token, earlier] {
            let renewed = store.renew(&[renewal(&asked, of)]).await.remove(0);
            says_what_it_lacks(&renewed.expect_err("decided"));
            let released = store.release(&[giving_back(&asked, of)]).await.remove(0);
            says_what_it_lacks(&released.expect_err("decided"));
        }
        says_what_it_lacks(&store.ask(&wish).await.expect_err("not held"));
        says_what_it_lacks(&store.get(&asked.name).await.expect_err("read"));
        says_what_it_lacks(&store.list(&page).await.expect_err("listed"));
        needs(&server, 0);
        let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{build:?}: {renewed:?}"
        );
    }
}

/// Elsewhere a later term may have claimed, and what is read here may be written there.
#[tokio::test]
async fn primary_without_the_replicas_that_it_must_have_lets_nobody_in() {
    for build in BUILDS {
        let server = server(build).await;
        let scratch = Scratch::on(&server.url());
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        let ledger = ResourceName::new("ledger").expect("a name");
        let [over, term] = [4, 5].map(|number| {
            let token = FencingToken::new(number).expect("a token");
            Term::new(request("job", "a", seconds(60)).name, token)
        });
        fence.claim(&ledger, &term).await.expect("a claim");
        needs(&server, 1);
        let data = format!("{{{}}}:balance", scratch.prefix);
        let none: [&str; 0] = [];
        for command in ["GET", "INCR"] {
            let writes = FencedWrites::new().command(&[&data], [command, &data]);
            let script = FencedScript::new(&format!("return redis.pcall('{command}', KEYS[1])"));
            for term in [&over, &term] {
                let refused = [
                    fence.check(&ledger, term).await,
                    fence.write(&ledger, term, &writes).await.map(drop),
                    fence.run(&ledger, term, &script, &[&data], &none).await.map(drop),
                ];
                for refused in refused {
                    match refused {
                        Err(FenceError::Store(error)) => says_what_it_lacks(&error),
                        told => panic!("{build:?}: {command} of {term}: {told:?}"),
                    }
                }
            }
        }
    }
}
