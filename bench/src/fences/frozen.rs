//! Leaders that are processes, frozen while they write and thawed when they have been succeeded.

use super::kind::Kind;
use super::place::Place;
use super::register::{FrozenWriter, Outcome, term};
use super::writer::{Told, now_ns};
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::Process;

/// How long anything here may take but a leader's stale writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long those of one leader may take.
const WRITES_PATIENCE: Duration = Duration::from_secs(900);

/// Freezes so many leaders, which attempt so many stale writes together. `last` is the highest token that was
/// given out.
pub async fn freeze_leaders(kind: Kind, place: &Place, last: u64, pauses: u32, stale_writes: u64) {
    let (register, began) = (&place.register, Instant::now());
    let (mut refused, mut accepted, mut undecided) = (0, 0, 0);
    let mut token = last;
    for pause in 0..pauses {
        token += 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["fence-writer", "--kind", &kind.name()])
            .args(["--address", &place.address, "--token", &token.to_string()])
            .args([
                "--stale-writes",
                &stale_writes.div_ceil(u64::from(pauses)).to_string(),
            ]);
        let leader = Process::spawn(command).unwrap();
        leader.wait_for_line("writing", PATIENCE).unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(pause * 37 % 90))).await;
        leader.freeze();
        token += 1;
        let successor = term(token);
        let deadline = Instant::now() + PATIENCE;
        // Frozen inside a transaction it holds the claim up.
        while let Err(error) = register.claim(&successor).await {
            assert!(Instant::now() < deadline, "{error:?}");
            if register.frozen_writer() == FrozenWriter::HoldsUntilThawed {
                leader.thaw();
            }
        }
        let claimed_ns = now_ns();
        let mut read = register.read(&successor).await.unwrap();
        for _ in 0..5 {
            if register.write(&successor, read).await == Outcome::Accepted {
                read += 1;
            }
        }
        leader.thaw();
        let status = leader.wait_for_exit(WRITES_PATIENCE).unwrap();
        assert!(status.success(), "{:?}", leader.lines());
        let told = Told::parse(&leader.wait_for_line("refused", PATIENCE).unwrap().text);
        refused += told.refused;
        accepted += told.accepted + u64::from(told.last_accepted_ns > claimed_ns);
        undecided += told.undecided;
    }
    if pauses > 0 {
        println!(
            "  {pauses} leaders frozen with SIGSTOP, {:.0?}: {} stale writes attempted, {refused} refused, {accepted} \
             accepted; {undecided} more undecided",
            began.elapsed(),
            refused + accepted,
        );
    }
    assert_eq!(accepted, 0);
}
