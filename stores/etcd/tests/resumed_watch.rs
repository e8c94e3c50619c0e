//! Watches that go on after a break.
use crate::common::{Scratch, give_back, request, seconds, take};
use std::time::Duration;
use tenure_core::{Change, Interest, LeaseStore, Scope, Watch, WatchEvent};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, eventually_async, in_one_of};

const PATIENCE: Duration = Duration::from_secs(60);

/// A stream of which nothing is heard for 5 s is given up, and it is asked every 2 s whether it lives: twice
/// as long.
const QUIET: Duration = Duration::from_secs(12);

/// The look at the member that is connected to, and the stream.
const REQUESTS: u64 = 2;

/// A server that nobody else asks, a store that watches it through a proxy, and one beside it.
struct Watched {
    proxy: FaultProxy,
    _watching: EtcdStore,
    watch: Box<dyn Watch>,
    direct: EtcdStore,
    _etcd: Etcd,
}

impl Watched {
    async fn new() -> Self {
        let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
        let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
        let through = Scratch::on(&format!("etcd://{}", proxy.address()));
        let direct = Scratch {
            url: etcd.url(),
            ..through.clone()
        };
        let watching = through.store().await;
        let watch = watching
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .unwrap();
        Self {
            proxy,
            _watching: watching,
            watch,
            direct: direct.store().await,
            _etcd: etcd,
        }
    }

    /// Breaks the stream, and waits for the next one.
    async fn interrupt(&self) {
        let before = self.proxy.counts().requests;
        self.proxy.cut_connections();
        let goes_on = async || (self.proxy.counts().requests >= before + REQUESTS).then_some(());
        eventually_async(PATIENCE, "another stream", goes_on).await;
    }

    async fn next(&mut self) -> (String, Change) {
        let told = tokio::time::timeout(PATIENCE, self.watch.next()).await;
        match told.expect("in time").expect("the watch goes on") {
            WatchEvent::Changed { name, change, .. } => (name.to_string(), change),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn watch_that_goes_on_tells_nothing_twice() {
    let mut watched = Watched::new().await;
    for lease in ["first", "second", "third"] {
        let asked = request(lease, "holder", seconds(300));
        let token = take(&watched.direct, &asked).await.token;
        assert_eq!(watched.next().await, (lease.to_owned(), Change::Taken));
        watched.interrupt().await;
        give_back(&watched.direct, &asked, token).await;
        assert_eq!(watched.next().await, (lease.to_owned(), Change::Vacated));
        watched.interrupt().await;
    }
}

/// Renewals write nothing, so a cluster that has only leaders and standbys may be quiet for as long as it
/// lives.
#[tokio::test]
async fn watch_of_a_quiet_cluster_goes_on_with_one_stream_after_a_break() {
    let watched = &Watched::new().await;
    in_one_of(3, "a stream was given up", || async {
        watched.interrupt().await;
        let before = watched.proxy.counts().requests;
        tokio::time::sleep(QUIET).await;
        watched.proxy.counts().requests == before
    })
    .await;
}
