//! No change of leader that nobody forced, while every core is busy.

use crate::figures::judge;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure::sqlite::SqliteStore;
use tenure::{Authority, Election, Event, Timing, Ttl};
use tenure_testkit::ScratchDir;

pub async fn measure(seconds: u64) {
    let folder = ScratchDir::new("bench-soak");
    let timing = Timing::of(Ttl::from_secs(3).unwrap());
    let build = |candidate| {
        let store = Arc::new(SqliteStore::open(folder.join("leases.db")).unwrap());
        Election::builder("soak", store)
            .candidate(candidate)
            .timing(timing)
            .build()
            .unwrap()
    };
    let (leader, standby) = (build("leader"), build("standby"));
    let mut events = leader.events();
    let leadership = leader.campaign().await.unwrap();
    let waiting = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    let stop = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    for _ in 0..cores {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::hint::black_box((0..10_000_u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum | 1)));
            }
        });
    }
    let (mut renewals, mut worst_slack, mut doubts) = (0_u64, Duration::MAX, 0_u64);
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut ended = 0_u64;
    while let Ok(event) = tokio::time::timeout_at(end, events.recv()).await {
        match event.expect("every event is seen, or the soak would have ended early") {
            Event::Renewed { slack, .. } => {
                renewals += 1;
                worst_slack = worst_slack.min(slack);
            }
            Event::Doubted { .. } => doubts += 1,
            Event::Ended { .. } => ended += 1,
            _ => {}
        }
    }
    stop.store(true, Ordering::Relaxed);
    let unforced = ended
        .max(u64::from(waiting.is_finished()))
        .max(u64::from(leadership.authority() == Authority::None));
    println!(
        "soak of {seconds} s with {cores} busy threads, ttl 3 s: {renewals} renewals, worst slack {:.0} ms, {doubts} doubts",
        worst_slack.as_secs_f64() * 1000.0
    );
    #[allow(clippy::cast_precision_loss, reason = "a handful")]
    judge("  unforced changes of leader", unforced as f64, 0.0, "");
    assert_eq!(unforced, 0, "leadership was lost with nobody's doing");
    waiting.abort();
    leadership.step_down().await;
}
