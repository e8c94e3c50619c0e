//! Who only looks: the rights in the README are enough to see everything, and change no record.

use crate::common::{Scratch, connection, giving_back, refused, renewal, request, seconds, take};
use tenure_core::{
    Ask, Fault, Fence, FenceError, FencingToken, Interest, LeaseStore, Leases, Page, ResourceName, Scope,
    StoreError, Term,
};
use tenure_redis::{RedisFence, RedisStore};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};

/// As in the README.
const LOOKS: &str = "+eval +evalsha +time +hmget +hget +exists +zrem +zrangebylex +subscribe +psubscribe +unsubscribe \
    +punsubscribe +ping +hello +select +role +info +config|get +acl|whoami";

#[tokio::test]
async fn who_only_looks_sees_everything_and_changes_no_record() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(RedisOptions::default().of(build)).await;
        looker_sees_and_changes_nothing(&server.expect("a server")).await;
    }
}

async fn looker_sees_and_changes_nothing(server: &RedisServer) {
    let scratch = Scratch::on(&server.url());
    let mut admin = connection(&server.url()).await;
    let prefix = &scratch.prefix;
    let (keys, channels) = (format!("~{{{prefix}}}:*"), format!("&{{{prefix}}}:changes:*"));
    let mut user = redis::cmd("ACL");
    let rights = [
        "SETUSER",
        "looker",
        "on",
        ">hunter2",
        &keys,
        "resetchannels",
        &channels,
    ];
    user.arg(&rights);
    let rights: Vec<&str> = LOOKS.split_whitespace().collect();
    let _set: String = user.arg(&rights).query_async(&mut admin).await.expect("a user");
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    let ledger = ResourceName::new("ledger").expect("a name");
    let term = Term {
        lease: asked.name.clone(),
        token,
    };
    let url = scratch.store_url();
    RedisFence::connect(&url, Leases::Here)
        .await
        .expect("a fence")
        .claim(&ledger, &term)
        .await
        .expect("claimed");
    let before = scratch.raw("job").await;

    let url = url.replace("redis://", "redis://looker:hunter2@");
    let looker = RedisStore::connect(&url).await.expect("connects");
    assert!(looker.get(&asked.name).await.expect("a read").is_some());
    let page = Page::first("", 10);
    assert_eq!(looker.list(&page).await.expect("a page").leases.len(), 1);
    for scope in [Scope::Name(asked.name.clone()), Scope::Prefix(String::new())] {
        looker.watch(&scope, Interest::Everything).await.expect("a watch");
    }
    let findings = looker.examine().await.expect("an examination");
    let worst = findings.iter().map(|finding| finding.verdict).max();
    assert!(worst < Some(tenure_core::Verdict::Bad), "{findings:?}");
    let fence = RedisFence::connect(&url, Leases::Here).await.expect("a fence");
    assert!(fence.mark(&ledger).await.expect("a mark").is_some());
    assert_eq!(fence.marks(None).await.expect("marks").marks.len(), 1);

    let rival = request("job", "rival", seconds(300));
    let wish = Ask {
        name: asked.name.clone(),
        token,
    };
    let refusals: [StoreError; 5] = [
        looker
            .acquire(&request("new", "rival", seconds(300)))
            .await
            .expect_err("acquired"),
        looker.acquire(&asked).await.expect_err("acquired again"),
        looker
            .renew(&[renewal(&asked, token)])
            .await
            .remove(0)
            .expect_err("renewed"),
        looker
            .release(&[giving_back(&asked, token)])
            .await
            .remove(0)
            .expect_err("released"),
        looker.ask(&wish).await.expect_err("asked"),
    ];
    for error in refusals {
        assert_eq!(error.fault, Fault::Forbidden, "{error}");
    }
    assert!(
        looker.acquire(&rival).await.is_ok(),
        "to hear who holds it is to look"
    );
    let later = Term {
        token: FencingToken::new(token.number() + 1).expect("a token"),
        ..term
    };
    assert!(fence.claim(&ledger, &later).await.is_err());
    assert_eq!(scratch.raw("job").await, before);
    assert!(scratch.raw("new").await.is_empty());
}

