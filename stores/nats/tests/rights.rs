//! Rights that a server takes away, or never gave: what is said of a write that was stored all the same.

use crate::common::{Beneath, Scratch, name, request, seconds, take};
use std::time::Duration;
use tenure_core::{
    Certainty, Fence, FenceError, FencingToken, Interest, LeaseStore, Leases, ResourceName, Scope, Term,
    Verdict,
};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{Fault, FaultProxy, NatsOptions, NatsServer, eventually_async};

/// Rounds in which a denial may meet a write.
const ROUNDS: usize = 20;

fn users(subscribe: &str) -> String {
    format!(
        "authorization {{ users: [ {{ user: all, password: p }}\n\
         {{ user: some, password: p, permissions: {{ publish: \">\", subscribe: {subscribe} }} }} ] }}\n\
         no_auth_user: all\n"
    )
}

#[tokio::test]
async fn write_whose_answer_may_no_longer_be_heard_is_unknown() {
    let hears = users("\">\"");
    let mut server = NatsServer::start(NatsOptions::default().with(&hears))
        .await
        .expect("a server");
    let proxy = FaultProxy::nats(server.address()).expect("a proxy");
    let url = |user: &str, address: &str| format!("nats://{user}:p@{address}/app");
    let fence = NatsFence::connect(&url("some", &proxy.address().to_string()), Leases::Elsewhere).await;
    let fence = fence.expect("a fence");
    let ledger = ResourceName::new("ledger").expect("a name");
    let term = Term::new(name("job"), FencingToken::new(7).expect("a token"));
    fence.claim(&ledger, &term).await.expect("claimed");
    // The write is on its way while the right goes.
    proxy.set(Fault::Hold);
    let began = server.look("/varz").expect("it tells")["config_load_time"].clone();
    let writing = fence.put(&ledger, &term, "balance", "1");
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.reload(&users("{ deny: \"_INBOX.>\" }")).expect("reloaded");
        eventually_async(Duration::from_secs(60), "the other configuration", || async {
            let told = server.look("/varz").map_err(|error| error.to_string())?;
            if told["config_load_time"] == began {
                Err(told.to_string())
            } else {
                Ok(())
            }
        })
        .await;
        proxy.heal();
    };
    let (written, ()) = tokio::join!(writing, meanwhile);
    let error = written.expect_err("its answer is not heard");
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    let beneath = Beneath::connect(&server.url(), "app").await;
    eventually_async(Duration::from_secs(60), "the message", || async {
        beneath.last("balance").await
    })
    .await;
}

/// Watches have inboxes of their own.
#[tokio::test]
async fn watch_that_may_not_be_heard_says_so_and_fails_no_write() {
    let server = NatsServer::start(NatsOptions::default().with(&users("\"_INBOX.*.*\"")))
        .await
        .expect("a server");
    let store = NatsStore::connect(&format!("nats://some:p@{}/app", server.address())).await;
    let store = store.expect("it may ask");
    take(&store, &request("first", "a", seconds(300))).await;
    for round in 0..ROUNDS {
        let (scope, asked) = (
            Scope::Prefix(String::new()),
            request(&format!("job-{round}"), "a", seconds(300)),
        );
        let (watch, granted) = tokio::join!(store.watch(&scope, Interest::Everything), store.acquire(&asked));
        assert!(granted.is_ok(), "in round {round}: {granted:?}");
        let told = match watch {
            Ok(mut watch) => loop {
                if let Err(error) = watch.next().await {
                    break error;
                }
            },
            Err(error) => error,
        };
        assert!(told.message.contains("rights"), "{told}");
    }
}

/// What asks for a watch is answered, and nobody is ever woken: its inbox may not be heard, or is the one of
/// another account.
#[tokio::test]
async fn examination_tells_of_a_watch_that_nobody_can_hear() {
    let accounts = "accounts {\n\
                    A { jetstream: enabled, users: [ { user: owner, password: p } ]\n\
                    exports: [ { service: \"$JS.API.>\" }, { service: \"$KV.app.>\" } ] }\n\
                    B { users: [ { user: some, password: p } ]\n\
                    imports: [ { service: { account: A, subject: \"$JS.API.>\" } }, { service: { account: A, subject: \"$KV.app.>\" } } ] }\n\
                    }\n";
    for settings in [users("\"_INBOX.*.*\""), accounts.to_owned()] {
        let server = NatsServer::start(NatsOptions::default().with(&settings)).await;
        let server = server.expect("a server");
        let scratch = Scratch {
            url: format!("nats://some:p@{}", server.address()),
            bucket: "app".to_owned(),
        };
        let findings = scratch.store().await.examine().await.expect("it answers");
        let rights = findings.iter().find(|finding| finding.subject == "privileges");
        let rights = rights.expect("they are examined");
        let is_told = rights.detail.contains("a watch is told nothing") && rights.repair.is_some();
        assert!(rights.verdict == Verdict::Warning && is_told, "{rights:?}");
    }
}
