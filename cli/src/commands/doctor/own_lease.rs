//! A lease of the doctor's own: whether one is to be had, how long a renewal takes, and how the clock runs
//! that it expires by.

use super::clock;
use super::round_trips::{RoundTrips, unanswered};
use crate::commands::look::answer;
use crate::housekeeping::{DOCTORS_LEASE, DOCTORS_NOTE};
use std::future::Future;
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Attempt, Fault, Finding, Note, Release, Renew, Renewed, Verdict};
use tenure::tooling::{candidate, default_candidate_id};
use tenure::{LeaseName, LeaseStore, StoreError, Timing, Ttl, clock_now};

/// How many doctors may look at once. A name for each would leave a record of each for ever.
const NAMES: u32 = 8;

/// What the lease outlasts the watching by: a clock that steps by less is seen to.
const ROOM: Duration = Duration::from_secs(60);

/// Longest wait for the lease to be given back. Where the store does not answer, it expires by itself.
const GIVING_BACK_MAX: Duration = Duration::from_secs(1);

/// What was found by it.
pub(super) struct Examined {
    pub(super) findings: Vec<Finding>,
    /// How long renewals took, if they could be measured.
    pub(super) renewals: Option<RoundTrips>,
}

/// Takes a lease, looks what becomes of it for so long, and gives it back, also when `end` comes first; then,
/// what came.
pub(super) async fn examine<End>(
    store: &dyn LeaseStore,
    timing: &Timing,
    time: Duration,
    end: impl Future<Output = End>,
) -> Result<Examined, End> {
    let lease = match OwnLease::take(store, time).await {
        Ok(lease) => lease,
        Err(finding) => {
            return Ok(Examined {
                findings: vec![finding],
                renewals: None,
            });
        }
    };
    let examined = tokio::select! {
        examined = lease.examine(timing, time) => Ok(examined),
        end = end => Err(end),
    };
    lease.give_back().await;
    examined
}

struct OwnLease<'a> {
    store: &'a dyn LeaseStore,
    term: Renew,
}

impl<'a> OwnLease<'a> {
    /// # Errors
    /// What it says of the store that there is none.
    async fn take(store: &'a dyn LeaseStore, time: Duration) -> Result<Self, Finding> {
        let traits = store.traits();
        let ttl = Ttl::try_from(time + ROOM).map_err(|error| untaken(error.to_string(), None))?;
        let ttl = ttl.clamp(traits.ttl_min, traits.ttl_max);
        let candidate = candidate(default_candidate_id());
        for number in 1..=NAMES {
            let request = Acquire {
                name: name(number),
                candidate: candidate.clone(),
                attempt: Attempt::FIRST,
                ttl,
                note: Note::new(DOCTORS_NOTE).expect("it is short"),
            };
            let acquired = answer(store.acquire(&request))
                .await
                .map_err(|error| untaken(error.message, repair_of(error.fault)))?;
            match acquired {
                Acquired::Granted(grant) => {
                    let term = Renew {
                        name: request.name,
                        incarnation: request.candidate.incarnation,
                        token: grant.token,
                        attempt: request.attempt,
                        ttl,
                    };
                    return Ok(Self { store, term });
                }
                Acquired::Held(_) => {}
                Acquired::Superseded => {
                    return Err(untaken(
                        "the store took the request for an old one".to_owned(),
                        None,
                    ));
                }
            }
        }
        let why =
            format!("{NAMES} other doctors hold \"{DOCTORS_LEASE}\" and its other names, or were killed");
        Err(untaken(why, Some("wait until one of them has ended or expired")))
    }

    async fn examine(&self, timing: &Timing, time: Duration) -> Examined {
        let began = clock_now();
        let failed = |finding| Examined {
            findings: vec![finding],
            renewals: None,
        };
        let renewals = match RoundTrips::measure(async || self.renew().await).await {
            Ok(renewals) => renewals,
            Err(Some(error)) => return failed(unanswered("renewal", &error)),
            Err(None) => return failed(clock::gone(&self.term.name, clock_now().since(began))),
        };
        let run = clock::watch(self.store, &self.term.name, timing, time).await;
        Examined {
            findings: vec![renewals.finding("renewal"), run],
            renewals: Some(renewals),
        }
    }

    /// # Errors
    /// The store's; none where the term is over.
    async fn renew(&self) -> Result<(), Option<StoreError>> {
        let terms = [self.term.clone()];
        let renewing = async { self.store.renew(&terms).await.into_iter().next().transpose() };
        match answer(renewing).await? {
            Some(Renewed::Extended { .. }) => Ok(()),
            Some(Renewed::Lost(_)) | None => Err(None),
        }
    }

    async fn give_back(self) {
        let release = Release {
            name: self.term.name,
            incarnation: self.term.incarnation,
            token: self.term.token,
            attempt: self.term.attempt,
        };
        let _answers = tokio::time::timeout(GIVING_BACK_MAX, self.store.release(&[release])).await;
    }
}

fn name(number: u32) -> LeaseName {
    let name = match number {
        1 => DOCTORS_LEASE.to_owned(),
        _ => format!("{DOCTORS_LEASE}-{number}"),
    };
    LeaseName::new(name).expect("this is a name")
}

fn untaken(why: String, repair: Option<&str>) -> Finding {
    Finding {
        subject: "lease".to_owned(),
        verdict: Verdict::Bad,
        detail: format!("no lease can be taken: {why}"),
        repair: repair.map(ToOwned::to_owned),
    }
}

/// What helps where no lease is given; where there is nothing to say, the store's own words have to do.
fn repair_of(fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::Unauthenticated | Fault::Forbidden => Some(
            "give the user the rights of a candidate; one that is only to look: tenure doctor --clock-for 0s",
        ),
        Fault::ReadOnly => Some("have the store take writes, or name the one that does"),
        Fault::Full => Some("make room where the store keeps its data"),
        Fault::Unreachable | Fault::TimedOut | Fault::Busy => {
            Some("see why it answers who reads and not who writes")
        }
        Fault::AnotherStore | Fault::Unreadable | Fault::Unsupported | Fault::Invalid | Fault::Internal => {
            None
        }
    }
}
