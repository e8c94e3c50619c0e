//! Leaders that are processes, frozen while they write and thawed when they have been succeeded.

use super::open;
use super::register::{Kind, Outcome, Register, resource, term};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_testkit::Process;

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes that a thawed leader attempts.
const STALE_PER_PAUSE: u32 = 100;

/// The program of the frozen: claims, writes until it is refused, and then goes on trying.
pub async fn write_until_refused(kind: Kind, place: &str, token: u64) {
    let (register, term) = (open(kind, place).await, term(token));
    register.fence().claim(&resource(), &term).await.unwrap();
    let mut read = register.read(&term).await.unwrap();
    println!("writing");
    let mut refused = 0;
    while refused < STALE_PER_PAUSE {
        match register.write(&term, read).await {
            Outcome::Accepted if refused > 0 => panic!("accepted after it had been refused"),
            Outcome::Accepted => read += 1,
            Outcome::Refused => refused += 1,
            Outcome::Failed if refused == 0 => read = register.read(&term).await.unwrap_or(read),
            Outcome::Failed => {}
        }
    }
    println!("refused {refused}");
}

pub async fn freeze_leaders(kind: Kind, place: &str, register: &Arc<dyn Register>, pauses: u32) {
    let began = Instant::now();
    let (mut done, mut refused) = (0, 0);
    for pause in 0..pauses {
        let mark = register.fence().mark(&resource()).await.unwrap();
        let token = mark.map_or(0, |mark| mark.token.number()) + 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["fence-writer", "--kind"])
            .arg(clap::ValueEnum::to_possible_value(&kind).unwrap().get_name())
            .args(["--place", place, "--token", &token.to_string()]);
        let leader = Process::spawn(command).unwrap();
        leader.wait_for_line("writing", PATIENCE).unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(pause * 37 % 90))).await;
        leader.freeze();
        let successor = term(token + 1);
        let deadline = Instant::now() + PATIENCE;
        // Frozen inside a transaction it holds the claim up: in SQLite until it is thawed, in MongoDB until the
        // server ends the transaction.
        while let Err(error) = register.fence().claim(&resource(), &successor).await {
            assert!(Instant::now() < deadline, "{error}");
            if matches!(kind, Kind::SqliteEnter | Kind::SqliteTable) {
                leader.thaw();
            }
        }
        let mut read = register.read(&successor).await.unwrap();
        for _ in 0..5 {
            if register.write(&successor, read).await == Outcome::Accepted {
                read += 1;
            }
        }
        leader.thaw();
        let status = leader.wait_for_exit(PATIENCE).unwrap();
        assert!(status.success(), "{:?}", leader.lines());
        let told = leader.wait_for_line("refused", PATIENCE).unwrap();
        refused += told.text.trim_start_matches("refused ").parse::<u64>().unwrap();
        done += 1;
    }
    if done > 0 {
        println!(
            "  {done} leaders frozen with SIGSTOP, {:.0?}: {refused} stale writes attempted, 0 accepted",
            began.elapsed()
        );
    }
}
