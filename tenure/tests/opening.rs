//! A store that is away when a program starts.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure::tooling::{NotOpened, open_patiently};
use tenure::{Fault, Registry, SharedStore, StoreError};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// Counts the attempts to open a store of the scheme `mine`.
fn counting<Opened>(open: impl Fn(String) -> Opened + Send + Sync + 'static) -> (Registry, Arc<AtomicU32>)
where
    Opened: Future<Output = Result<SharedStore, StoreError>> + Send + 'static,
{
    let (attempts, mut registry) = (Arc::<AtomicU32>::default(), Registry::empty());
    let counted = attempts.clone();
    registry.register("mine", move |url| {
        counted.fetch_add(1, Ordering::SeqCst);
        open(url)
    });
    (registry, attempts)
}

async fn away(_url: String) -> Result<SharedStore, StoreError> {
    Err(StoreError::not_applied(Fault::Unreachable, "nobody answers"))
}

fn error_of(opened: Result<SharedStore, StoreError>) -> StoreError {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[cfg(feature = "redis")]
mod with_a_server {
    use super::{MINUTE, counting, error_of};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tenure::redis::RedisStore;
    use tenure::{Fault, LeaseName, Registry, SharedStore};
    use tenure_testkit::{RedisOptions, RedisServer, eventually_async};
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_server_that_is_away_when_a_program_starts_is_waited_for() {
        let mut server = RedisServer::start(RedisOptions::durable()).await.unwrap();
        let url = server.url();
        server.kill();
        let (registry, attempts) = counting(move |_| {
            let url = url.clone();
            async move {
                let store: SharedStore = Arc::new(RedisStore::connect(&url).await?);
                Ok(store)
            }
        });
        let opening = tokio::spawn(async move { registry.open_within("mine:", Duration::MAX).await });
        let tried_again = async || attempts.load(Ordering::SeqCst) > 1;
        eventually_async(MINUTE, "a second attempt", tried_again).await;
        assert!(!opening.is_finished(), "the server is away");
        server.restart().await.unwrap();
        let opened = timeout(MINUTE, opening).await.expect("the server is back");
        let store = opened.unwrap().expect("it answers");
        assert_eq!(store.get(&LeaseName::new("job").unwrap()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_password_that_is_refused_ends_the_waiting_at_once() {
        let options = RedisOptions {
            password: Some("right".to_owned()),
            ..RedisOptions::default()
        };
        let server = RedisServer::start(options).await.unwrap();
        let url = format!("redis://:wrong@{}", server.address());
        let opening = Registry::connect_within(&url, Duration::MAX);
        let error = error_of(timeout(MINUTE, opening).await.expect("no patience helps"));
        assert_eq!(error.fault, Fault::Unauthenticated);
        assert!(!error.message.contains("wrong"), "{error}");
    }
}

#[tokio::test]
async fn a_url_that_is_none_ends_the_waiting_at_once() {
    for url in ["zookeeper://host", "leases.db"] {
        let opening = Registry::connect_within(url, Duration::MAX);
        let opened = tokio::time::timeout(MINUTE, opening).await;
        assert_eq!(error_of(opened.expect("no patience helps")).fault, Fault::Invalid);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_is_tried_ever_less_often_until_the_patience_is_over() {
    let (registry, attempts) = counting(away);
    let began = Instant::now();
    let error = error_of(registry.open_within("mine:", MINUTE).await);
    assert_eq!(error.fault, Fault::Unreachable);
    assert_eq!(error.message, "nobody answers; gave up after 60.0s");
    assert_eq!(began.elapsed().as_secs(), MINUTE.as_secs());
    // Pauses of 0.5, 1, 2, 4 and then 5 s, each longer by half a second at most: of them 13 or 14 fit, and
    // one that is cut short.
    let attempts = attempts.load(Ordering::SeqCst);
    assert!((15..=16).contains(&attempts), "{attempts} attempts");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_in_the_last_pause_is_opened() {
    let (began, mut failures) = (Instant::now(), 0);
    let open = || async {
        let is_back = began.elapsed() > MINUTE - Duration::from_millis(1);
        is_back
            .then_some(())
            .ok_or_else(|| StoreError::not_applied(Fault::Unreachable, "nobody answers"))
    };
    let opened = open_patiently(MINUTE, MINUTE, open, |_, _| failures += 1).await;
    assert_eq!(opened, Ok(()));
    assert!(failures > 10, "{failures}");
    // One that is silent then is not waited for.
    let open = || async {
        if began.elapsed() > 2 * MINUTE {
            std::future::pending::<()>().await;
        }
        away(String::new()).await.map(drop)
    };
    let silent = open_patiently(2 * MINUTE, MINUTE, open, |_, _| {}).await;
    assert!(matches!(silent, Err(NotOpened::GaveUp(Some(_)))), "{silent:?}");
    let told: Box<dyn std::error::Error + Send + Sync> = silent.unwrap_err().into();
    assert_eq!(told.to_string(), "nobody answers; gave up");
    assert!(
        began.elapsed() <= 3 * MINUTE + Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn without_patience_one_attempt_is_made_for_which_there_is_time() {
    let (registry, attempts) = counting(away);
    let error = error_of(registry.open_within("mine:", Duration::ZERO).await);
    assert_eq!(
        (error.fault, attempts.load(Ordering::SeqCst)),
        (Fault::Unreachable, 1)
    );
    let (registry, _) = counting(|_| std::future::pending());
    let began = Instant::now();
    let error = error_of(registry.open_within("mine:", Duration::ZERO).await);
    assert_eq!((error.fault, began.elapsed().as_secs()), (Fault::TimedOut, 10));
}

/// What was heard before says more than that nothing was.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_not_answered_leaves_the_word_of_the_one_before() {
    let is_first = AtomicU32::new(1);
    let (registry, attempts) = counting(move |url| {
        let is_first = is_first.swap(0, Ordering::SeqCst) == 1;
        async move {
            if !is_first {
                std::future::pending::<()>().await;
            }
            away(url).await
        }
    });
    let error = error_of(registry.open_within("mine:", MINUTE).await);
    assert_eq!(
        (error.fault, attempts.load(Ordering::SeqCst)),
        (Fault::Unreachable, 2)
    );
}
