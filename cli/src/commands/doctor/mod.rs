//! `tenure doctor`.

mod clock;

use super::explain;
use super::look::{ANSWER_WAIT_MAX, answer};
use crate::arguments::{DoctorArguments, Form};
use crate::exit::{Code, Failure};
use crate::output::{self, clean, short};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tenure::core::{Durability, Finding, Verdict};
use tenure::{LeaseName, LeaseStore, StoreError, Timing};

/// Round trips that are measured, one after the other.
const ROUND_TRIPS: usize = 20;

/// Longest examination: a dozen questions, each with the store's own limit.
const EXAMINATION_MAX: Duration = Duration::from_secs(60);

/// Shows how fit the store is to keep leases, and how fast.
pub(crate) async fn doctor(
    arguments: &DoctorArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let timing = arguments.timing.timing()?;
    let store = super::open(store).await?;
    let mut findings = tokio::time::timeout(EXAMINATION_MAX, store.examine())
        .await
        .map_err(|_| {
            Failure::new(
                Code::Unavailable,
                format!("the store could not be examined within {EXAMINATION_MAX:?}; is it frozen?"),
            )
        })??;
    let reading = measure(&*store).await;
    let advised = reading.as_ref().ok().map(|reading| Timing::advised(reading.p99));
    findings.push(finding_of(reading));
    if !arguments.clock_for.is_zero() {
        findings.push(clock::watch(&*store, &timing, arguments.clock_for).await);
    }
    findings.extend(advised.map(|advised| ttl_finding(&timing, &advised, &*store)));
    let worst = findings.iter().map(|finding| finding.verdict).max();
    let worst = worst.unwrap_or(Verdict::Good);
    output::print(&match form {
        Form::Text => text_of(&*store, &findings, worst),
        Form::Json => json_of(&*store, &findings, worst, advised.as_ref()),
    })?;
    Ok(match (worst, lost_by(&*store)) {
        (Verdict::Bad, _) => Code::No.number(),
        (Verdict::Warning | Verdict::Good, Some(_)) => Code::FenceOnly.number(),
        (Verdict::Warning | Verdict::Good, None) => 0,
    })
}

/// How the store can lose what it has confirmed, if it can.
fn lost_by(store: &dyn LeaseStore) -> Option<&'static str> {
    match store.traits().durability {
        Durability::FenceOnly(why) => Some(why),
        Durability::Safe => None,
    }
}

struct Reading {
    p50: Duration,
    p99: Duration,
}

/// Reads a name that has no record: the cheapest round trip there is.
async fn measure(store: &dyn LeaseStore) -> Result<Reading, StoreError> {
    let name = LeaseName::new("tenure-doctor/round-trip").expect("this is a name");
    let mut took = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        answer(store.get(&name)).await?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let at = |percent: usize| took.get((ROUND_TRIPS * percent).div_ceil(100) - 1).copied();
    Ok(Reading {
        p50: at(50).unwrap_or_default(),
        p99: at(99).unwrap_or_default(),
    })
}

fn finding_of(reading: Result<Reading, StoreError>) -> Finding {
    let subject = "read".to_owned();
    match reading {
        Ok(Reading { p50, p99 }) => Finding {
            subject,
            verdict: Verdict::Good,
            detail: format!(
                "{ROUND_TRIPS} round trips: p50 {}, p99 {}",
                short(p50),
                short(p99)
            ),
            repair: None,
        },
        Err(error) => Finding {
            subject,
            verdict: Verdict::Bad,
            detail: format!("{error} (waited at most {ANSWER_WAIT_MAX:?})"),
            repair: None,
        },
    }
}

fn ttl_finding(timing: &Timing, advised: &Timing, store: &dyn LeaseStore) -> Finding {
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
                "{ttl} is below the advised {least}: three renewals of ten slow round trips each"
            ),
            repair: Some(format!("--ttl {least}")),
        };
    }
    Finding {
        subject,
        verdict: Verdict::Good,
        detail: format!("{ttl} suits this store; the least advisable is {least}"),
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
