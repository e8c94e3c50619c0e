//! The judge of the engine target judges: each lie about an engine's actions is refused by the rule it
//! breaks.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;
use tenure_fuzz::targets::engine::checker::{Checker, Sight, Violation};

/// A real engine whose actions can be lied about.
struct Life {
    engine: Engine,
    checker: Checker,
    now: Moment,
}

fn job() -> LeaseName {
    LeaseName::new("job").unwrap()
}

fn token() -> FencingToken {
    FencingToken::new(7).unwrap()
}

fn grant() -> Reply {
    let (ttl, terms) = (Timing::batch().ttl(), 1);
    let grant = Grant {
        token: token(),
        ttl,
        terms,
        again: false,
        predecessor: None,
    };
    Reply::Acquired(Ok(Acquired::Granted(grant)))
}

fn campaign() -> Input {
    Input::Command(Command::Campaign {
        name: job(),
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    })
}

fn work_ended() -> Input {
    Input::Command(Command::WorkEnded {
        name: job(),
        token: token(),
    })
}

impl Life {
    fn new() -> Self {
        let candidate = Candidate {
            id: CandidateId::new("me").unwrap(),
            incarnation: Incarnation::from_bits(1),
        };
        let timing = Timing::batch();
        Self {
            engine: Engine::new(candidate.clone(), timing, NonZeroUsize::MIN, 1),
            checker: Checker::new(candidate, timing, NonZeroUsize::MIN),
            now: Moment::from_millis(1000),
        }
    }

    /// A life in its first term.
    fn leading() -> Self {
        let mut life = Self::new();
        let acquire = life.step(campaign()).requests.remove(0);
        life.tell(Input::Answer {
            request: acquire.id,
            reply: grant(),
        });
        life
    }

    /// A life that was told of the end of its work, with the request that gives the lease back.
    fn leaving() -> (Self, Request) {
        let mut life = Self::leading();
        let release = life.step(work_ended()).requests.remove(0);
        (life, release)
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    fn judge(&mut self, input: &Input, actions: &Actions) -> Result<(), Violation> {
        let sight = Sight {
            now: self.now,
            input,
            actions,
            authority: &|name, at| self.engine.authority(name, at),
            is_idle: self.engine.is_idle(),
        };
        self.checker.see(&sight)
    }

    fn step(&mut self, input: Input) -> Actions {
        let actions = self.engine.step(self.now, input.clone());
        self.judge(&input, &actions).unwrap();
        actions
    }

    fn tell(&mut self, input: Input) {
        let _ = self.step(input);
    }

    /// The rule that refuses a step whose actions are not the engine's own.
    fn lie(&mut self, input: Input, lie: impl FnOnce(&mut Actions)) -> &'static str {
        let mut actions = self.engine.step(self.now, input.clone());
        lie(&mut actions);
        self.judge(&input, &actions)
            .expect_err("the lie was believed")
            .rule
    }
}

#[test]
fn a_truthful_life_is_accepted() {
    let (mut life, release) = Life::leaving();
    let reply = Reply::Released(vec![Ok(Released::Vacated)]);
    life.tell(Input::Answer {
        request: release.id,
        reply,
    });
    life.tell(campaign());
    assert!(life.checker.look(life.now, &|_, _| Authority::None).is_ok());
}

#[test]
fn an_end_that_is_not_told_or_told_twice_is_refused() {
    let mut life = Life::leading();
    let rule = life.lie(work_ended(), |actions| actions.events.clear());
    assert!(rule.starts_with("G12"), "{rule}");
    let mut life = Life::leading();
    let rule = life.lie(work_ended(), |actions| {
        actions.events.push(actions.events[0].clone())
    });
    assert!(rule.starts_with("G12"), "{rule}");
    let mut life = Life::leading();
    life.pass(40);
    let rule = life.lie(Input::Tick, |actions| actions.events.clear());
    assert!(rule.starts_with("G12"), "{rule}");
}

#[test]
fn a_term_that_begins_twice_or_without_an_answer_is_refused() {
    let mut life = Life::new();
    let acquire = life.step(campaign()).requests.remove(0);
    let answer = Input::Answer {
        request: acquire.id,
        reply: grant(),
    };
    let rule = life.lie(answer, |actions| actions.events.push(actions.events[0].clone()));
    assert!(rule.starts_with("G12"), "{rule}");
    let mut leading = Life::new();
    let acquire = leading.step(campaign()).requests.remove(0);
    let began = leading
        .step(Input::Answer {
            request: acquire.id,
            reply: grant(),
        })
        .events
        .remove(0);
    let mut life = Life::new();
    let rule = life.lie(campaign(), |actions| actions.events.push(began));
    assert!(rule.starts_with("G12"), "{rule}");
}

#[test]
fn a_deadline_that_counts_from_the_reply_is_refused() {
    let mut life = Life::new();
    let acquire = life.step(campaign()).requests.remove(0);
    life.pass(1);
    let rule = life.lie(
        Input::Answer {
            request: acquire.id,
            reply: grant(),
        },
        |actions| {
            for event in &mut actions.events {
                if let Event::Acquired { until, .. } = event {
                    *until = until.after(Duration::from_secs(1));
                }
            }
        },
    );
    assert!(rule.starts_with("G2"), "{rule}");
}

