//! A leader that is frozen with a batch in mind, and woken when another has shipped a part of it. Real
//! processes, a real replica set.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::process::Command;
use std::time::Duration;
use tenure_testkit::{Process, ReplicaSet};

/// Long, as a loaded machine may need it.
const LONG: Duration = Duration::from_secs(60);

struct Shop {
    url: String,
    database: &'static str,
}

impl Shop {
    /// One with two hundred paid orders.
    async fn new(database: &'static str) -> Self {
        let set = ReplicaSet::shared().await;
        let shop = Self {
            url: set.uri().replacen("/?", &format!("/{database}?"), 1),
            database,
        };
        let mut make = orders("make", &shop);
        make.args(["--orders", "200"]);
        let made = Process::spawn(make).unwrap();
        assert!(made.wait_for_exit(LONG).unwrap().success());
        shop
    }

    fn candidate(&self, name: &str, options: &[&str]) -> Process {
        // Waited for once, and longer than most stalls of a loaded machine.
        self.candidate_with("10s", name, options)
    }

    fn candidate_with(&self, ttl: &str, name: &str, options: &[&str]) -> Process {
        let mut ship = orders("ship", self);
        ship.args(["--ttl", ttl, "--candidate", name]).args(options);
        Process::spawn(ship).unwrap()
    }

    /// The orders as they are, by number.
    async fn orders(&self) -> Vec<Document> {
        let client = Client::with_uri_str(&self.url).await.unwrap();
        let orders = client.database(self.database).collection::<Document>("orders");
        let mut found = orders.find(doc! {}).sort(doc! { "_id": 1 }).await.unwrap();
        let mut all = Vec::new();
        while found.advance().await.unwrap() {
            all.push(found.deserialize_current().unwrap());
        }
        assert_eq!(all.len(), 200);
        all
    }
}

fn orders(command: &str, shop: &Shop) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_orders"));
    program.args([command, "--shop", &shop.url]);
    program
}

/// Freezes A with all orders in mind, lets B ship the first hundred, and wakes A, which says something that
/// begins like this.
fn freeze_and_wake(shop: &Shop, options: &[&str], says: &str) -> String {
    let all = [options, &["--batch", "200", "--think", "5s"]].concat();
    let first = shop.candidate("A", &all);
    first.wait_for_line("has read 200 orders", LONG).unwrap();
    first.freeze();
    let half = [options, &["--batch", "100", "--batches", "1"]].concat();
    let second = shop.candidate("B", &half);
    second.wait_for_line("has shipped 100 orders", LONG).unwrap();
    assert!(second.wait_for_exit(LONG).unwrap().success());
    // What it has said before, it has not said of this plan: a term that a busy machine has cost it ends with
    // such a line, too.
    let seen = first.lines().len();
    first.thaw();
    // Its plan was made when it led; it carries it out now.
    let said = first.wait_for_line_from(seen, says, LONG).unwrap();
    // It campaigns again, and finds nothing left to do, or has done everything.
    assert!(first.wait_for_exit(LONG).unwrap().success());
    said.text
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_of_a_leader_that_was_frozen_is_refused_document_by_document() {
    let shop = Shop::new("orders_fenced").await;
    let said = freeze_and_wake(&shop, &[], "stops: ");
    let marks = said
        .strip_prefix("stops: refused: token ")
        .and_then(|said| said.split_once(" is stale for \"orders\", which admits none below "));
    let (stale, later) = marks.unwrap_or_else(|| panic!("{said}"));
    let later = later.split(';').next().unwrap();
    let (stale, later): (i64, i64) = (stale.parse().unwrap(), later.parse().unwrap());
    for order in shop.orders().await {
        // What B has shipped is as B left it. The rest no later term had touched: that part of A's batch went
        // out.
        let first_half = order.get_i64("_id").unwrap() <= 100;
        let (by, token) = if first_half { ("B", later) } else { ("A", stale) };
        assert_eq!(order.get_i64("shipments").unwrap(), 1, "{order}");
        assert_eq!(order.get_str("status").unwrap(), "shipped", "{order}");
        assert_eq!(order.get_str("shipped_by").unwrap(), by, "{order}");
        assert_eq!(order.get_i64("fence").unwrap(), token, "{order}");
    }
}

/// The proof that the test above can fail: without the fence, the same freeze ships a hundred orders twice.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_fence_the_same_leader_ships_what_its_successor_has_shipped() {
    let shop = Shop::new("orders_unfenced").await;
    freeze_and_wake(&shop, &["--unfenced"], "has shipped 200 orders");
    let orders = shop.orders().await;
    let twice = orders
        .iter()
        .filter(|order| order.get_i64("shipments").unwrap() == 2);
    assert_eq!(twice.count(), 100);
}

/// As systemd and Kubernetes end it: the others do not wait for the end of the lease.
#[tokio::test(flavor = "multi_thread")]
async fn leader_that_is_terminated_hands_over_at_once() {
    let shop = Shop::new("terminated").await;
    let first = shop.candidate_with("1h", "A", &["--think", "60s"]);
    first.wait_for_line("has read", LONG).unwrap();
    let second = shop.candidate_with("1h", "B", &[]);
    second.wait_for_line("stands by", LONG).unwrap();
    first.terminate();
    second.wait_for_line("no order is left", LONG).unwrap();
    assert_eq!(first.wait_for_exit(LONG).unwrap().code(), Some(2));
}
