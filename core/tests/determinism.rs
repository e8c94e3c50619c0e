//! The engine is a function of its inputs, whatever they are.
use crate::harness::*;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use tenure_core::*;

/// A small generator for the walk itself; the engine has its own.
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

fn reply_to(walk: &mut Walk, operation: &Operation, next_token: &mut u64) -> Reply {
    let theirs = lease_of(
        other(),
        *next_token + 1,
        seconds(f64::from(u32::try_from(walk.below(30)).unwrap())),
    );
    match operation {
        Operation::Acquire(_) => Reply::Acquired(match walk.below(4) {
            0 => Err(unreachable()),
            1 => Ok(Acquired::Held(theirs)),
            2 if walk.below(10) == 0 => Ok(Acquired::Superseded),
            _ => {
                *next_token += 2;
                Ok(grant(*next_token))
            }
        }),
        Operation::Renew(renewals) => Reply::Renewed(
            renewals
                .iter()
                .map(|_| match walk.below(8) {
                    0 => Ok(Renewed::Lost(Some(Box::new(theirs.clone())))),
                    1 | 2 => Err(unreachable()),
                    _ => Ok(extended()),
                })
                .collect(),
        ),
        Operation::Release(releases) => Reply::Released(
            releases
                .iter()
                .map(|_| {
                    if walk.below(2) == 0 {
                        Err(unreachable())
                    } else {
                        Ok(Released::Vacated)
                    }
                })
                .collect(),
        ),
        Operation::Look(_) => Reply::Looked(Ok(None)),
    }
}

/// Drives an engine through `steps` random inputs, checking what must hold at every step; hashes the trace.
fn walk(seed: u64, steps: u32) -> (u64, Engine, [u32; 3]) {
    let mut chance = Walk(seed);
    let mut engine = Engine::new(me(), timing(), std::num::NonZeroUsize::new(2).unwrap(), seed);
    let mut hasher = DefaultHasher::new();
    let mut now = Moment::from_millis(5);
    let (mut pending, mut open, mut counts): (Vec<Request>, Option<FencingToken>, _) =
        (Vec::new(), None, [0; 3]);
    let mut next_token = 0;
    for _ in 0..steps {
        let input = match chance.below(10) {
            0 => Input::Command(Command::Campaign {
                name: job(),
                note: Note::default(),
                progress_within: None,
                max_hold: None,
            }),
            1 if chance.below(20) == 0 => Input::Command(Command::Withdraw { name: job() }),
            2 if chance.below(5) == 0 => match open {
                Some(token) => Input::Command(Command::WorkEnded { name: job(), token }),
                None => Input::Tick,
            },
            3 if chance.below(5) == 0 => Input::Watch(WatchEvent::Gap),
            4 if chance.below(20) == 0 => Input::Watch(WatchEvent::Changed {
                name: job(),
                change: Change::Taken,
                token: Some(token(next_token + 1)),
            }),
            _ if !pending.is_empty() => {
                let index = usize::try_from(chance.below(pending.len() as u64)).unwrap();
                // Mostly answered and gone; sometimes answered twice.
                let request = if chance.below(8) == 0 {
                    pending[index].clone()
                } else {
                    pending.swap_remove(index)
                };
                let reply = reply_to(&mut chance, &request.operation, &mut next_token);
                Input::Answer {
                    request: request.id,
                    reply,
                }
            }
            _ => Input::Tick,
        };
        now = now.after(Duration::from_millis(chance.below(4000)));
        let actions = engine.step(now, input);
        actions.hash(&mut hasher);
        for event in &actions.events {
            match event {
                Event::Acquired { grant, .. } => {
                    assert_eq!(
                        open.replace(grant.token),
                        None,
                        "a second term before the end of the first"
                    );
                    counts[0] += 1;
                }
                Event::Ended { token, .. } => {
                    assert_eq!(open.take(), Some(*token), "a term ends exactly once");
                    counts[1] += 1;
                }
                Event::Renewed { .. } => counts[2] += 1,
                _ => {}
            }
        }
        assert_eq!(engine.authority(&job(), now) != Authority::None, open.is_some());
        for request in &actions.requests {
            assert!(
                request.give_up_at > now,
                "a request that is given up at once: {request:?}"
            );
        }
        assert!(
            actions.wake.is_none_or(|wake| wake.at > now),
            "a wake-up in the past is a busy loop"
        );
        pending.extend(actions.requests);
    }
    (hasher.finish(), engine, counts)
}

#[test]
fn the_same_inputs_give_the_same_actions_and_the_same_state() {
    for seed in 0..20 {
        let (first, second) = (walk(seed, 2000), walk(seed, 2000));
        assert_eq!(first.0, second.0);
        assert_eq!(first.1, second.1);
    }
}

#[test]
fn whatever_happens_each_term_ends_exactly_once_and_belief_follows_it() {
    let mut totals = [0; 3];
    for seed in 100..300 {
        let (_, _, counts) = walk(seed, 1000);
        for (total, count) in totals.iter_mut().zip(counts) {
            *total += count;
        }
    }
    // A walk that never led would prove nothing.
    assert!(
        totals.iter().all(|total| *total > 1000),
        "terms, ends, renewals: {totals:?}"
    );
}

fn hash_of(engine: &Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.hash(&mut hasher);
    hasher.finish()
}

/// A search through all states would take the one for the other, and never look at what follows from it.
#[test]
fn engines_that_differ_in_a_token_alone_are_told_apart() {
    let leading_by = |number: u64| {
        let mut harness = Harness::new();
        let request = harness.campaign_once();
        harness.answer(request.id, Reply::Acquired(Ok(grant(number))));
        harness.engine
    };
    let (five, six) = (leading_by(5), leading_by(6));
    assert_eq!((&five, hash_of(&five)), (&leading_by(5), hash_of(&leading_by(5))));
    assert_ne!(five, six);
    assert_ne!(hash_of(&five), hash_of(&six));
}
