//! Members that are of no use, and stand first in the URL: every store that is made of it meets them first.
use crate::common::{Scratch, finding, name, renewal, request, seconds, take};
use crate::connect::{refused, with_users};
use std::time::Duration;
use tenure_core::{
    Certainty, Fault, Fence, FenceError, FencingToken, Interest, LeaseStore, Leases, Renewed, ResourceName,
    Scope, StoreError, Term, Verdict,
};
use tenure_etcd::{EtcdFence, EtcdStore};
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, eventually, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// A member without a vote, as it is while it replaces another on the same host: it answers nothing.
#[tokio::test]
async fn member_that_is_a_learner_is_passed_over() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let learner = etcd.add_learner().await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let error = refused(&format!("etcd://{}", etcd.address(learner))).await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    assert!(error.message.contains("learner"), "{error}");

    let both = Scratch::on(&format!("etcd://{},{}", etcd.address(learner), proxy.address()));
    let store = both.store().await;
    let asked = request("job", "holder", seconds(60));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    let look = async || store.renew(&beat).await.remove(0);
    for _cut in 0..3 {
        let renewed = eventually_async(PATIENCE, "a renewal", look).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        let scope = Scope::Name(asked.name.clone());
        eventually_async(PATIENCE, "a watch", || store.watch(&scope, Interest::Everything)).await;
        proxy.cut_connections();
    }
}

/// Its host takes connections, and nothing answers.
#[tokio::test]
async fn store_is_made_although_the_first_member_of_its_url_is_frozen() {
    let etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let leader = eventually(PATIENCE, "a leader", || etcd.leader());
    let order = [1, 2, 3].map(|step| (leader + step) % 3);
    etcd.freeze(order[0]);
    let hosts = order.map(|member| etcd.address(member)).join(",");
    let store = Scratch::on(&format!("etcd://{hosts}")).store().await;
    take(&store, &request("job", "holder", seconds(60))).await;
}

/// It goes on with its streams and hears of nothing: whoever waits would wait on, though another member knows
/// better.
#[tokio::test]
async fn watch_of_a_member_that_is_cut_off_from_the_others_is_over() {
    let etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let leader = eventually(PATIENCE, "a leader", || etcd.leader());
    let [member, second] = [1, 2].map(|step| (leader + step) % 3);
    let store = Scratch::on(&format!("etcd://{}", etcd.address(member)))
        .store()
        .await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    etcd.freeze(leader);
    etcd.freeze(second);
    let told = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    let over = told.expect_err("nobody can tell what happens");
    assert_eq!(over.fault, Fault::Unreachable, "{over}");
}

/// As three etcds that were each started alone are: whoever comes while the first is down would lead beside
/// who came before.
#[tokio::test]
async fn members_of_different_clusters_are_refused() {
    let (one, mut other) = (
        Etcd::start(EtcdOptions::default()).await.unwrap(),
        Etcd::start(EtcdOptions::default()).await.unwrap(),
    );
    let url = format!("etcd://{},{}", one.address(0), other.address(0));
    let turned = format!("etcd://{},{}", other.address(0), one.address(0));
    // Who tells nothing is not looked at, as a member that stalls.
    let told = async |error: Option<StoreError>| match error {
        Some(error) if error.message.contains("is of cluster") => Ok(error),
        Some(error) => Err(error.to_string()),
        None => Err("it was taken".to_owned()),
    };
    let refusal = async || told(EtcdStore::connect(&url).await.err()).await;
    let error = eventually_async(PATIENCE, "a refusal", refusal).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    let mut refusals = vec![error];
    // Each would have marks of its own, so that a lower token claims after a higher one.
    for url in [&url, &turned] {
        let refusal = async || match EtcdFence::connect(url, Leases::Here).await {
            Ok(fence) => told(not_claimed(&fence).await).await,
            Err(error) => Err(error.to_string()),
        };
        refusals.push(eventually_async(PATIENCE, "a refusal", refusal).await);
    }
    for error in refusals {
        for member in [&one, &other] {
            let named = format!("{} is of cluster", member.address(0));
            assert!(error.message.contains(&named), "{error}");
        }
    }
    // One that is away tells nothing yet.
    other.kill(0);
    let store = Scratch::on(&url).store().await;
    other.restart(0).await.unwrap();
    eventually_async(PATIENCE, "what it is", async || {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let members = finding(&findings, "members");
        let is_told = members.detail.contains("is of cluster") && members.verdict == Verdict::Bad;
        let ours = &finding(&findings, "cluster").detail;
        assert!(!is_told || members.detail.contains(ours), "{members:?}, {ours}");
        is_told.then_some(()).ok_or(format!("{members:?}"))
    })
    .await;
}

/// Why the fence admits nobody, unless it does.
async fn not_claimed(fence: &EtcdFence) -> Option<StoreError> {
    let term = Term::new(name("job"), FencingToken::new(7).unwrap());
    match fence.claim(&ResourceName::new("ledger").unwrap(), &term).await {
        Ok(_) => None,
        Err(FenceError::Store(error)) => {
            assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
            Some(error)
        }
        Err(other) => panic!("{other}"),
    }
}

/// As one that was set up anew while nobody could ask it: whoever is connected already would go over to it
/// when the first one is down, and lead beside those who did not.
#[tokio::test]
async fn member_of_another_cluster_that_comes_later_is_refused() {
    for credentials in ["", "service:hunter2%40@"] {
        let start = async || match credentials {
            "" => Etcd::start(EtcdOptions::default()).await.unwrap(),
            _ => with_users("").await,
        };
        let (mut one, mut other) = (start().await, start().await);
        other.kill(0);
        let url = format!("etcd://{credentials}{},{}", one.address(0), other.address(0));
        let store = EtcdStore::connect(&url).await.unwrap();
        let asked = request("job", "holder", seconds(300));
        let beat = [renewal(&asked, take(&store, &asked).await.token)];
        let fence = EtcdFence::connect(&url, Leases::Elsewhere).await.unwrap();
        assert_eq!(not_claimed(&fence).await, None);
        other.restart(0).await.unwrap();
        one.kill(0);
        let told = format!("{} is of cluster", other.address(0));
        let is_refused = |answer: Option<StoreError>| match answer.expect("it is another cluster") {
            // Who waits for the store waits for this, too.
            error if error.message.contains(&told) => {
                assert_eq!(error.fault, Fault::AnotherStore, "{error}");
                Ok(())
            }
            // It is learnt first that the other one is gone.
            error => Err(error),
        };
        eventually_async(PATIENCE, "a refusal", async || {
            is_refused(store.get(&asked.name).await.err())
        })
        .await;
        eventually_async(PATIENCE, "a refusal", async || {
            is_refused(store.renew(&beat).await.remove(0).err())
        })
        .await;
        eventually_async(PATIENCE, "a refusal", async || {
            is_refused(not_claimed(&fence).await)
        })
        .await;
        one.restart(0).await.unwrap();
        let renewed =
            eventually_async(PATIENCE, "a renewal", async || store.renew(&beat).await.remove(0)).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        eventually_async(PATIENCE, "a claim", async || match not_claimed(&fence).await {
            None => Ok(()),
            Some(error) => Err(error),
        })
        .await;
    }
}
