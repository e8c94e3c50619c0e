//! Another server at the address of the URL, since nobody asked last: one with a store of its own, which
//! would give the lease away a second time, and call the leader's lost.

use crate::common::{Scratch, connection, request, seconds, shared, take};
use std::time::Duration;
use tenure_conformance::asking::finding;
use tenure_conformance::strangers::{
    self, Address as _, exchange, fence_asks_nothing, is_refused, leader_loses_nothing,
    standby_is_granted_nothing, watch_is_not_begun,
};
use tenure_core::{
    Durability, Fence, FenceError, Interest, LeaseStore, Leases, Page, ResourceName, Scope, Term, Verdict,
};
use tenure_redis::{FencedWrites, RedisFence};
use tenure_testkit::{FaultProxy, RedisBuild, RedisOptions, RedisServer, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// What the stranger is called.
const STRANGE: &str = "0123456789abcdef0123456789abcdef";

/// Two servers, each by itself, and an address that leads to the first.
struct Address {
    strange: RedisServer,
    proxy: FaultProxy,
    /// At that address.
    scratch: Scratch,
}

impl Address {
    /// Both have an id, as where each was led by.
    async fn new() -> Self {
        let address = Self::with_an_empty_stranger(RedisOptions::durable()).await;
        let ours = address.at(&shared(RedisBuild::Redis).await.url());
        take(&ours.store().await, &request("first", "somebody", seconds(1))).await;
        let ask = format!("HSET {} id {STRANGE}", address.key());
        assert_eq!(address.strange.ask(&ask).unwrap(), ":1");
        address
    }

    async fn with_an_empty_stranger(options: RedisOptions) -> Self {
        let strange = RedisServer::start(options).await.unwrap();
        let proxy = FaultProxy::redis(shared(RedisBuild::Redis).await.address()).unwrap();
        let scratch = Scratch::on(&format!("redis://{}", proxy.address()));
        Self {
            strange,
            proxy,
            scratch,
        }
    }

    /// The same keys in the server of this URL, whatever the address leads to.
    fn at(&self, url: &str) -> Scratch {
        Scratch {
            url: url.to_owned(),
            prefix: self.scratch.prefix.clone(),
        }
    }

    /// Where the id is kept.
    fn key(&self) -> String {
        store_key(&self.scratch.prefix)
    }
}

fn store_key(prefix: &str) -> String {
    format!("{{{prefix}}}:leases:store")
}

async fn ask<T: redis::FromRedisValue>(url: &str, words: &[&str]) -> T {
    let command = redis::cmd(words[0]).arg(&words[1..]).to_owned();
    command.query_async(&mut connection(url).await).await.unwrap()
}

impl strangers::Address for Address {
    const SAID: &str = "is of store";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address()).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(shared(RedisBuild::Redis).await.address());
    }

    async fn is_untouched(&self) {
        let url = self.strange.url();
        let keys: Vec<String> = ask(&url, &["KEYS", "*"]).await;
        assert_eq!(keys, [self.key()], "the stranger was asked");
        let id: String = ask(&url, &["HGET", &self.key(), "id"]).await;
        let patterns: u64 = ask(&url, &["PUBSUB", "NUMPAT"]).await;
        assert_eq!((id.as_str(), patterns), (STRANGE, 0), "the stranger was asked");
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_redis() {
    let address = Address::new().await;
    let leaders = address.at(&shared(RedisBuild::Redis).await.url());
    let leaders = leaders.store().await;
    standby_is_granted_nothing(&address, &address.scratch.store().await, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_redis() {
    let address = Address::new().await;
    leader_loses_nothing(&address, &address.scratch.store().await).await;
}

#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_redis() {
    let address = Address::new().await;
    watch_is_not_begun(&address, &address.scratch.store().await).await;
}

/// Whose requests go on at ours.
#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_beside_a_connection_that_lives() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let everything = Scope::Prefix(String::new());
    store.watch(&everything, Interest::Everything).await.unwrap();
    address.proxy.lead_to(address.strange.address());
    let refused = async || store.watch(&everything, Interest::Everything).await.err();
    is_refused::<Address>("is of store", refused).await;
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    let mut server = connection(&shared(RedisBuild::Redis).await.url()).await;
    let look = redis::cmd("EXISTS").arg(address.at("").key("job")).to_owned();
    let is_ours: bool = look.query_async(&mut server).await.unwrap();
    assert!(is_ours);
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_redis() {
    let address = Address::new().await;
    let fence = RedisFence::connect(&address.scratch.store_url(), Leases::Elsewhere).await;
    let fence = &fence.unwrap();
    let write = async |ledger: &ResourceName, term: &Term| {
        let writes = FencedWrites::new().command(&["account"], ["SET", "account", "7"]);
        fence.write(ledger, term, &writes).await.map(drop)
    };
    fence_asks_nothing(&address, fence, write).await;
}

/// What syncs each write does not come back with nothing: this is another server, or somebody has removed
/// everything.
#[tokio::test]
async fn server_with_nothing_is_a_stranger_where_each_write_is_kept() {
    let address = Address::with_an_empty_stranger(RedisOptions::durable()).await;
    let store = address.scratch.store().await;
    assert_eq!(store.traits().durability, Durability::Safe);
    let fence = RedisFence::connect(&address.scratch.store_url(), Leases::Elsewhere).await;
    let fence = fence.unwrap();
    let asked = request("job", "holder", seconds(300));
    let term = Term::new(asked.name.clone(), take(&store, &asked).await.token);
    let ledger = ResourceName::new("ledger").unwrap();
    fence.claim(&ledger, &term).await.unwrap();
    address.lead_to_the_stranger().await;
    is_refused::<Address>("is of none", async || store.acquire(&asked).await.err()).await;
    let claim = async || match fence.claim(&ledger, &term).await.err()? {
        FenceError::Store(error) => Some(error),
        refusal => panic!("{refusal}"),
    };
    is_refused::<Address>("is of none", claim).await;
    let keys: Vec<String> = ask(&address.strange.url(), &["KEYS", "*"]).await;
    assert_eq!(keys, Vec::<String>::new(), "the stranger was asked");
}

/// Else every program would have to be started anew with it.
#[tokio::test]
async fn cache_that_came_back_empty_is_given_its_id_back() {
    let mut server = RedisServer::start(RedisOptions::default()).await.unwrap();
    let scratch = Scratch::on(&server.url());
    let (store, standby) = (scratch.store().await, scratch.store().await);
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .unwrap();
    let asked = request("job", "holder", seconds(300));
    let ledger = ResourceName::new("ledger").unwrap();
    let term = Term::new(asked.name.clone(), take(&store, &asked).await.token);
    fence.claim(&ledger, &term).await.unwrap();
    let rival = request("other", "rival", seconds(300));
    take(&standby, &rival).await;
    let key = store_key(&scratch.prefix);
    let id: String = ask(&server.url(), &["HGET", &key, "id"]).await;
    server.kill();
    server.restart().await.unwrap();
    let again = eventually_async(PATIENCE, "a term", || store.acquire(&asked)).await;
    let token = crate::common::granted(again).token;
    assert!(token > term.token);
    let term = Term::new(asked.name.clone(), token);
    eventually_async(PATIENCE, "a claim", || fence.claim(&ledger, &term)).await;
    eventually_async(PATIENCE, "a term", || standby.acquire(&rival)).await;
    let now: String = ask(&server.url(), &["HGET", &key, "id"]).await;
    assert_eq!(now, id);
}

#[tokio::test]
async fn who_looks_gives_a_store_no_id_and_is_told_the_one_that_it_has() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let page = Page::first("", 10);
    store.get(&asked.name).await.unwrap();
    store.list(&page).await.unwrap();
    store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let told = finding(&store, "store").await;
    assert_eq!(told.verdict, Verdict::Good);
    assert!(told.detail.contains("no id yet"), "{told:?}");
    let key = store_key(&scratch.prefix);
    let keys: Vec<String> = ask(&scratch.url, &["KEYS", &format!("{{{}}}*", scratch.prefix)]).await;
    assert_eq!(keys, Vec::<String>::new(), "a look has written");
    take(&store, &asked).await;
    let id: String = ask(&scratch.url, &["HGET", &key, "id"]).await;
    let told = finding(&store, "store").await;
    assert!(told.detail.starts_with(&id), "{told:?}");
    let other: String = {
        take(&scratch.store().await, &request("other", "b", seconds(1))).await;
        ask(&scratch.url, &["HGET", &key, "id"]).await
    };
    assert_eq!(other, id, "the first one stays");
}
