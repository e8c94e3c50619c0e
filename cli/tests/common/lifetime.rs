//! Work that is to end before its lease does, on a machine that may stand still meanwhile.

use super::Sandbox;
use std::time::{Duration, Instant};
use tenure_testkit::is_alive;

/// Longest pause between two looks on a machine that goes on: less than any margin before which the work is
/// killed.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Before the end, and longer than any of these margins: a pause in it may have held up what kills the work,
/// too.
const CRITICAL: Duration = Duration::from_millis(500);

/// Tries of a scenario that a machine which stands still may spoil.
const TRIES_MAX: usize = 3;

/// For how long the machine stood still while the work was to be killed: no program could have done that in
/// time.
#[derive(Debug)]
pub struct StoodStill(Duration);

/// Plays a scenario again where the machine has spoilt it, and fails if that happens each time.
pub fn played_again(mut scenario: impl FnMut() -> Result<(), StoodStill>) {
    let spoilt: Vec<StoodStill> = (0..TRIES_MAX).map_while(|_| scenario().err()).collect();
    assert!(
        spoilt.len() < TRIES_MAX,
        "the command outlived the lease each time: {spoilt:?}"
    );
}

impl Sandbox {
    /// Waits until the process is gone, and fails if it is there when the lease, no longer renewed, has
    /// surely ended.
    ///
    /// What the store has said of the time left is known here a moment later: the earliest of a few ends is
    /// nearest to the truth.
    pub fn dies_within_its_lease(&self, process: u32, name: &str) -> Result<(), StoodStill> {
        let end = || {
            let remaining = self.lease(name)["remaining_ms"].as_u64()?;
            Some(Instant::now() + Duration::from_millis(remaining))
        };
        let end = (0..4).filter_map(|_| end()).min().expect("it has not ended");
        let (mut before, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            // Before the look: whoever is held up after it knows of no time at which the work was alive.
            let now = Instant::now();
            if now + CRITICAL > end {
                longest = longest.max(now - before);
            }
            before = now;
            if !is_alive(process) {
                return Ok(());
            }
            if now >= end {
                assert!(longest > PAUSE_MAX, "the command outlived the lease");
                return Err(StoodStill(longest));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
