use crate::slowness::Slowness;
use crate::{CASES, Fixture};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

/// The case of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn case(group: &str, name: &str) -> &'static Case {
    CASES
        .iter()
        .find(|case| case.group == group && case.name == name)
        .unwrap_or_else(|| panic!("the suite has no case {group}::{name}"))
}

/// How often a case is tried, at most.
const TRIES_MAX: u32 = 3;

/// Runs one case on a runtime of its own: two workers, so that its tasks really run at the same time.
///
/// One that failed by a server that was too slow for a request, though it had its time, is made anew with a
/// fresh fixture, twice at most. Nothing else is: not by an answer that is wrong, nor by any error that came
/// at once.
///
/// # Panics
/// If the store breaks the contract, or the case takes longer than [`CASE_TIME_MAX`].
pub fn run<Setup, Made>(case: &Case, setup: Setup)
where
    Setup: Fn() -> Made,
    Made: Future<Output = Fixture>,
{
    for tried in 1.. {
        let mut slowness = Slowness::default();
        let one = AssertUnwindSafe(|| try_once(case, &setup, &mut slowness));
        match catch_unwind(one) {
            Ok(()) => return,
            Err(_) if slowness.is_noted() && tried < TRIES_MAX => {
                let name = case.name;
                eprintln!("case {name} is made anew: the server was too slow for try {tried} of {TRIES_MAX}");
            }
            Err(failure) => resume_unwind(failure),
        }
    }
}

/// Tells, whatever the outcome, whether the server was too slow.
fn try_once<Setup, Made>(case: &Case, setup: &Setup, slowness: &mut Slowness)
where
    Setup: Fn() -> Made,
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
            *slowness = fixture.slowness();
            (case.run)(&fixture).await;
        };
        if tokio::time::timeout(CASE_TIME_MAX, whole).await.is_err() {
            panic!("case {} did not end within {CASE_TIME_MAX:?}", case.name);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Case, CaseFunction, TRIES_MAX, run};
    use crate::Fixture;
    use crate::model::ModelSubject;
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;
    use tenure_core::{Fault, StoreError};

    /// Longer than the shortest time that a store gives its server.
    const SLOW: Duration = Duration::from_millis(600);

    async fn fixture() -> Fixture {
        Fixture::new(ModelSubject::new())
    }

    /// A request that fails like this, after so long.
    async fn fails(fixture: &Fixture, by: Fault, after: Duration) {
        let answer = async {
            tokio::time::sleep(after).await;
            Err(StoreError::unknown(by, "no answer"))
        };
        fixture.first().answered("look at", "job", answer).await
    }

    const fn of_a_test(run: CaseFunction) -> Case {
        Case {
            group: "run",
            name: "of a test",
            run,
        }
    }

    /// A case of which all tries fail, and which counts them.
    fn fails_after(tries: &AtomicU32, tries_max: u32, case: CaseFunction) {
        assert!(catch_unwind(|| run(&of_a_test(case), fixture)).is_err());
        assert_eq!(tries.load(Ordering::SeqCst), tries_max);
    }

    #[test]
    fn a_case_by_which_the_server_was_too_slow_is_made_anew() {
        static TRIES: AtomicU32 = AtomicU32::new(0);
        let case = of_a_test(|fixture| {
            Box::pin(async {
                if TRIES.fetch_add(1, Ordering::SeqCst) + 1 < TRIES_MAX {
                    fails(fixture, Fault::TimedOut, SLOW).await;
                }
            })
        });
        run(&case, fixture);
        assert_eq!(TRIES.load(Ordering::SeqCst), TRIES_MAX);
    }

    #[test]
    fn a_case_by_which_the_server_is_always_too_slow_fails() {
        static TRIES: AtomicU32 = AtomicU32::new(0);
        fails_after(&TRIES, TRIES_MAX, |fixture| {
            Box::pin(async {
                TRIES.fetch_add(1, Ordering::SeqCst);
                fails(fixture, Fault::Busy, SLOW).await;
            })
        });
    }

    #[test]
    fn a_case_that_fails_by_the_store_itself_is_not_made_anew() {
        static TRIES: AtomicU32 = AtomicU32::new(0);
        fails_after(&TRIES, 1, |fixture| {
            Box::pin(async {
                TRIES.fetch_add(1, Ordering::SeqCst);
                fails(fixture, Fault::Internal, SLOW).await;
            })
        });
    }
}
