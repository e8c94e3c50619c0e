//! Another server at an address of the URL, since nobody asked last: it would give a lease away that has a
//! holder, and call the leader's lost. What is asked there is made known by each store's own means.

use crate::asking::{name, renewal, request, seconds, take};
use std::future::Future;
use std::time::Duration;
use tenure_core::{
    Acquired, Bump, Certainty, Fault, Fence, FenceError, FencingToken, Interest, LeaseStore, Renewed,
    ResourceName, Scope, StoreError, Term,
};
use tenure_testkit::{FaultProxy, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// How often the two servers change places: the driver may not have heard of the end of its connection when
/// it is asked next, and then it fails of that.
pub const ROUNDS: usize = 3;

/// Two servers, and an address that leads to the first.
pub trait Address: Sync {
    /// What is said of the other.
    const SAID: &str;

    /// The address leads to the other from now on. Whoever is connected has nothing under way.
    fn lead_to_the_stranger(&self) -> impl Future<Output = ()> + Send;

    /// It leads to the first again. Whoever was refused is not connected.
    fn lead_back(&self) -> impl Future<Output = ()> + Send;

    /// Panics if the other was asked for anything but who it is, as far as it tells.
    fn is_untouched(&self) -> impl Future<Output = ()> + Send;

    /// Panics if this may not be said before it is known who stands there.
    fn may_be_said_before(_error: &StoreError) {}
}

/// Has a proxy lead elsewhere, and nobody connected.
///
/// # Panics
/// If nobody was.
pub async fn exchange(proxy: &FaultProxy, upstream: impl Into<String>) {
    proxy.lead_to(upstream);
    cut(&[proxy]).await;
}

/// Has nobody connected through any of these proxies.
///
/// # Panics
/// If nobody was.
pub async fn cut(proxies: &[&FaultProxy]) {
    let cuts = || -> u64 { proxies.iter().map(|proxy| proxy.counts().cut_connections).sum() };
    let before = cuts();
    for proxy in proxies {
        proxy.cut_connections();
    }
    let is_cut = async || (cuts() > before).then_some(());
    eventually_async(PATIENCE, "the end of the connections", is_cut).await;
    // For the driver to hear of it.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// At last it is said who stands there; until then that the connection has ended. Whoever waits for the store
/// waits for this, too.
///
/// # Panics
/// If something else is answered.
pub async fn is_refused<A: Address>(said: &str, answer: impl AsyncFn() -> Option<StoreError>) {
    eventually_async(PATIENCE, "a refusal", async || {
        let error = answer().await.expect("it is a stranger");
        if !error.message.contains(said) {
            A::may_be_said_before(&error);
            return Err(error);
        }
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::AnotherStore, Certainty::NotApplied),
            "{error}"
        );
        Ok(())
    })
    .await;
}

/// A standby of the address, while its leader leads on at the first server.
///
/// # Panics
/// If it is granted the lease, or the stranger asked for it.
pub async fn standby_is_granted_nothing<A: Address>(
    address: &A,
    store: &dyn LeaseStore,
    leaders: &dyn LeaseStore,
) {
    let leading = request("job", "leader", seconds(300));
    take(leaders, &leading).await;
    let waiting = request("job", "standby", seconds(300));
    for _round in 0..ROUNDS {
        match eventually_async(PATIENCE, "an answer", || store.acquire(&waiting)).await {
            Acquired::Held(lease) => assert_eq!(lease.holder, leading.candidate),
            other => panic!("{other:?}"),
        }
        address.lead_to_the_stranger().await;
        is_refused::<A>(A::SAID, async || match store.acquire(&waiting).await {
            Ok(Acquired::Granted(grant)) => panic!("a second leader: {grant:?}"),
            answer => answer.err(),
        })
        .await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// A leader of the address: it would end its work, and nobody would lead before its ttl is over.
///
/// # Panics
/// If the stranger answers, or was asked.
pub async fn leader_loses_nothing<A: Address>(address: &A, store: &dyn LeaseStore) {
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(store, &asked).await.token)];
    for _round in 0..ROUNDS {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(PATIENCE, "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        address.lead_to_the_stranger().await;
        is_refused::<A>(A::SAID, async || match store.renew(&beat).await.remove(0) {
            Ok(answer) => panic!("a stranger has answered: {answer:?}"),
            Err(error) => Some(error),
        })
        .await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// A watch of the address: it would hear of nothing that happens.
///
/// # Panics
/// If it is begun at the stranger.
pub async fn watch_is_not_begun<A: Address>(address: &A, store: &dyn LeaseStore) {
    let everything = Scope::Prefix(String::new());
    for _round in 0..ROUNDS {
        let watching = async || store.watch(&everything, Interest::Everything).await;
        let mut watch = eventually_async(PATIENCE, "a watch", watching).await;
        address.lead_to_the_stranger().await;
        let told = tokio::time::timeout(PATIENCE, watch.next()).await;
        told.expect("in time").expect_err("its connection has ended");
        is_refused::<A>(A::SAID, async || {
            store.watch(&everything, Interest::Everything).await.err()
        })
        .await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// A fence at the address, of a lease that is kept elsewhere: the stranger has marks of its own, so that any
/// token would be admitted. `enter` goes by the mark, on whatever connection the fence has for that.
///
/// # Panics
/// If the stranger answers, or was asked.
pub async fn fence_asks_nothing<A: Address>(
    address: &A,
    fence: &dyn Fence,
    enter: impl AsyncFn(&ResourceName, &Term) -> Result<(), FenceError>,
) {
    let ledger = ResourceName::new("ledger").expect("a valid name");
    let term = Term::new(name("job"), FencingToken::new(7).expect("a valid token"));
    let bump = Bump {
        resource: ledger.clone(),
        above: None,
        lease: None,
    };
    let claim = async || failure(fence.claim(&ledger, &term).await);
    let enter = async || failure(enter(&ledger, &term).await);
    let raise = async || failure(fence.bump(&bump).await);
    for _round in 0..ROUNDS {
        refused_by_the_stranger(address, claim, claim).await;
        refused_by_the_stranger(address, enter, enter).await;
        // At ours it would close the resource to this term.
        refused_by_the_stranger(address, claim, raise).await;
    }
}

/// The stranger is met by `deed`, on connections over which `before` was done.
async fn refused_by_the_stranger<A: Address>(
    address: &A,
    before: impl AsyncFn() -> Option<StoreError>,
    deed: impl AsyncFn() -> Option<StoreError>,
) {
    eventually_async(PATIENCE, "an answer", async || before().await.map_or(Ok(()), Err)).await;
    address.lead_to_the_stranger().await;
    is_refused::<A>(A::SAID, deed).await;
    address.is_untouched().await;
    address.lead_back().await;
}

fn failure<T>(answer: Result<T, FenceError>) -> Option<StoreError> {
    match answer.err()? {
        FenceError::Store(error) => Some(error),
        refused => panic!("{refused}"),
    }
}
