//! What servers and accounts allow: how it is told before it does harm, and when it has.

use crate::common::{Scratch, request, seconds};
use std::time::Duration;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore};
use tenure_testkit::{NatsOptions, NatsServer, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

async fn server(jetstream: &str, settings: &str) -> NatsServer {
    let options = NatsOptions {
        jetstream: Some(jetstream.to_owned()),
        ..NatsOptions::default()
    };
    let started = NatsServer::start(options.with(settings)).await;
    started.expect("a server starts")
}

/// It would be elected, lose the term after a ttl, and be elected again, for ever.
#[tokio::test]
async fn store_that_is_let_in_once_takes_no_lease_that_it_could_not_renew() {
    let mut server = server("", "max_connections: 1\n").await;
    let store = Scratch::on(&server.url()).store().await;
    let asked = request("job", "a", seconds(60));
    for _try in 0..3 {
        let error = store.acquire(&asked).await.expect_err("it could not renew");
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Unreachable, Certainty::NotApplied), "{error}");
        assert!(error.message.contains("maximum connections"), "{error}");
    }
    server.reload("max_connections: 64\n").expect("reloaded");
    let granted = eventually_async(PATIENCE, "a term", async || match store.acquire(&asked).await {
        Ok(Acquired::Granted(grant)) => Ok(grant),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!((granted.terms, granted.again), (1, false), "nobody led before");
}
