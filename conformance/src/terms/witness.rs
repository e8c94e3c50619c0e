//! Sees every term of one lease, and remembers all tokens.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Attempt, FencingToken, Incarnation, Lease};

#[derive(Default)]
pub(super) struct Witness {
    terms: u64,
    pub(super) unknown: u64,
    late: u64,
    again: u64,
    renewed: u64,
    tokens: BTreeMap<FencingToken, (Incarnation, Attempt)>,
    /// Who believes, and until when.
    holder: Option<(Incarnation, Instant)>,
    violations: Vec<String>,
}

impl Witness {
    /// Adds what another has seen.
    pub(super) fn add(&mut self, other: &Mutex<Self>) {
        let other = other.lock().unwrap_or_else(PoisonError::into_inner);
        self.terms += other.terms;
        self.unknown += other.unknown;
        self.late += other.late;
        self.again += other.again;
        self.renewed += other.renewed;
        self.violations.extend(other.violations.iter().cloned());
    }

    /// Whether a term begins with this grant: not if it is over already.
    pub(super) fn begin(&mut self, asked: &Acquire, token: FencingToken, again: bool, ends: Instant) -> bool {
        let (now, mine) = (Instant::now(), (asked.candidate.incarnation, asked.attempt));
        let name = &asked.name;
        self.again += u64::from(again);
        if let Some(other) = self.tokens.insert(token, mine)
            && other != mine
        {
            let violation = format!("token {token} of {name} was given to two attempts");
            self.violations.push(violation);
        }
        if now >= ends {
            self.late += 1;
            return false;
        }
        // Whoever believes from now on has the highest token of all.
        let highest = self.tokens.last_key_value();
        if highest.is_some_and(|(highest, _)| *highest > token) {
            let violation = format!("term {token} of {name} begins after a later one");
            self.violations.push(violation);
        }
        if let Some((other, until)) = self.holder
            && other != mine.0
            && now < until
        {
            let left = until - now;
            let violation = format!("two believe in {name}: {other} for {left:?} more, and term {token}");
            self.violations.push(violation);
        }
        self.holder = Some((mine.0, ends));
        self.terms += 1;
        true
    }

    pub(super) fn extend(&mut self, asked: &Acquire, until: Instant) {
        self.renewed += 1;
        if let Some(holder) = self.held_by(asked) {
            holder.1 = until;
        }
    }

    pub(super) fn lost(&mut self, asked: &Acquire, token: FencingToken, until: Instant, now: Option<&Lease>) {
        let (name, left) = (&asked.name, until.saturating_duration_since(Instant::now()));
        let violation = format!("term {token} of {name} was lost {left:?} before its deadline: {now:?}");
        self.violations.push(violation);
    }

    pub(super) fn end(&mut self, asked: &Acquire) {
        if self.held_by(asked).is_some() {
            self.holder = None;
        }
    }

    fn held_by(&mut self, asked: &Acquire) -> Option<&mut (Incarnation, Instant)> {
        self.holder
            .as_mut()
            .filter(|holder| holder.0 == asked.candidate.incarnation)
    }

    /// Prints it all. A run in which nothing was unknown, or nothing was given again, has shown nothing.
    pub(super) fn report(&self, leases: usize, took: Duration, faults: u64) -> ExitCode {
        println!(
            "{} terms of {leases} leases in {:.0} s, {faults} faults; {} outcomes unknown, {} replies late, {} terms given \
             again, {} renewed; {} violations",
            self.terms,
            took.as_secs_f64(),
            self.unknown,
            self.late,
            self.again,
            self.renewed,
            self.violations.len()
        );
        for violation in &self.violations {
            println!("  {violation}");
        }
        match self.violations.is_empty() && self.unknown > 0 && self.again > 0 {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
