//! What a store may say, the hostile included.

use super::super::choices::Choices;
use super::stream::words;
use std::time::Duration;
use tenure_core::{
    Acquired, Attempt, CandidateId, Certainty, End, Fault, FencingToken, Grant, Lease, LeaseName, Note,
    Operation, Predecessor, Released, Renewed, Reply, StoreError, Ttl, Wish,
};

/// A reply to `operation`: of its kind with eleven in twelve.
///
/// A renewal grants what was asked or what is `sufficient`: such that the term is not over by it already.
pub(super) fn reply(
    choices: &mut Choices<'_>,
    operation: &Operation,
    sufficient: &dyn Fn(Ttl) -> bool,
    last_token: &mut Option<FencingToken>,
    last_attempt: Option<Attempt>,
) -> Reply {
    if choices.once_in(12) {
        return misfitting(choices);
    }
    match operation {
        Operation::Acquire(acquire) => Reply::Acquired(acquired(
            choices,
            &acquire.name,
            acquire.ttl,
            last_token,
            last_attempt,
        )),
        Operation::Renew(renewals) => {
            let count = count(choices, renewals.len());
            let name = renewals.first().map(|renew| &renew.name);
            let asked = renewals.first().map_or(Ttl::MAX, |renew| renew.ttl);
            let other = if choices.once_in(4) { ttl(choices) } else { asked };
            let granted = [other, asked]
                .into_iter()
                .find(|ttl| sufficient(*ttl))
                .unwrap_or(Ttl::MAX);
            Reply::Renewed(
                (0..count)
                    .map(|_| renewed(choices, name, granted, *last_token))
                    .collect(),
            )
        }
        Operation::Release(releases) => {
            let count = count(choices, releases.len());
            let name = releases.first().map(|release| &release.name);
            Reply::Released((0..count).map(|_| released(choices, name, *last_token)).collect())
        }
        Operation::Look(name) => Reply::Looked(match choices.byte() % 8 {
            0 => Err(error(choices)),
            1 => Ok(None),
            2..=4 => Ok(Some(left(name, *last_token, last_attempt))),
            _ => Ok(Some(lease(choices, name, *last_token, last_attempt))),
        }),
    }
}

/// A reply of any kind, whatever was asked.
pub(super) fn misfitting(choices: &mut Choices<'_>) -> Reply {
    let name = choices.pick(&words().names);
    let count = choices.below(4);
    match choices.byte() % 4 {
        0 => Reply::Acquired(acquired(choices, name, Ttl::MAX, &mut None, None)),
        1 => Reply::Renewed(
            (0..count)
                .map(|_| renewed(choices, Some(name), Ttl::MAX, None))
                .collect(),
        ),
        2 => Reply::Released((0..count).map(|_| released(choices, Some(name), None)).collect()),
        _ => Reply::Looked(Ok(Some(lease(choices, name, None, None)))),
    }
}

/// As many results as were asked for, and now and then too few or too many.
fn count(choices: &mut Choices<'_>, asked: usize) -> usize {
    if choices.once_in(8) {
        choices.below(6)
    } else {
        asked
    }
}

fn acquired(
    choices: &mut Choices<'_>,
    name: &LeaseName,
    asked: Ttl,
    last_token: &mut Option<FencingToken>,
    last_attempt: Option<Attempt>,
) -> Result<Acquired, StoreError> {
    match choices.byte() % 16 {
        0..=8 => {
            let token = match choices.once_in(8) {
                true => token(choices, *last_token),
                false => FencingToken::successor(*last_token, 0).unwrap_or(first_token()),
            };
            *last_token = Some(token);
            let ttl = if choices.once_in(6) { ttl(choices) } else { asked };
            let predecessor = choices.once_in(4).then(|| Predecessor {
                candidate: CandidateId::new("before").expect("a plain word is an id"),
                token,
                end: if choices.once_in(2) {
                    End::Released
                } else {
                    End::Expired
                },
                vacant_for: duration(choices),
            });
            let (terms, again) = (choices.number(), choices.once_in(2));
            Ok(Acquired::Granted(Grant {
                token,
                ttl,
                terms,
                again,
                predecessor,
            }))
        }
        9..=11 => Ok(Acquired::Held(lease(choices, name, *last_token, last_attempt))),
        12 => Ok(Acquired::Superseded),
        _ => Err(error(choices)),
    }
}

