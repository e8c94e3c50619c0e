//! A field of many megabytes, by hand or by another program: the server would answer each request with all of
//! it, for longer than other leases last.

use crate::common::{Scratch, connection, giving_back, renewal, request, seconds, take};
use tenure_core::{
    Acquired, Ask, Fault, Fence, FenceError, LeaseStore, Leases, Listed, Note, Page, Released, Renewed,
    ResourceName, StoreError, Term,
};
use tenure_redis::{FencedWrites, RedisFence};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};

/// What all answers together may have, in bytes.
const TOLD_MAX: u64 = 200_000;

const HUGE: usize = 8 * 1_000_000;

async fn told_by(server: &RedisServer) -> u64 {
    let info = server.ask_all("INFO stats").expect("asked");
    let bytes = info
        .lines()
        .find_map(|line| line.strip_prefix("total_net_output_bytes:"));
    bytes.expect("it tells").trim().parse().expect("a number")
}

async fn set(server: &RedisServer, key: &str, field: &str, value: &str) {
    let set = redis::cmd("HSET").arg(key).arg(field).arg(value).to_owned();
    let _set: i64 = set
        .query_async(&mut connection(&server.url()).await)
        .await
        .expect("set");
}

#[tokio::test]
async fn huge_field_of_a_record_is_told_in_few_bytes() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(RedisOptions::default().of(build))
            .await
            .expect("a server");
        let scratch = Scratch::on(&server.url());
        let store = scratch.store().await;
        let asked = request("job", "a", seconds(300));
        let token = take(&store, &asked).await.token;
        // Three bytes each, so that none of them is cut through.
        set(&server, &scratch.key("job"), "owner", &"€".repeat(HUGE / 3)).await;
        let before = told_by(&server).await;
        let wish = Ask {
            name: asked.name.clone(),
            token,
        };
        let page = Page::first("", 10);
        let listed = match store.list(&page).await.expect("a page").leases.remove(0) {
            Listed::Unreadable { error, .. } => error,
            other => panic!("{other:?}"),
        };
        let errors: [StoreError; 6] = [
            store
                .acquire(&request("job", "b", seconds(300)))
                .await
                .expect_err("acquired"),
            store
                .renew(&[renewal(&asked, token)])
                .await
                .remove(0)
                .expect_err("renewed"),
            store
                .release(&[giving_back(&asked, token)])
                .await
                .remove(0)
                .expect_err("released"),
            store.ask(&wish).await.expect_err("asked"),
            store.get(&asked.name).await.expect_err("read"),
            listed,
        ];
        for error in errors {
            assert_eq!(error.fault, Fault::Unreadable, "{error}");
            assert!(error.message.contains("\"owner\""), "{error}");
        }
        let told = told_by(&server).await - before;
        assert!(told < TOLD_MAX, "{build:?}: {told} bytes");
    }
}

/// It decides nothing, and keeps nobody from anything.
#[tokio::test]
async fn huge_note_is_told_in_few_bytes_and_its_lease_used_like_any_other() {
    let server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    let scratch = Scratch::on(&server.url());
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    let huge = "€".repeat(HUGE / 3);
    set(&server, &scratch.key("job"), "note", &huge).await;
    let before = told_by(&server).await;
    let lease = store.get(&asked.name).await.expect("read").expect("a lease");
    assert_eq!(lease.note, Note::beginning_of(&huge));
    let held = store.acquire(&request("job", "b", seconds(300))).await;
    assert!(matches!(held, Ok(Acquired::Held(_))), "{held:?}");
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let next = take(&store, &request("job", "b", seconds(300))).await;
    assert!(next.token > token, "{next:?}");
    let told = told_by(&server).await - before;
    assert!(told < TOLD_MAX, "{told} bytes");
}

#[tokio::test]
async fn huge_field_of_a_mark_is_told_in_few_bytes() {
    let server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    let scratch = Scratch::on(&server.url());
    let asked = request("job", "a", seconds(300));
    let token = take(&scratch.store().await, &asked).await.token;
    let (ledger, term) = (
        ResourceName::new("ledger").expect("a name"),
        Term::new(asked.name.clone(), token),
    );
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    fence.claim(&ledger, &term).await.expect("claimed");
    let mark = format!("{{{}}}:fence:ledger", scratch.prefix);
    set(&server, &mark, "token", &"7".repeat(HUGE)).await;
    let before = told_by(&server).await;
    let none = FencedWrites::new();
    let errors = [
        fence.claim(&ledger, &term).await.expect_err("claimed"),
        fence.check(&ledger, &term).await.expect_err("checked"),
        fence.write(&ledger, &term, &none).await.expect_err("written"),
        fence.mark(&ledger).await.expect_err("read"),
    ];
    for error in errors {
        match error {
            FenceError::Store(error) => assert_eq!(error.fault, Fault::Unreadable, "{error}"),
            other => panic!("{other}"),
        }
    }
    fence.marks(None).await.expect("a page");
    let told = told_by(&server).await - before;
    assert!(told < TOLD_MAX, "{told} bytes");
}