/// A record that may not be read is not one that must be mended: whoever removed it would end a term.
#[tokio::test]
async fn who_may_not_read_records_is_not_told_that_they_are_unreadable() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(RedisOptions::default().of(build)).await;
        let server = server.expect("a server");
        let scratch = Scratch::on(&server.url());
        let asked = request("job", "a", seconds(300));
        let token = take(&scratch.store().await, &asked).await.token;
        let term = Term::new(asked.name.clone(), token);
        let ledger = ResourceName::new("ledger").expect("a name");
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        fence.claim(&ledger, &term).await.expect("claimed");
        let mut admin = connection(&server.url()).await;
        let rights = [
            "SETUSER", "blind", "on", ">hunter2", "~*", "&*", "+@all", "-hmget",
        ];
        let user = redis::cmd("ACL").arg(&rights).to_owned();
        let _set: String = user.query_async(&mut admin).await.expect("a user");
        let url = scratch.store_url().replace("redis://", "redis://blind:hunter2@");
        let blind = RedisStore::connect(&url).await.expect("connects");
        let page = Page::first("", 10);
        let fence = RedisFence::connect(&url, Leases::Here).await.expect("a fence");
        let errors = [
            blind.acquire(&asked).await.expect_err("read"),
            blind.get(&asked.name).await.expect_err("read"),
            blind.list(&page).await.expect_err("read"),
            blind
                .renew(&[renewal(&asked, token)])
                .await
                .remove(0)
                .expect_err("read"),
            fence_error(fence.check(&ledger, &term).await),
            fence_error(fence.marks(None).await.map(drop)),
        ];
        for error in errors {
            assert_eq!(error.fault, Fault::Forbidden, "{build:?}: {error}");
        }
    }
}

/// To read a record takes fewer rights than to lead.
#[tokio::test]
async fn examination_names_the_rights_that_whoever_leads_lacks() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(RedisOptions::default().of(build)).await;
        let server = server.expect("a server");
        let mut admin = connection(&server.url()).await;
        let url = server.url().replace("redis://", "redis://user:hunter2@");
        for (rights, missing) in [
            (["~*", "&*", "-hset", "-zadd"], "hset, zadd"),
            (
                ["~*", "resetchannels", "&other:*", "+ping"],
                "publish, subscribe, psubscribe",
            ),
            // It leads, and hears of no release while it stands by; nor is it shown who leads.
            (
                [
                    "~*",
                    "resetchannels",
                    "&{tenure}:changes:tenure-examination",
                    "-zrangebylex",
                ],
                "psubscribe, zrangebylex",
            ),
            (["~*", "&*", "-hget", "-subscribe"], "hget, subscribe"),
        ] {
            let user = ["SETUSER", "user", "reset", "on", ">hunter2", "+@all"];
            let user = redis::cmd("ACL").arg(&user).arg(&rights).to_owned();
            let _set: String = user.query_async(&mut admin).await.expect("a user");
            let store = RedisStore::connect(&url).await.expect("connects");
            let findings = store.examine().await.expect("an examination");
            let told = findings.iter().find(|finding| finding.subject == "privileges");
            let told = told.expect("a finding");
            assert_eq!(told.verdict, tenure_core::Verdict::Warning, "{build:?}: {told:?}");
            assert!(told.detail.ends_with(missing), "{build:?}: {told:?}");
        }
    }
}

fn fence_error(told: Result<(), FenceError>) -> StoreError {
    match told {
        Err(FenceError::Store(error)) => error,
        told => panic!("{told:?}"),
    }
}

/// Redis knows databases by number, and has sixteen unless it is told otherwise.
#[tokio::test]
async fn database_that_the_server_does_not_have_is_an_invalid_url() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        for (settings, database) in [("", 99), ("--cluster-enabled yes", 3)] {
            let server = RedisServer::start(RedisOptions::with(settings).of(build))
                .await
                .expect("a server");
            let error = refused(&format!("{}/{database}", server.url())).await;
            assert_eq!(error.fault, Fault::Invalid, "{build:?} {settings}: {error}");
            assert!(
                error.message.contains(&format!("no database {database}"))
                    && error.message.contains("leave it out"),
                "{error}"
            );
        }
    }
}
