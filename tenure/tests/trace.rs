//! What an election records replays, and recording never costs a term.

use crate::harness::{PATIENCE, Site, enduring_timing as timing, soon};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tenure::trace::{self, Verdict};
use tenure::{Authority, Election, Event, TimingOptions, clock_now};
use tenure_testkit::eventually;
use tokio::sync::broadcast::error::RecvError;

fn recorded(site: &Site, candidate: &str, out: impl Write + Send + 'static) -> Election {
    Election::builder("job", site.store())
        .candidate(candidate)
        .timing(timing())
        .note("a note")
        .progress_within(Duration::from_secs(60))
        .trace(out)
        .build()
        .unwrap()
}

#[tokio::test]
async fn two_elections_record_what_replays_and_one_believes_at_a_time() {
    let site = Site::new();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["first", "second"].map(|candidate| folder.path().join(candidate));
    let elections: Vec<Election> = paths
        .iter()
        .map(|path| recorded(&site, "same", trace::create(path).unwrap()))
        .collect();
    for _ in 0..3 {
        for election in &elections {
            let leadership = soon("the campaign", election.campaign()).await.unwrap();
            leadership.progress();
            tokio::time::sleep(timing().renew_every() + Duration::from_millis(200)).await;
            soon("the departure", leadership.step_down()).await;
        }
    }
    for election in elections {
        let candidate = election.candidate().clone();
        let path = &paths[usize::from(trace::open(&paths[0]).unwrap().header().candidate != candidate)];
        close(&election, || {
            let terms = trace::check_file(path).unwrap().terms;
            terms.len() == 3 && terms.iter().all(|term| term.ended)
        })
        .await;
        let replayed = trace::replay_file(path).unwrap();
        assert_eq!(replayed.verdict, Verdict::Same);
        assert_eq!(replayed.truncated, None);
        let checked = trace::check_file(path).unwrap();
        assert_eq!(checked.breach, None);
        // All that was recorded is there when the election has been closed.
        assert_eq!(checked.terms.len(), 3);
        assert!(checked.terms.iter().all(|term| term.ended), "{checked:?}");
    }
    let merged = trace::merge_files(&paths).unwrap();
    assert_eq!((merged.breach, merged.terms, merged.passed_on), (None, 6, 5));
}

/// How long closing waits for the disk.
const PATIENCE_AT_END: Duration = Duration::from_secs(1);

/// All is written when it has been closed; only where that took its whole patience, on a machine that stood
/// still, a little later.
async fn close(election: &Election, is_written: impl Fn() -> bool) {
    let began = Instant::now();
    soon("the end", election.close()).await;
    if began.elapsed() >= PATIENCE_AT_END {
        eventually(PATIENCE, "the rest of the trace", is_written);
    }
}

/// Leads for two ttls, over whatever happens to the trace.
async fn lead_on(election: &Election) {
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let token = leadership.token();
    tokio::time::sleep(timing().ttl().duration() * 2).await;
    assert!(matches!(leadership.authority(), Authority::Held { token: held, .. } if held == token));
    assert!(leadership.until() > clock_now());
    soon("the departure", leadership.step_down()).await;
}

#[tokio::test]
async fn a_full_disk_costs_the_trace_and_not_the_term() {
    let site = Site::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let election = recorded(&site, "first", full);
    lead_on(&election).await;
    soon("the end", election.close()).await;
}

/// A disk that hangs until it is let go.
#[derive(Clone, Default)]
struct Hanging(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    free: bool,
    reached: bool,
}

impl Hanging {
    fn let_go(&self) {
        self.0.0.lock().unwrap().free = true;
        self.0.1.notify_all();
    }
}

impl Write for Hanging {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.reached = true;
        while !state.free {
            state = changed.wait(state).unwrap();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_disk_that_hangs_costs_the_trace_and_not_the_term() {
    let site = Site::new();
    let disk = Hanging::default();
    // A renewal every millisecond, so that there is soon more than may wait.
    let often = TimingOptions {
        renew_every: Some(Duration::from_millis(1)),
        ..TimingOptions::new(timing().ttl().duration())
    };
    let election = Election::builder("job", site.store())
        .timing(often.check().unwrap())
        .trace(disk.clone())
        .build()
        .unwrap();
    let mut events = election.events();
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let renewed = async {
        let mut renewals = 0;
        // Each is two lines at least, and 256 may wait.
        while renewals < 200 {
            match events.recv().await {
                Ok(Event::Renewed { .. }) => renewals += 1,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => panic!("the election has ended"),
            }
        }
    };
    soon("renewals while the disk hangs", renewed).await;
    assert!(disk.0.0.lock().unwrap().reached, "nothing was to be written");
    tokio::time::sleep(timing().ttl().duration()).await;
    assert!(matches!(leadership.authority(), Authority::Held { .. }));
    soon("the departure", leadership.step_down()).await;
    // Closing waits for it a little, not for ever.
    soon("the end", election.close()).await;
    disk.let_go();
}

#[tokio::test]
async fn an_election_that_is_dropped_has_written_its_trace() {
    let site = Site::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let file: File = trace::create(&path).unwrap();
    let election = recorded(&site, "first", file);
    drop(soon("the campaign", election.campaign()).await.unwrap());
    tokio::task::spawn_blocking(move || drop(election)).await.unwrap();
    // A drop waits less long than a close.
    let checked = eventually(PATIENCE, "the end of the term is in the trace", || {
        let checked = trace::check_file(&path).unwrap();
        checked.terms.iter().all(|term| term.ended).then_some(checked)
    });
    assert_eq!((checked.breach, checked.truncated), (None, None));
    assert_eq!(checked.terms.len(), 1);
    assert!(checked.terms[0].ended);
}

/// A disk that takes its time.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<u8>>>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(50));
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_election_that_is_closed_has_written_its_trace_to_a_slow_disk() {
    let site = Site::new();
    let disk = Slow::default();
    let election = recorded(&site, "first", disk.clone());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    soon("the departure", leadership.step_down()).await;
    let text = || String::from_utf8(disk.0.lock().unwrap().clone()).unwrap();
    close(&election, || text().contains("\"departed\"")).await;
    let written = disk.0.lock().unwrap().clone();
    let checked = trace::check(&mut trace::Reader::new(written.as_slice()).unwrap()).unwrap();
    assert_eq!((&checked.breach, checked.truncated), (&None, None));
    assert!(checked.terms.iter().all(|term| term.ended), "{checked:?}");
    let text = text();
    assert!(text.contains("\"departed\""), "{text}");
}
