//! `tenure doctor`.

mod clock;
mod own_clock;
mod own_lease;
mod round_trips;

use super::explain;
use super::look::{ANSWER_WAIT_MAX, answer};
use crate::arguments::{DoctorArguments, Form};
use crate::exit::{Code, End, Failure, of_signal};
use crate::output::{self, clean};
use crate::supervise::Signals;
use round_trips::{RoundTrips, unanswered};
use serde_json::{Value, json};
use std::time::Duration;
use tenure::contract::{Durability, Finding, Verdict};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError, Timing};

/// Said of an advice where no renewal could be measured.
const OF_READS_ALONE: &str = " (of reads alone; a renewal writes, which may take longer)";

/// Longest examination: a dozen questions, each with the store's own limit.
const EXAMINATION_MAX: Duration = Duration::from_secs(60);

/// Shows how fit the store is to keep leases, and how fast; answers how to end.
pub(crate) async fn doctor(
    arguments: &DoctorArguments,
    store: Option<&str>,
    form: Form,
) -> Result<End, Failure> {
    let timing = arguments.timing.timing()?;
    // A lease that is held at the end would be held for an hour.
    let mut signals = Signals::take_in()?;
    let (store, mut findings, reads) = match signals.unless_ended(examined(store)).await {
        Ok(examined) => examined?,
        Err(signal) => return Ok(signals.ending(of_signal(signal.as_raw()))),
    };
    findings.push(match &reads {
        Ok(reads) => reads.finding("read"),
        Err(error) => unanswered("read", error),
    });
    findings.push(own_clock::look(&timing));
    let mut renewals = None;
    if !arguments.clock_for.is_zero() {
        let end = signals.end_of_waiting();
        match own_lease::examine(&*store, &timing, arguments.clock_for, end).await {
            Ok(by_lease) => {
                findings.extend(by_lease.findings);
                renewals = by_lease.renewals;
            }
            Err(signal) => return Ok(signals.ending(of_signal(signal.as_raw()))),
        }
    }
    let slow = reads
        .ok()
        .map(|reads| renewals.map_or(reads.p99, |renewals| renewals.p99.max(reads.p99)));
    let advised = slow.map(Timing::advised);
    let of_what = if renewals.is_some() { "" } else { OF_READS_ALONE };
    findings.extend(advised.map(|advised| ttl_finding(&timing, &advised, of_what, &*store)));
    let worst = findings.iter().map(|finding| finding.verdict).max();
    let worst = worst.unwrap_or(Verdict::Good);
    output::print(&match form {
        Form::Text => text_of(&*store, &findings, worst),
        Form::Json => json_of(&*store, &findings, worst, advised.as_ref()),
    })?;
    Ok(End::Code(match (worst, lost_by(&*store)) {
        (Verdict::Bad, _) => Code::No.number(),
        (Verdict::Warning | Verdict::Good, Some(_)) => Code::FenceOnly.number(),
        (Verdict::Warning | Verdict::Good, None) => 0,
    }))
}

/// The store, what it finds of itself, and how long reads take.
async fn examined(
    store: Option<&str>,
) -> Result<(SharedStore, Vec<Finding>, Result<RoundTrips, StoreError>), Failure> {
    let store = super::open(store).await?;
    let findings = tokio::time::timeout(EXAMINATION_MAX, store.examine())
        .await
        .map_err(|_| {
            Failure::new(
                Code::Unavailable,
                format!("the store could not be examined within {EXAMINATION_MAX:?}; is it frozen?"),
            )
        })??;
    let reads = reads(&*store).await;
    Ok((store, findings, reads))
}

/// How the store can lose what it has confirmed, if it can.
fn lost_by(store: &dyn LeaseStore) -> Option<&'static str> {
    match store.traits().durability {
        Durability::FenceOnly(why) => Some(why),
        Durability::Safe => None,
    }
}

/// Reads a name that has no record: the cheapest round trip there is.
async fn reads(store: &dyn LeaseStore) -> Result<RoundTrips, StoreError> {
    let name = LeaseName::new("tenure-doctor/round-trip").expect("this is a name");
    RoundTrips::measure(async || answer(store.get(&name)).await.map(drop)).await
}

fn ttl_finding(timing: &Timing, advised: &Timing, of_what: &str, store: &dyn LeaseStore) -> Finding {
    let subject = "ttl".to_owned();
    let (ttl, least) = (timing.ttl(), advised.ttl());
    if let Err(error) = timing.fits(&store.traits()) {
        return Finding {
            subject,
            verdict: Verdict::Bad,
            detail: error.to_string(),
            repair: Some("give a --ttl within that range".to_owned()),
        };
    }
    if ttl < least {
        return Finding {
            subject,
            verdict: Verdict::Warning,
            detail: format!(
                "{ttl} is below the advised {least}: three renewals of ten slow round trips each{of_what}"
            ),
            repair: Some(format!("--ttl {least}")),
        };
    }
    Finding {
        subject,
        verdict: Verdict::Good,
        detail: format!("{ttl} suits this store; the least advisable is {least}{of_what}"),
        repair: None,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Warning => "warning",
        Verdict::Bad => "bad",
    }
}

fn text_of(store: &dyn LeaseStore, findings: &[Finding], worst: Verdict) -> String {
    let traits = store.traits();
    let mut text = format!("store: {} at {}\n", traits.kind, clean(&traits.location));
    let lost_by = lost_by(store);
    if let Some(why) = lost_by {
        text.push_str(&format!(
            "an acknowledged write can be lost ({why}): only a fence protects\n"
        ));
    }
    let width = findings
        .iter()
        .map(|finding| finding.subject.chars().count())
        .max();
    let width = width.unwrap_or_default();
    for finding in findings {
        let (verdict, subject) = (word(finding.verdict), &finding.subject);
        text.push_str(&format!(
            "{verdict:7}  {subject:width$}  {}\n",
            clean(&finding.detail)
        ));
        if let Some(repair) = &finding.repair {
            text.push_str(&format!("{:7}  {:width$}  repair: {}\n", "", "", clean(repair)));
        }
    }
    text.push_str(match (worst, lost_by) {
        (Verdict::Bad, _) => "Leases are not safe here, or cannot work, until what is bad is mended.\n",
        (Verdict::Warning | Verdict::Good, Some(_)) => {
            "Leases alone are not safe here: when a write is lost, two may lead. Have the store keep what it confirms, or \
             fence every write (tenure fence --help).\n"
        }
        (Verdict::Warning, None) => "Leases are safe here; it could be better.\n",
        (Verdict::Good, None) => "Leases are safe here.\n",
    });
    text
}

fn json_of(store: &dyn LeaseStore, findings: &[Finding], worst: Verdict, advised: Option<&Timing>) -> String {
    let traits = store.traits();
    let findings: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "subject": finding.subject,
                "verdict": word(finding.verdict),
                "detail": finding.detail,
                "repair": finding.repair,
            })
        })
        .collect();
    let report = json!({
        "store": {"kind": traits.kind, "location": traits.location},
        "verdict": word(worst),
        "fence_only": lost_by(store),
        "findings": findings,
        "advised": advised.map(explain::json_of),
    });
    format!("{report}\n")
}
