use crate::Fixture;
use std::time::Duration;
use tenure_core::Answer;

/// Longest time that one case may take, fixture included, before it fails.
pub const CASE_TIME_MAX: Duration = Duration::from_secs(180);

/// A case, as a function of its fixture. It panics if the store breaks the contract.
pub type CaseFunction = for<'a> fn(&'a Fixture) -> Answer<'a, ()>;

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its subject: the module that it stands in.
    pub group: &'static str,
    /// Its name: the behaviour, and the name of its test in every store.
    pub name: &'static str,
    /// The case itself.
    pub run: CaseFunction,
}

/// Runs one case on a runtime of its own: two workers, so that its tasks really run at the same time.
///
/// # Panics
/// If the store breaks the contract, or the case takes longer than [`CASE_TIME_MAX`].
pub fn run<Setup, Made>(name: &str, setup: Setup, case: CaseFunction)
where
    Setup: FnOnce() -> Made,
    Made: Future<Output = Fixture>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a test can start a runtime");
    runtime.block_on(async {
        let whole = async {
            let fixture = setup().await;
            case(&fixture).await;
        };
        if tokio::time::timeout(CASE_TIME_MAX, whole).await.is_err() {
            panic!("case {name} did not end within {CASE_TIME_MAX:?}");
        }
    });
}
