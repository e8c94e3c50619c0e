//! MongoDB's replica set of three. Its members tell clients where the others are, past any proxy: so some
//! processes have a proxy that is led to the primary, as a name is, and the others ask the set itself.

use super::network;
use mongodb::Client;
use mongodb::bson::doc;
use std::sync::Arc;
use std::time::Duration;
use tenure::mongodb::MongoStore;
use tenure_conformance::terms::{Between, Campaign, Deployment, Process, Promise, Seen, run};
use tenure_testkit::{FaultProxy, ReplicaSet, Size};

/// Processes with a proxy.
const BEHIND_PROXIES: usize = 3;

/// Processes that find the primary by themselves.
const BESIDE_THEM: usize = 2;

/// How often the proxies are led to where the primary is.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long one look may take.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

struct Set {
    set: ReplicaSet,
    between: Option<Between>,
}

impl Deployment for Set {
    fn members(&self) -> usize {
        self.set.size()
    }

    fn kill(&mut self, member: usize) {
        self.set.kill(member);
    }

    async fn restart(&mut self, member: usize) {
        self.set.restart(member).await.expect("it starts again");
    }

    fn freeze(&mut self, member: usize) {
        self.set.freeze(member);
    }

    fn thaw(&mut self, member: usize) {
        self.set.thaw(member);
    }

    fn between(&self) -> Option<Between> {
        self.between.clone()
    }
}

pub async fn measure(terms: u64) -> Seen {
    let network = network();
    let started = match &network {
        Some(network) => ReplicaSet::on(network).await,
        None => ReplicaSet::start(Size::Three).await,
    };
    let set = started.expect("three nodes of mongod");
    let primary = set.primary().await.expect("a primary");
    let mut processes = Vec::new();
    for number in 0..BEHIND_PROXIES + BESIDE_THEM {
        let (url, ways) = match number < BEHIND_PROXIES {
            true => {
                let way = FaultProxy::mongodb(set.address(primary)).expect("a proxy");
                (way.mongodb_uri(), vec![Arc::new(way)])
            }
            false => (set.uri(), Vec::new()),
        };
        let store = MongoStore::connect(&url).await.expect("it connects");
        processes.push(Process {
            store: Arc::new(store),
            ways,
        });
    }
    let campaign = Campaign {
        terms,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(1_000),
        leases: 48,
        // Those of batches besides: what is extended together, and the look at what was.
        commands: &["findAndModify", "update", "find"],
        faults_per_harm: 12,
        harmed_max: 1,
        // A primary that is silent for a second is replaced.
        harm_time_max: Duration::from_secs(4),
    };
    let ways = processes
        .iter()
        .flat_map(|process| process.ways.clone())
        .collect();
    let following = tokio::spawn(follow(set.uri(), set.address(primary), ways));
    let between = network.map(|network| Between {
        network,
        members: (0..set.size()).map(|node| set.address(node)).collect(),
    });
    let seen = run(&campaign, &mut Set { set, between }, processes).await;
    following.abort();
    seen
}

/// Leads the proxies to the primary, whichever it is.
async fn follow(uri: String, mut led_to: String, ways: Vec<Arc<FaultProxy>>) {
    let client = Client::with_uri_str(uri).await.expect("a client");
    let database = client.database("admin");
    loop {
        let asking = database.run_command(doc! { "hello": 1 });
        if let Ok(Ok(told)) = tokio::time::timeout(LOOK_TIME_MAX, asking).await
            && let (Ok(true), Ok(me)) = (told.get_bool("isWritablePrimary"), told.get_str("me"))
            && me != led_to
        {
            me.clone_into(&mut led_to);
            for way in &ways {
                way.lead_to(me);
                way.cut_connections();
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