fn renewed(
    choices: &mut Choices<'_>,
    name: Option<&LeaseName>,
    granted: Ttl,
    last_token: Option<FencingToken>,
) -> Result<Renewed, StoreError> {
    match choices.byte() % 8 {
        0..=3 => {
            let wish = if choices.once_in(6) {
                Wish::StepDown
            } else {
                Wish::Nothing
            };
            let ttl = if choices.once_in(6) { ttl(choices) } else { granted };
            Ok(Renewed::Extended { ttl, wish })
        }
        4 => Ok(Renewed::Lost(None)),
        5 => Ok(Renewed::Lost(
            name.map(|name| Box::new(lease(choices, name, last_token, None))),
        )),
        _ => Err(error(choices)),
    }
}

fn released(
    choices: &mut Choices<'_>,
    name: Option<&LeaseName>,
    last_token: Option<FencingToken>,
) -> Result<Released, StoreError> {
    match choices.byte() % 8 {
        0..=3 => Ok(Released::Vacated),
        4 => Ok(Released::NotYours(
            name.map(|name| Box::new(lease(choices, name, last_token, None))),
        )),
        _ => Err(error(choices)),
    }
}

fn error(choices: &mut Choices<'_>) -> StoreError {
    let fault = *choices.pick(&Fault::ALL);
    let certainty = if choices.once_in(2) {
        Certainty::NotApplied
    } else {
        Certainty::Unknown
    };
    StoreError {
        fault,
        certainty,
        message: "no".to_owned(),
    }
}

/// What an attempt of ours has left: a term that is held.
fn left(name: &LeaseName, last_token: Option<FencingToken>, last_attempt: Option<Attempt>) -> Lease {
    let mut choices = Choices::new(&[]);
    let mut lease = lease(&mut choices, name, last_token, last_attempt);
    lease.remaining = Duration::from_secs(1);
    lease.released = false;
    lease
}

fn lease(
    choices: &mut Choices<'_>,
    name: &LeaseName,
    last_token: Option<FencingToken>,
    last_attempt: Option<Attempt>,
) -> Lease {
    let attempt = match choices.byte() % 3 {
        0 | 1 => last_attempt.unwrap_or(Attempt::FIRST),
        _ => Attempt::new(choices.number()).unwrap_or(Attempt::FIRST),
    };
    Lease {
        name: name.clone(),
        holder: choices.pick(&words().candidates).clone(),
        token: token(choices, last_token),
        attempt,
        terms: choices.number(),
        ttl: ttl(choices),
        remaining: duration(choices),
        released: choices.once_in(4),
        held_for: Duration::MAX,
        renewed_ago: Duration::MAX,
        asked_to_step_down: choices.once_in(2),
        note: Note::default(),
    }
}

/// A token beside the last one, or any.
pub(super) fn token(choices: &mut Choices<'_>, last: Option<FencingToken>) -> FencingToken {
    let last = last.unwrap_or(first_token());
    let number = match choices.byte() % 8 {
        0..=3 => last.number(),
        4 => last.number() + 1,
        5 => last.number() - 1,
        6 => FencingToken::MAX.number(),
        _ => choices.number(),
    };
    FencingToken::new(number).unwrap_or(last)
}

fn first_token() -> FencingToken {
    FencingToken::new(1).expect("1 is a token")
}

fn ttl(choices: &mut Choices<'_>) -> Ttl {
    match choices.byte() % 4 {
        0 => Ttl::MIN,
        1 => Ttl::MAX,
        _ => Ttl::from_millis(100 + choices.number() % 100_000).unwrap_or(Ttl::MIN),
    }
}

/// Any duration: ordinary, tiny, or of the size at which sums overflow.
pub(super) fn duration(choices: &mut Choices<'_>) -> Duration {
    match choices.byte() % 8 {
        0..=2 => Duration::from_millis(choices.number() % 100_000),
        3 => Duration::ZERO,
        4 => Duration::from_nanos(1),
        5 => Duration::MAX,
        _ => Duration::from_nanos(choices.number()),
    }
}
