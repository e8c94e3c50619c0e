//! The library around the engine: belief and its end, releases, watches, and elections.

use super::{Wrong, row};

const LOSS: &[&str] = &["loss::"];
/// Not all that begins with the name of the file: unit tests of the library do, too.
const ELECTION: &[&str] = &["election::a_", "election::authority_", "election::run_"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "belief lasts until somebody ends it",
        "G3",
        "src/deadline.rs",
        &[[
            "let authority = belief.at(clock());",
            "let authority = belief.at(clock().min(belief.doubt_from));",
        ]],
        &["deadline_tests::", "lock_processes::"],
    ),
    row(
        "a renewal brings back what somebody has seen to be over",
        "G3",
        "src/deadline.rs",
        &[[
            "let unless_over = |current| (!is_over(current)).then_some(until);",
            "let unless_over = |_| Some(until);",
        ]],
        &["deadline_tests::"],
    ),
    row(
        "a renewal takes back that the term is being ended",
        "G10",
        "src/deadline.rs",
        &[[
            "if let Some(since) = belief.ending_from { self.begin_to_end(since); }",
            "self.ending_from.store(belief.ending_from.map_or(NEVER, Moment::as_nanos), Ordering::SeqCst);",
        ]],
        &["deadline_tests::", "election::a_"],
    ),
    row(
        "of the terms that were renewed only the first is believed in for longer",
        "L4",
        "src/driver/mod.rs",
        &[[
            "for name in extended(&actions).chain(&ending) {",
            "for name in extended(&actions).chain(&ending).take(1) {",
        ]],
        &["locks_many::"],
    ),
    row(
        "of the requests of a step only the first is sent",
        "L4",
        "src/driver/mod.rs",
        &[[
            "for request in actions.requests {",
            "for request in actions.requests.into_iter().take(1) {",
        ]],
        &["locks_many::", "locks::"],
    ),
    row(
        "terms outlive a driver that has panicked",
        "L4",
        "src/driver/mod.rs",
        &[[
            "if term.authority() != Authority::None {",
            "if term.authority() == Authority::None {",
        ]],
        &["lock_steps::"],
    ),
    row(
        "a driver ends before what it holds is given back",
        "G17",
        "src/driver/mod.rs",
        &[[
            "if self.engine.is_idle() && (self.closing || self.abandoned) {",
            "if self.closing || self.abandoned {",
        ]],
        ELECTION,
    ),
    row(
        "guarded work goes on after its deadline",
        "G3",
        "src/held.rs",
        &[[
            "poll_fn(|context| match self.term.authority() { Authority::None => Poll::Ready(None),",
            "poll_fn(|context| match self.term.authority() { Authority::None => work.as_mut().poll(context).map(Some),",
        ]],
        LOSS,
    ),
    row(
        "a loss is told when the driver tells it",
        "G3",
        "src/held.rs",
        &[[
            "changed_or(&mut phase, timer.wait_until(until)).await;",
            "let _ = until; changed_or(&mut phase, std::future::pending()).await;",
        ]],
        LOSS,
    ),
    row(
        "a loss waits for its cause for as long as that takes",
        "G3",
        "src/held.rs",
        &[["Duration::from_millis(20)", "Duration::from_secs(3_600)"]],
        LOSS,
    ),
    row(
        "every loss is told as one at the deadline",
        "G11",
        "src/held.rs",
        &[[
            "Phase::Over(cause) => Cause::clone(cause),",
            "Phase::Over(_) => Cause::Deadline(None),",
        ]],
        &["loss::", "election::a_", "locks::"],
    ),
    row(
        "a term that was lost before is told as released",
        "L9",
        "src/held.rs",
        &[[
            "Some(None) => ReleaseOutcome::LostBefore(self.loss()),",
            "Some(None) => ReleaseOutcome::Released,",
        ]],
        &["loss::", "lock_owners::", "locks::", "election::a_"],
    ),
    row(
        "a term that is dropped is not given back",
        "G17",
        "src/held.rs",
        &[[
            "if !self.term.has_been_ended() { self.end(None); }",
            "if !self.term.has_been_ended() { self.term.end_belief(); }",
        ]],
        ELECTION,
    ),
    row(
        "a term that was given back is taken up all the same",
        "G30",
        "src/driver/message.rs",
        &[[
            "let is_had = term.settle() && term.authority() != Authority::None;",
            "let is_had = term.settle() || term.authority() != Authority::None || true;",
        ]],
        &["lock_abandoned::"],
    ),
    row(
        "a term that nobody takes up is kept",
        "G30",
        "src/driver/events.rs",
        &[[
            "self.offers.add(due, name.clone(), term);",
            "let _ = (due, term);",
        ]],
        &["lock_abandoned::"],
    ),
    row(
        "a holder does not hear that its term is to be ended",
        "C13",
        "src/driver/events.rs",
        &[[
            "Event::AskedToStepDown { name, token } => self.enter(name, *token, &Phase::Ending),",
            "Event::AskedToStepDown { .. } => {}",
        ]],
        ELECTION,
    ),
    row(
        "a watch that has ended is not begun anew",
        "L8",
        "src/driver/watcher.rs",
        &[[
            "stands.store(false, Ordering::SeqCst); if was_of_use",
            "stands.store(false, Ordering::SeqCst); if true { std::future::pending::<()>().await; } if was_of_use",
        ]],
        &["lock_back_off::"],
    ),
    row(
        "what happened before the watch was in place is missed",
        "G17",
        "src/driver/watcher.rs",
        &[[
            "if missed.tell(store, hints).await.is_err() { return; } let over",
            "if false { return; } let over",
        ]],
        &["election::a_", "lock_watches::"],
    ),
    row(
        "a worker that is stuck leads on",
        "G22",
        "src/driver/progress.rs",
        &[[
            "is_news.then(|| Command::Progress { name: name.clone(), token: progressing.term.token(), at, })",
            "let _ = (is_news, at); Some(Command::Progress { name: name.clone(), token: progressing.term.token(), at: now })",
        ]],
        &["election::a_", "driver::progress::"],
    ),
    row(
        "a worker that reports progress is taken for stuck",
        "G22",
        "src/driver/progress.rs",
        &[["is_news.then(||", "(is_news && false).then(||"]],
        &["driver::progress::"],
    ),
    row(
        "an answer that was overtaken is shown to observers",
        "G21",
        "src/election/observer.rs",
        &[[
            "if token.is_some_and(|token| Some(token) < self.highest) {",
            "if token.is_some_and(|token| Some(token) < self.highest) && token.is_none() {",
        ]],
        &["observing::"],
    ),
    row(
        "an election that is dropped waits for no release",
        "G17",
        "src/election/mod.rs",
        &[[
            "let _ = gone.recv_timeout(self.plan.timing.request_timeout().min(PATIENCE_AT_DROP));",
            "drop(gone);",
        ]],
        ELECTION,
    ),
    row(
        "an election runs on while somebody keeps its term",
        "G10",
        "src/election/mod.rs",
        &[[
            "let _ = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;",
            "let _ = &mut phase;",
        ]],
        ELECTION,
    ),
];
