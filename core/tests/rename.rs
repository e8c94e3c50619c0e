//! An engine under other names is the same engine: what checkers rely on when they count states.
use crate::harness::*;
use std::mem::{Discriminant, discriminant};
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;

/// A small generator for the walk; the engine has its own.
struct Walk(u64);

impl Walk {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const GATE: Duration = Duration::from_secs(12);
const HOLD: Duration = Duration::from_secs(25);
/// No engine of these tests counts from a moment longer ago: the ttl, which is longer than the gate.
const HORIZON: Duration = Duration::from_secs(30);

/// Every number moved by a constant.
#[derive(Clone, Copy, Default)]
struct Shift {
    time: Duration,
    tokens: u64,
    attempts: u64,
    requests: u64,
}

impl Shift {
    fn and(self, more: Self) -> Self {
        Self {
            time: self.time + more.time,
            tokens: self.tokens + more.tokens,
            attempts: self.attempts + more.attempts,
            requests: self.requests + more.requests,
        }
    }
}

/// Renames by a shift, and forgets all that may be forgotten. `now` is in the old names.
struct Names {
    shift: Shift,
    now: Moment,
}

impl Rename for Names {
    fn due(&mut self, moment: Moment) -> Moment {
        moment.max(self.now).after(self.shift.time)
    }
    fn since(&mut self, moment: Moment) -> Moment {
        moment.max(self.now.before(HORIZON)).after(self.shift.time)
    }
    fn token(&mut self, token: FencingToken) -> FencingToken {
        FencingToken::new(token.number() + self.shift.tokens).unwrap()
    }
    fn attempt(&mut self, attempt: Attempt) -> Attempt {
        Attempt::new(attempt.number() + self.shift.attempts).unwrap()
    }
    fn request(&mut self, number: u64) -> u64 {
        number + self.shift.requests
    }
    fn dice(&mut self, state: u64) -> u64 {
        state
    }
    fn failures(&mut self, failures: u32) -> u32 {
        failures
    }
    fn reported(&mut self, _token: FencingToken) -> Option<FencingToken> {
        None
    }
    fn error(&mut self, _error: StoreError) -> Option<StoreError> {
        None
    }
}

/// The term that an event is about, and until when it lasts from then on.
type About = Option<(FencingToken, Option<Moment>)>;

/// What an engine did, as far as it must be the same under any names: every request, every term's beginning,
/// extension and end, and the next wake-up.
#[derive(PartialEq, Debug)]
struct Deeds {
    requests: Vec<Request>,
    events: Vec<(Discriminant<Event>, About)>,
    wake: Option<Wake>,
}

fn renamed_operation(operation: Operation, names: &mut Names) -> Operation {
    match operation {
        Operation::Acquire(acquire) => Operation::Acquire(Acquire {
            attempt: names.attempt(acquire.attempt),
            ..acquire
        }),
        Operation::Renew(renewals) => {
            let renamed = renewals.into_iter().map(|renew| Renew {
                token: names.token(renew.token),
                attempt: names.attempt(renew.attempt),
                ..renew
            });
            Operation::Renew(renamed.collect())
        }
        Operation::Release(releases) => {
            let renamed = releases.into_iter().map(|release| Release {
                token: names.token(release.token),
                attempt: names.attempt(release.attempt),
                ..release
            });
            Operation::Release(renamed.collect())
        }
        Operation::Look(name) => Operation::Look(name),
    }
}

fn deeds(actions: Actions, shift: Shift) -> Deeds {
    let names = &mut Names {
        shift,
        now: Moment::ZERO,
    };
    let mut deeds = Deeds {
        requests: Vec::new(),
        events: Vec::new(),
        wake: actions.wake.map(|wake| Wake {
            at: wake.at.after(shift.time),
            ..wake
        }),
    };
    for request in actions.requests {
        deeds.requests.push(Request {
            id: request.id.renamed(names),
            give_up_at: request.give_up_at.after(shift.time),
            operation: renamed_operation(request.operation, names),
        });
    }
    for event in &actions.events {
        let about = match event {
            // Told again once it was forgotten that it was told.
            Event::Standby { .. } => continue,
            Event::Acquired { grant, until, .. } => Some((grant.token, Some(*until))),
            Event::Renewed { token, until, .. } => Some((*token, Some(*until))),
            Event::Doubted { token, .. }
            | Event::Reassured { token, .. }
            | Event::RenewalFailed { token, .. }
            | Event::Stuck { token, .. }
            | Event::AskedToStepDown { token, .. }
            | Event::Ended { token, .. }
            | Event::ReleaseFailed { token, .. }
            | Event::Departed { token, .. } => Some((*token, None)),
            // A campaign that ended for a misconfiguration may be reported as withdrawn: errors are
            // forgotten.
            Event::CampaignEnded { name, .. } | Event::Withdrawn { name } => {
                let withdrawn = Event::Withdrawn { name: name.clone() };
                deeds.events.push((discriminant(&withdrawn), None));
                continue;
            }
            Event::AttemptFailed { .. } => None,
        };
        let about = about.map(|(token, until)| (names.token(token), until.map(|at| at.after(shift.time))));
        deeds.events.push((discriminant(event), about));
    }
    deeds
}

/// One input in both engines' names: tokens and requests are given through `names`.
fn input(walk: &mut Walk, pending: &mut Vec<Request>, newest: &mut u64, open: Option<FencingToken>) -> Input {
    let theirs = |walk: &mut Walk, newest: u64| {
        let remaining = seconds(f64::from(u32::try_from(walk.below(30)).unwrap()));
        lease_of(other(), newest + 1, remaining)
    };
    let name = job();
    let command = |command| Input::Command(command);
    match (walk.below(24), open) {
        (0..=2, _) => command(Command::Campaign {
            name,
            note: Note::default(),
            progress_within: (walk.below(2) == 0).then_some(GATE),
            max_hold: (walk.below(4) == 0).then_some(HOLD),
        }),
        (3, None) => command(Command::Withdraw { name }),
        (3, Some(token)) => command(Command::StepDown { name, token }),
        (4, Some(token)) => command(Command::WorkEnded { name, token }),
        (5, _) => Input::Watch(WatchEvent::Gap),
        (6 | 7, _) => Input::Watch(WatchEvent::Changed {
            name,
            change: [Change::Vacated, Change::Taken, Change::Asked][usize::try_from(walk.below(3)).unwrap()],
            token: Some(token((*newest + walk.below(2)).max(1))),
        }),
        (_, _) if !pending.is_empty() => {
            let index = usize::try_from(walk.below(pending.len() as u64)).unwrap();
            let request = pending.swap_remove(index);
            let reply = match &request.operation {
                Operation::Acquire(_) => Reply::Acquired(match walk.below(5) {
                    0 => Err(unreachable()),
                    1 => Ok(Acquired::Held(theirs(walk, *newest))),
                    2 if walk.below(6) == 0 => Ok(Acquired::Superseded),
                    3 if walk.below(6) == 0 => Err(forbidden()),
                    _ => {
                        *newest += 2;
                        Ok(grant(*newest))
                    }
                }),
                Operation::Renew(_) => Reply::Renewed(vec![match walk.below(8) {
                    0 => Ok(Renewed::Lost(Some(Box::new(theirs(walk, *newest))))),
                    1 | 2 => Err(unreachable()),
                    _ => Ok(extended()),
                }]),
                Operation::Release(_) => Reply::Released(vec![match walk.below(2) {
                    0 => Err(unreachable()),
                    _ => Ok(Released::Vacated),
                }]),
                Operation::Look(_) => Reply::Looked(match walk.below(3) {
                    0 => Err(unreachable()),
                    1 => Ok(None),
                    _ => Ok(Some(lease_of(me(), (*newest).max(1), seconds(9.0)))),
                }),
            };
            Input::Answer {
                request: request.id,
                reply,
            }
        }
        _ => Input::Tick,
    }
}

fn renamed_lease(lease: Lease, names: &mut Names) -> Lease {
    Lease {
        token: names.token(lease.token),
        attempt: names.attempt(lease.attempt),
        ..lease
    }
}

fn renamed_input(input: Input, names: &mut Names) -> Input {
    match input {
        Input::Tick => Input::Tick,
        Input::Watch(WatchEvent::Changed { name, change, token }) => {
            let token = token.map(|token| names.token(token));
            Input::Watch(WatchEvent::Changed { name, change, token })
        }
        Input::Watch(WatchEvent::Gap) => Input::Watch(WatchEvent::Gap),
        Input::Command(Command::StepDown { name, token }) => {
            let token = names.token(token);
            Input::Command(Command::StepDown { name, token })
        }
        Input::Command(Command::WorkEnded { name, token }) => {
            let token = names.token(token);
            Input::Command(Command::WorkEnded { name, token })
        }
        Input::Command(Command::HandOn {
            name,
            token,
            note,
            progress_within,
            max_hold,
        }) => Input::Command(Command::HandOn {
            name,
            token: names.token(token),
            note,
            progress_within,
            max_hold,
        }),
        Input::Command(Command::DeadlineSeen { name, token }) => {
            let token = names.token(token);
            Input::Command(Command::DeadlineSeen { name, token })
        }
        Input::Command(Command::Extend { name, token }) => {
            let token = names.token(token);
            Input::Command(Command::Extend { name, token })
        }
        Input::Command(Command::Progress { name, token, at }) => Input::Command(Command::Progress {
            name,
            token: names.token(token),
            at: at.after(names.shift.time),
        }),
        Input::Command(command) => Input::Command(command),
        Input::Answer { request, reply } => Input::Answer {
            request: request.renamed(names),
            reply: match reply {
                Reply::Acquired(Ok(Acquired::Granted(grant))) => {
                    let token = names.token(grant.token);
                    Reply::Acquired(Ok(Acquired::Granted(Grant { token, ..grant })))
                }
                Reply::Acquired(Ok(Acquired::Held(lease))) => {
                    Reply::Acquired(Ok(Acquired::Held(renamed_lease(lease, names))))
                }
                Reply::Looked(Ok(Some(lease))) => Reply::Looked(Ok(Some(renamed_lease(lease, names)))),
                reply => reply,
            },
        },
    }
}

/// Drives an engine and a copy of it that is renamed again and again; gives the terms it saw begin and end.
fn drive(seed: u64) -> [u32; 2] {
    let mut walk = Walk(seed);
    let mut plain = Engine::new(me(), timing(), NonZeroUsize::MIN, seed);
    let mut other = plain.clone();
    // Later than any duration that is ever taken off a moment.
    let mut now = Moment::from_millis(1_000_000);
    let (mut shift, mut pending, mut newest, mut open) = (Shift::default(), Vec::new(), 0, None);
    let mut counts = [0; 2];
    for step in 0..150 {
        // Sometimes nobody steps the engine for very long.
        let pause = if walk.below(12) == 0 { 45_000 } else { 2500 };
        now = now.after(Duration::from_millis(walk.below(pause)));
        let more = Shift {
            time: Duration::from_millis(walk.below(9_000_000)),
            tokens: walk.below(40),
            attempts: walk.below(5),
            requests: walk.below(7),
        };
        other.rename(&mut Names {
            shift: more,
            now: now.after(shift.time),
        });
        shift = shift.and(more);
        let mut names = Names {
            shift,
            now: Moment::ZERO,
        };
        let input = input(&mut walk, &mut pending, &mut newest, open);
        let there = other.step(now.after(shift.time), renamed_input(input.clone(), &mut names));
        let here = plain.step(now, input.clone());
        for event in &here.events {
            match event {
                Event::Acquired { grant, .. } => {
                    open = Some(grant.token);
                    counts[0] += 1;
                }
                Event::Ended { .. } => {
                    open = None;
                    counts[1] += 1;
                }
                _ => {}
            }
        }
        pending.extend(here.requests.iter().cloned());
        assert_eq!(
            deeds(here, shift),
            deeds(there, Shift::default()),
            "seed {seed}, step {step}, {input:?}"
        );
        assert_eq!(
            plain.belief(&job()).map(|belief| belief.until.after(shift.time)),
            other.belief(&job()).map(|belief| belief.until),
        );
    }
    counts
}

#[test]
fn a_renamed_engine_does_the_same_under_the_new_names() {
    let mut totals = [0; 2];
    for seed in 0..2000 {
        for (total, count) in totals.iter_mut().zip(drive(seed)) {
            *total += count;
        }
    }
    assert!(
        totals.iter().all(|total| *total > 3000),
        "walks that never lead prove nothing: {totals:?}"
    );
}

#[test]
fn an_engine_awaits_a_request_until_it_is_answered_or_given_up() {
    let mut harness = Harness::new();
    let request = only(harness.campaign());
    assert!(harness.engine.awaits(request.id));
    harness.now = request.give_up_at;
    harness.input(Input::Tick);
    assert!(!harness.engine.awaits(request.id));
}
