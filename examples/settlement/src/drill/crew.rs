//! The instances of a drill, and a progress bar over what they have settled.

use super::child::{Child, Said};
use crate::Outcome;
use crate::ledger::Ledger;
use crate::report::Report;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

/// One report of one instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incident {
    /// Which instance.
    pub member: usize,
    /// When.
    pub at: Instant,
    /// What.
    pub report: Report,
}

/// An instance that holds with a batch prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Which instance.
    pub member: usize,
    /// How many payments come before its batch.
    pub settled: u64,
}

/// Three instances, and what they have said so far.
pub struct Crew {
    children: Vec<Option<Child>>,
    said: mpsc::Receiver<Said>,
    ticks: tokio::time::Interval,
    ledger: Box<dyn Ledger>,
    bar: ProgressBar,
    /// What the ledger's checkpoint was when it was last looked at.
    settled: u64,
    /// Who holds, by where it was told to.
    holding: BTreeMap<u64, Holder>,
    /// Where somebody has held already: who comes there later is told to go on at once.
    used: BTreeSet<u64>,
    /// Refusals of stale writes.
    pub refused: Vec<String>,
    /// Terms that began.
    pub terms: u64,
}

impl Crew {
    /// Starts the instances. `arguments` are those of one instance, by its name.
    pub fn start(
        payments: u64,
        ledger: Box<dyn Ledger>,
        arguments: impl Fn(&str) -> Vec<String>,
    ) -> Outcome<Self> {
        let (sender, said) = mpsc::channel(LINES_WAITING);
        let children = (0..NAMES.len())
            .map(|member| Child::spawn(member, &arguments(NAMES[member]), &sender).map(Some))
            .collect::<Outcome<_>>()?;
        let bar = ProgressBar::new(payments).with_style(bar_style());
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            children,
            said,
            ticks,
            ledger,
            bar,
            settled: 0,
            holding: BTreeMap::new(),
            used: BTreeSet::new(),
            refused: Vec::new(),
            terms: 0,
        })
    }

    /// The name of an instance.
    pub fn name(member: usize) -> &'static str {
        NAMES[member]
    }

    /// What the checkpoint was when it was last looked at.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// How many payments there are.
    pub fn payments(&self) -> u64 {
        self.bar.length().unwrap_or(0)
    }

    /// Looks at the checkpoint. A ledger that just fails over does not answer; the next look will tell.
    pub async fn look(&mut self) -> u64 {
        if let Ok(Ok(settled)) = tokio::time::timeout(LOOK_MAX, self.ledger.progress()).await {
            self.settled = settled;
            self.bar.set_position(settled);
        }
        self.settled
    }

    /// An instance that has not ended.
    pub fn child(&mut self, member: usize) -> Outcome<&mut Child> {
        self.children[member]
            .as_mut()
            .ok_or_else(|| format!("instance {} has ended already", NAMES[member]).into())
    }

    /// Kills an instance with SIGKILL.
    pub fn kill(&mut self, member: usize) -> Outcome<ExitStatus> {
        let status = self.child(member)?.kill()?;
        self.children[member] = None;
        Ok(status)
    }

    /// Writes a line above the progress bar.
    pub fn tell(&self, line: &str) {
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }

    /// Waits for an incident that `pick` takes.
    pub async fn wait_for<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&Incident) -> Option<T>,
    ) -> Outcome<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(picked) = self.step(what, deadline).await?.as_ref().and_then(&mut pick) {
                return Ok(picked);
            }
        }
    }

    /// Waits until an instance holds where it was told to.
    pub async fn wait_for_hold(&mut self, at: u64) -> Outcome<Holder> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(holder) = self.holding.remove(&at) {
                self.used.insert(at);
                return Ok(holder);
            }
            self.step(&format!("an instance that holds at payment {at}"), deadline)
                .await?;
        }
    }

    /// Waits until more than this is settled.
    pub async fn wait_for_more_than(&mut self, settled: u64) -> Outcome<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.settled <= settled {
            self.step(&format!("progress beyond payment {settled}"), deadline)
                .await?;
        }
        Ok(())
    }

    /// Waits until every instance that was not killed has ended, and gives the ledger back.
    pub async fn finish(mut self) -> Outcome<(Box<dyn Ledger>, Vec<String>, u64)> {
        while self.children.iter().any(Option::is_some) {
            let deadline = Instant::now() + PATIENCE;
            let before = self.settled;
            // As long as there is progress, it may take as long as it takes.
            while self.children.iter().any(Option::is_some) && self.settled == before {
                self.step("the end of the instances", deadline).await?;
            }
        }
        self.bar.finish();
        Ok((self.ledger, self.refused, self.terms))
    }

    /// Waits for the next line or the next look at the ledger.
    async fn step(&mut self, what: &str, deadline: Instant) -> Outcome<Option<Incident>> {
        if Instant::now() > deadline {
            return Err(format!(
                "waited {PATIENCE:?} for {what}; {} payments are settled",
                self.settled
            )
            .into());
        }
        tokio::select! {
            said = self.said.recv() => match said {
                Some(said) => self.hear(said),
                None => Err("every instance has ended".into()),
            },
            _ = self.ticks.tick() => {
                self.look().await;
                Ok(None)
            }
        }
    }

    fn hear(&mut self, said: Said) -> Outcome<Option<Incident>> {
        let Said { member, at, line } = said;
        let Some(line) = line else {
            // Output that ends is the end of the process; one that was killed is gone from here already.
            if let Some(mut child) = self.children[member].take() {
                let status = child.status()?;
                if !status.success() {
                    return Err(format!("instance {} ended: {status}", NAMES[member]).into());
                }
            }
            return Ok(None);
        };
        let Some(report) = Report::parse(&line) else {
            self.tell(&format!("{}: {line}", NAMES[member]));
            return Ok(None);
        };
        if let Report::Holds { at, .. } = &report
            && self.used.contains(at)
        {
            self.child(member)?.go()?;
            return Ok(None);
        }
        self.tell(&format!("{}: {line}", NAMES[member]));
        match &report {
            Report::Leads { .. } => self.terms += 1,
            Report::Refused(refusal) => self.refused.push(format!("{}: {refusal}", NAMES[member])),
            Report::Holds { at, settled } => {
                let settled = *settled;
                self.holding.insert(*at, Holder { member, settled });
            }
            Report::StandsBy
            | Report::GoesOn { .. }
            | Report::Asked
            | Report::Lost(_)
            | Report::Trouble(_)
            | Report::Complete { .. } => {}
        }
        Ok(Some(Incident { member, at, report }))
    }
}

fn bar_style() -> ProgressStyle {
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        // A terminal that cannot be written to is no reason to end a drill.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    ProgressStyle::with_template(
        "{elapsed_precise} [{bar:40}] {human_pos} of {human_len} ({rate}, {eta} left)",
    )
    .expect("the template is well formed")
    .with_key("rate", rate)
    .progress_chars("=> ")
}

const NAMES: [&str; 3] = ["A", "B", "C"];

/// Lines that may wait to be read; an instance that says more has to wait.
const LINES_WAITING: usize = 256;

/// From one look at the ledger to the next.
const TICK: Duration = Duration::from_millis(100);

/// Longest look at the ledger.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Longest wait for anything that a drill expects.
const PATIENCE: Duration = Duration::from_secs(90);
