//! A lease taken and given back, to see that it works and how long it takes.

use crate::acquire::acquire;
use crate::database::Database;
use crate::examine::{failed, finding};
use crate::patience::patiently;
use crate::terms::release;
use crate::transaction;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Fault, Finding, Incarnation, LeaseName, Note,
    Release, StoreError, Ttl, Verdict,
};

/// Trials; the middle one is told.
const TRIALS: u32 = 5;

/// Takes and gives back a lease whose name nobody else can have, and removes its record.
pub(crate) async fn round_trip(database: &Arc<Database>) -> Finding {
    let subject = "round trip";
    let request = request();
    let mut took = Vec::new();
    let mut failure = None;
    for attempt in 1..=TRIALS {
        match once(database, &request, attempt).await {
            Ok(time) => took.push(time),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let removed = patiently(
        &database.patience,
        || "the trial's record".to_owned(),
        &database.shown,
        || {
            let session = database.session()?;
            transaction::write(&session.connection, |connection| {
                connection.execute("DELETE FROM lease WHERE name = ?1", [request.name.as_str()])?;
                Ok(())
            })
        },
    );
    if let Some(error) = removed.await.err().or(failure) {
        return failed(subject, &error);
    }
    took.sort_unstable();
    let middle = took.get(took.len() / 2).copied().unwrap_or_default();
    finding(
        subject,
        Verdict::Good,
        format!(
            "acquire and release in {} µs (middle of {TRIALS})",
            middle.as_micros()
        ),
        None,
    )
}

async fn once(database: &Arc<Database>, request: &Acquire, attempt: u32) -> Result<Duration, StoreError> {
    let request = Acquire {
        attempt: Attempt::new(u64::from(attempt)).unwrap_or(Attempt::FIRST),
        ..request.clone()
    };
    let subject = || "the trial".to_owned();
    let began = Instant::now();
    let acquired = acquire(database, subject, &request);
    let Acquired::Granted(grant) = acquired.await? else {
        return Err(StoreError::not_applied(
            Fault::Internal,
            format!(
                "a lease that nobody else can know was not granted in {}; do two stores share a clock that \
                 differs?",
                database.shown
            ),
        ));
    };
    let release_request = [Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token: grant.token,
        attempt: request.attempt,
    }];
    let released = patiently(&database.patience, subject, &database.shown, || {
        release(database, &release_request)
    });
    for outcome in released.await? {
        drop(outcome?);
    }
    Ok(began.elapsed())
}

fn request() -> Acquire {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    let incarnation = Incarnation::from_bits((half() << 64) | half());
    let expect = "these words keep the rules of names";
    Acquire {
        name: LeaseName::new(format!("tenure-doctor/{incarnation}")).expect(expect),
        candidate: Candidate {
            id: CandidateId::new("tenure-doctor").expect(expect),
            incarnation,
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::MIN,
        note: Note::default(),
    }
}
