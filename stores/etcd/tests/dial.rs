//! Members whose hosts have vanished: nobody refuses a connection to them, and nobody takes it.
use crate::common::{Scratch, renewal, request, seconds, shared, take};
use std::time::Duration;
use tenure_core::{LeaseStore, Renewed};
use tenure_testkit::{FaultProxy, VanishedHost, eventually_async};

/// How often a renewal is tried: a minute, for a loaded machine.
const TRIES_MAX: usize = 120;

/// As an engine's renewals, each of which has a tenth of the ttl.
#[tokio::test]
async fn vanished_member_is_passed_over_although_every_caller_gives_up_before_the_dial_does() {
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let vanished = VanishedHost::new().await.unwrap();
    let url = format!("etcd://{},{}", vanished.address(), proxy.address());
    let store = Scratch::on(&url).store().await;
    let asked = request("job", "holder", seconds(60));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    for _cut in 0..3 {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(Duration::from_secs(60), "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        proxy.cut_connections();
        let mut answers = Vec::new();
        let extended = |answer: &_| matches!(answer, Ok(Ok(Renewed::Extended { .. })));
        while !answers.last().is_some_and(extended) {
            assert!(answers.len() < TRIES_MAX, "{answers:?}");
            let renewing = async { store.renew(&beat).await.remove(0) };
            answers.push(tokio::time::timeout(Duration::from_millis(500), renewing).await);
        }
    }
}

#[tokio::test]
async fn member_behind_three_that_have_vanished_is_connected_to() {
    let (one, two, three) =
        tokio::try_join!(VanishedHost::new(), VanishedHost::new(), VanishedHost::new()).unwrap();
    let live = shared().await.address(0);
    let url = format!(
        "etcd://{},{},{},{live}",
        one.address(),
        two.address(),
        three.address()
    );
    let store = Scratch::on(&url).store().await;
    take(&store, &request("job", "holder", seconds(60))).await;
}