#[test]
fn belief_beside_a_term_or_past_its_deadline_is_refused() {
    let believed = Authority::Held {
        token: token(),
        until: Moment::from_millis(u64::MAX),
    };
    let mut life = Life::new();
    let actions = life.engine.step(life.now, campaign());
    let sight = Sight {
        now: life.now,
        input: &campaign(),
        actions: &actions,
        authority: &|_, _| believed,
        is_idle: false,
    };
    assert!(life.checker.see(&sight).unwrap_err().rule.starts_with("G3"));
    let mut life = Life::leading();
    life.pass(40);
    assert!(
        life.checker
            .look(life.now, &|_, _| believed)
            .unwrap_err()
            .rule
            .starts_with("G3")
    );
}

#[test]
fn an_answer_that_was_given_up_and_still_extends_is_refused() {
    let mut life = Life::leading();
    life.pass(10);
    let renewal = life.step(Input::Tick).requests.remove(0);
    let extended = Renewed::Extended {
        ttl: Timing::batch().ttl(),
        wish: Wish::Nothing,
    };
    let answer = Input::Answer {
        request: renewal.id,
        reply: Reply::Renewed(vec![Ok(extended)]),
    };
    let mut prompt = Life {
        engine: life.engine.clone(),
        checker: life.checker.clone(),
        now: life.now,
    };
    let told = prompt.step(answer.clone()).events.remove(0);
    life.pass(4);
    life.tell(Input::Tick);
    let rule = life.lie(answer, |actions| actions.events.push(told));
    assert!(rule.starts_with("G3"), "{rule}");
}

#[test]
fn a_release_before_the_work_has_ended_is_refused() {
    let (_, release) = Life::leaving();
    let mut life = Life::leading();
    let rule = life.lie(Input::Tick, |actions| actions.requests.push(release));
    assert!(rule.starts_with("G10"), "{rule}");
}

#[test]
fn a_release_of_another_term_is_refused() {
    let mut life = Life::leading();
    let rule = life.lie(work_ended(), |actions| {
        if let Operation::Release(releases) = &mut actions.requests[0].operation {
            releases[0].token = FencingToken::new(8).unwrap();
        }
    });
    assert!(rule.contains("very term"), "{rule}");
}

#[test]
fn a_token_that_is_given_back_twice_is_refused() {
    let (mut life, release) = Life::leaving();
    let reply = Reply::Released(vec![Ok(Released::Vacated)]);
    let answer = Input::Answer {
        request: release.id,
        reply,
    };
    let rule = life.lie(answer, |actions| actions.events.push(actions.events[0].clone()));
    assert!(rule.contains("given back once"), "{rule}");
}

#[test]
fn an_attempt_that_does_not_rotate_is_refused() {
    let (mut life, release) = Life::leaving();
    let reply = Reply::Released(vec![Ok(Released::Vacated)]);
    life.tell(Input::Answer {
        request: release.id,
        reply,
    });
    let rule = life.lie(campaign(), |actions| {
        if let Operation::Acquire(acquire) = &mut actions.requests[0].operation {
            acquire.attempt = Attempt::FIRST;
        }
    });
    assert!(rule.starts_with("G5"), "{rule}");
}

#[test]
fn a_second_request_and_one_that_outlasts_its_term_are_refused() {
    let mut life = Life::new();
    let first = life.step(campaign()).requests.remove(0);
    let rule = life.lie(Input::Tick, |actions| actions.requests.push(first));
    assert!(rule.contains("numbers of their own"), "{rule}");
    // Its number is another one, but the first was not answered.
    let mut decoy = Life::new();
    decoy.tell(campaign());
    let name = LeaseName::new("another").unwrap();
    let another = Command::Campaign {
        name,
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    };
    let second = decoy.step(Input::Command(another)).requests.remove(0).id;
    let mut life = Life::new();
    let rule = life.lie(campaign(), |actions| {
        let first = actions.requests[0].clone();
        actions.requests.push(Request { id: second, ..first });
    });
    assert!(rule.contains("one request at a time"), "{rule}");
    let mut life = Life::leading();
    life.pass(29);
    let after_its_end = Moment::from_millis(32_000);
    let rule = life.lie(Input::Tick, |actions| {
        actions.requests[0].give_up_at = after_its_end
    });
    assert!(rule.starts_with("G19"), "{rule}");
}

#[test]
fn a_wake_that_is_missing_late_or_past_is_refused() {
    for wake in [
        None,
        Some(Moment::from_millis(999)),
        Some(Moment::from_millis(90_000_000)),
    ] {
        let mut life = Life::new();
        let rule = life.lie(campaign(), |actions| {
            actions.wake = wake.map(|at| Wake {
                at,
                why: WakeReason::Attempt,
            });
        });
        assert!(rule.contains("wake"), "{rule}");
    }
}
