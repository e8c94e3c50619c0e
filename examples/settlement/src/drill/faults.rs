//! What a drill does to its instances, each time to the one that leads and in the midst of its work.

use super::crew::{Crew, Holder};
use super::site::Site;
use crate::Outcome;
use crate::arguments::Fault;
use crate::payments::Dice;
use crate::report::Report;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

/// What a fault did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// Which fault.
    pub fault: Fault,
    /// To whom: an instance, or a server.
    pub victim: String,
    /// How many payments were settled then, at least.
    pub settled: u64,
    /// Until another had claimed the fence and went on; after a step-down of the primary, until the next
    /// batch was seen.
    pub recovery: Duration,
    /// Whether a stale write was refused.
    pub refused: bool,
}

impl Done {
    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "fault": self.fault.to_string(),
            "victim": self.victim,
            "settled": self.settled,
            "recovery_ms": u64::try_from(self.recovery.as_millis()).unwrap_or(u64::MAX),
            "refused": self.refused,
        })
    }
}

/// Does harm when the leader is about to settle what comes after payment `at`.
pub async fn inject(
    fault: Fault,
    at: u64,
    crew: &mut Crew,
    site: &mut Site,
    dice: &mut Dice,
) -> Outcome<Option<Done>> {
    if fault == Fault::None {
        return Ok(None);
    }
    let Holder {
        member: leader,
        settled: at,
    } = crew.wait_for_hold(at).await?;
    let done = match fault {
        Fault::Kill => kill(leader, at, crew, dice).await?,
        Fault::Freeze => freeze(leader, at, crew).await?,
        Fault::Stepdown => step_down(leader, at, crew, site).await?,
        Fault::None => return Ok(None),
    };
    Ok(Some(done))
}

/// SIGKILL, a few milliseconds after the leader was let go: anywhere in a transaction.
async fn kill(leader: usize, at: u64, crew: &mut Crew, dice: &mut Dice) -> Outcome<Done> {
    crew.child(leader)?.go()?;
    let delay = Duration::from_micros(u64::from(dice.below(KILL_AFTER_MAX_US)));
    tokio::time::sleep(delay).await;
    let status = crew.kill(leader)?;
    let killed_at = Instant::now();
    if status.signal() != Some(9) {
        return Err(format!(
            "the kill came too late: instance {} had ended before: {status}",
            Crew::name(leader)
        )
        .into());
    }
    crew.tell(&format!("drill: killed the leader {}", Crew::name(leader)));
    let succeeded_at = successor(leader, crew).await?;
    Ok(Done {
        fault: Fault::Kill,
        victim: Crew::name(leader).to_owned(),
        settled: at,
        recovery: succeeded_at.saturating_duration_since(killed_at),
        refused: false,
    })
}

/// SIGSTOP with a batch prepared, until another has led and settled that very batch; then SIGCONT.
async fn freeze(leader: usize, at: u64, crew: &mut Crew) -> Outcome<Done> {
    crew.child(leader)?.freeze()?;
    let frozen_at = Instant::now();
    crew.tell(&format!("drill: froze the leader {}", Crew::name(leader)));
    let succeeded_at = successor(leader, crew).await?;
    crew.wait_for_more_than(at).await?;
    crew.tell(&format!(
        "drill: thaws {}, which still believes that it leads",
        Crew::name(leader)
    ));
    crew.child(leader)?.go()?;
    crew.child(leader)?.thaw()?;
    let refused = crew
        .wait_for("what becomes of the stale write", |incident| {
            match &incident.report {
                Report::Refused(_) if incident.member == leader => Some(true),
                // Back among the others without a refusal: its stale write went through, or was not tried.
                Report::StandsBy | Report::Complete { .. } if incident.member == leader => Some(false),
                _ => None,
            }
        })
        .await?;
    Ok(Done {
        fault: Fault::Freeze,
        victim: Crew::name(leader).to_owned(),
        settled: at,
        recovery: succeeded_at.saturating_duration_since(frozen_at),
        refused,
    })
}

/// replSetStepDown, right after the leader was let go: its batches run meanwhile.
async fn step_down(leader: usize, at: u64, crew: &mut Crew, site: &mut Site) -> Outcome<Done> {
    crew.child(leader)?.go()?;
    let began_at = Instant::now();
    let victim = site.step_down().await?;
    crew.tell(&format!("drill: had the primary {victim} step down"));
    if crew.look().await == crew.payments() {
        return Err(
            "the step-down came too late: every payment was settled; give the drill more payments".into(),
        );
    }
    crew.wait_for_more_than(crew.settled()).await?;
    Ok(Done {
        fault: Fault::Stepdown,
        victim,
        settled: at,
        recovery: began_at.elapsed(),
        refused: false,
    })
}

/// Waits until another instance leads, has claimed the fence and goes on with the work.
async fn successor(former: usize, crew: &mut Crew) -> Outcome<Instant> {
    crew.wait_for("another leader", |incident| {
        let goes_on = incident.member != former && matches!(incident.report, Report::GoesOn { .. });
        goes_on.then_some(incident.at)
    })
    .await
}

/// Latest moment of a kill after the leader was let go, in microseconds.
const KILL_AFTER_MAX_US: u32 = 50_000;
