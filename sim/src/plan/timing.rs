//! Timings: the presets, the advised ones, and random ones that are sound.

use super::CANDIDATES_MAX;
use crate::chance::Chance;
use std::time::Duration;
use tenure_core::{Timing, TimingOptions, Ttl};

/// Tries to find random options that are sound, before the advised ones are taken.
const TRIES: u32 = 12;

/// A timing for every candidate that a plan may have: mostly the same, sometimes each its own.
pub(super) fn of_candidates(chance: &mut Chance) -> Vec<Timing> {
    let each_its_own = chance.per_mille(150);
    let common = one(chance);
    (0..CANDIDATES_MAX)
        .map(|_| if each_its_own { one(chance) } else { common })
        .collect()
}

#[derive(Clone, Copy)]
enum Sort {
    Batch,
    Controller,
    Advised,
    Random,
}

fn one(chance: &mut Chance) -> Timing {
    match chance.weighted(&[
        (Sort::Batch, 3),
        (Sort::Controller, 2),
        (Sort::Advised, 4),
        (Sort::Random, 3),
    ]) {
        Sort::Batch => Timing::batch(),
        Sort::Controller => Timing::controller(),
        Sort::Advised => advised(chance),
        Sort::Random => (0..TRIES)
            .find_map(|_| random(chance).check().ok())
            .unwrap_or_else(|| advised(chance)),
    }
}

fn advised(chance: &mut Chance) -> Timing {
    let milliseconds = chance.between(1_000, 60_000);
    Timing::of(Ttl::from_millis(milliseconds).expect("within 100 ms and 24 h"))
}

fn random(chance: &mut Chance) -> TimingOptions {
    let ttl_ms = chance.between(500, 60_000);
    let share = |chance: &mut Chance, low: u64, high: u64| {
        Duration::from_millis((ttl_ms * chance.between(low, high) / 1000).max(1))
    };
    let renew_every = share(chance, 80, 450);
    TimingOptions {
        renew_every: Some(renew_every),
        retry_every: Some(share(chance, 10, 120).min(renew_every)),
        request_timeout: Some(share(chance, 40, 300)),
        grace: Some(share(chance, 0, 400)),
        spread: Some(share(chance, 0, 250)),
        clock_rate_error_ppm: u32::try_from(chance.weighted(&[
            (0, 1),
            (100, 2),
            (500, 4),
            (5_000, 2),
            (20_000, 1),
        ]))
        .unwrap_or(500),
        // A store that counts in milliseconds is imprecise by one of them: no less is sound.
        step_allowance: Some(share(chance, 0, 60).max(Duration::from_millis(2))),
        ..TimingOptions::new(Duration::from_millis(ttl_ms))
    }
}
