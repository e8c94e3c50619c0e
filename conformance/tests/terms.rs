//! That a run of leader-terms notices what it is there to notice: on the model, sound and with a planted
//! defect.

use std::time::Duration;
use tenure_conformance::Subject;
use tenure_conformance::asking::{request, seconds, take};
use tenure_conformance::model::{Defect, FlawedSubject, ModelSubject};
use tenure_conformance::terms::{Campaign, Deployment, Process, Promise, Seen, run, run_within};

/// Leases that are wanted.
const LEASES: usize = 16;

/// Short, and long enough for a term of any lease on a machine that is late.
const STALL_MAX: Duration = Duration::from_secs(8);

/// Memory, to which nothing happens.
struct Memory;

impl Deployment for Memory {
    fn members(&self) -> usize {
        1
    }

    fn kill(&mut self, _member: usize) {}

    async fn restart(&mut self, _member: usize) {}

    fn freeze(&mut self, _member: usize) {}

    fn thaw(&mut self, _member: usize) {}
}

/// Three hundred terms.
const CAMPAIGN: Campaign = Campaign {
    terms: 300,
    promise: Promise::Exclusion,
    ttl: Duration::from_millis(500),
    leases: LEASES,
    commands: &[],
    faults_per_harm: 1,
    harmed_max: 1,
    harm_time_max: Duration::ZERO,
};

/// Two.
fn processes(subject: &impl Subject) -> Vec<Process> {
    let process = |store| Process {
        store,
        ways: Vec::new(),
    };
    [subject.store(), subject.other()].map(process).into()
}

async fn seen_on(subject: &impl Subject) -> Seen {
    run(&CAMPAIGN, &mut Memory, processes(subject)).await
}

/// On a store that is sound, while an outsider holds so many of the leases for longer than the run.
async fn seen_without(held: usize) -> Seen {
    let subject = ModelSubject::new();
    let store = subject.store();
    for lease in 0..held {
        let hour = seconds(3_600);
        take(&*store, &request(&format!("job-{lease}"), "outsider", hour)).await;
    }
    run_within(STALL_MAX, &CAMPAIGN, &mut Memory, processes(&subject)).await
}

#[tokio::test]
async fn sound_store_is_violated_by_no_term() {
    let seen = seen_on(&ModelSubject::new()).await;
    assert_eq!(seen.violations, [""; 0]);
    assert!(
        seen.terms >= 300 && seen.renewed > 0 && seen.is_harmed,
        "{seen:?}"
    );
    assert!(
        !seen.is_good(),
        "nothing was unknown, so that nothing was shown: {seen:?}"
    );
}

#[tokio::test]
async fn token_that_is_given_twice_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::TokenRepeats)).await;
    assert!(
        seen.duplicate_tokens > 0 && !seen.violations.is_empty(),
        "{seen:?}"
    );
}

#[tokio::test]
async fn lease_that_is_taken_while_its_holder_believes_is_seen() {
    for defect in [Defect::ExpiryJudgedEarly, Defect::DecidedBeforeWritten] {
        let seen = seen_on(&FlawedSubject::new(defect)).await;
        let two = |violation: &&String| violation.starts_with("two believe in ");
        assert!(
            seen.violations.iter().any(|violation| two(&violation)),
            "{defect:?}: {seen:?}"
        );
    }
}

/// The one who renewed believes beyond the deadline that its term began with.
#[tokio::test]
async fn lease_that_is_taken_after_a_renewal_that_extended_nothing_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::RenewDoesNotExtend)).await;
    let two = |violation: &String| violation.starts_with("two believe in ");
    assert!(seen.violations.iter().any(two), "{seen:?}");
}

#[tokio::test]
async fn lease_that_nobody_can_have_any_more_is_seen() {
    let seen = seen_without(1).await;
    let dead = |violation: &String| violation.starts_with("job-0 began no term for ");
    assert!(seen.violations.iter().any(dead), "{seen:?}");
}

#[tokio::test]
async fn run_in_which_no_term_begins_is_seen() {
    let seen = seen_without(LEASES).await;
    assert_eq!(seen.violations, ["no term began for 8s, after 0"]);
}

#[tokio::test]
async fn token_that_is_no_higher_than_one_before_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::TokenStartsAgain)).await;
    let falls = |violation: &String| violation.contains("is not above one that was given before");
    assert!(seen.violations.iter().any(falls), "{seen:?}");
}

#[tokio::test]
async fn renewal_by_a_token_that_is_over_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::RenewIgnoresToken)).await;
    let revived = |violation: &String| violation.ends_with("was extended when it was over");
    assert!(seen.violations.iter().any(revived), "{seen:?}");
}

#[tokio::test]
async fn release_by_a_token_that_is_over_is_seen() {
    for defect in [Defect::ReleaseIgnoresToken, Defect::BatchReleaseIgnoresToken] {
        let seen = seen_on(&FlawedSubject::new(defect)).await;
        let ended =
            |violation: &String| violation.contains("was lost") && violation.contains("before its deadline");
        assert!(seen.violations.iter().any(ended), "{defect:?}: {seen:?}");
        let vacated = |violation: &String| violation.ends_with("was given back when it was over");
        assert!(seen.violations.iter().any(vacated), "{defect:?}: {seen:?}");
    }
}
