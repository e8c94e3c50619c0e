//! What must hold of a history, whoever wrote it.

use crate::book::Entry;
use std::collections::BTreeMap;

/// A write that a client was told to be done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Its token.
    pub token: i64,
    /// The balance that the client had read before.
    pub read: i64,
    /// The balance that it wrote; no other write has the same.
    pub wrote: i64,
}

/// What is wrong in a history. All 0 if nothing is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// Changes of an older term after those of a later one.
    pub stale: usize,
    /// Changes that overwrote a balance which their writer had not read.
    pub lost_updates: usize,
    /// Writes that were confirmed and are not there, or are there twice.
    pub missing: usize,
    /// Changes that nobody was told of.
    pub unconfirmed: usize,
}

/// Compares what took effect with what the clients were told.
pub fn check(history: &[Entry], done: &[Done]) -> Findings {
    let mut findings = Findings::default();
    let mut confirmed: BTreeMap<i64, Done> = done.iter().map(|done| (done.wrote, *done)).collect();
    let mut latest = i64::MIN;
    for entry in history {
        if entry.token < latest {
            findings.stale += 1;
        }
        latest = latest.max(entry.token);
        match confirmed.remove(&entry.after) {
            Some(done) if done.token != entry.token => findings.missing += 1,
            Some(done) if done.read != entry.before => findings.lost_updates += 1,
            Some(_) => {}
            None => findings.unconfirmed += 1,
        }
    }
    findings.missing += confirmed.len();
    findings
}
