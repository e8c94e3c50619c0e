//! The check finds each breach by itself: no engine tells it what should have happened.

use crate::common::{header, name, reader, steps, take_over, written};
use std::time::Duration;
use tenure_core::{
    Acquired, Cause, Command, Event, FencingToken, Grant, Input, Moment, Note, Operation, Release, Released,
    Renewed, Reply, Request, RequestId, Ttl, Wish,
};
use tenure_trace::{Breach, Rule, Step, check};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// The steps of the candidate that takes over, gives back, and leads again.
pub fn sound() -> Vec<Step> {
    let steps = steps(&take_over().second);
    assert_eq!(check(&mut reader(&written(&steps))).unwrap().breach, None);
    steps
}

#[track_caller]
pub fn broken(steps: &[Step], rule: Rule, index: usize) -> Breach {
    let breach = check(&mut reader(&written(steps)))
        .unwrap()
        .breach
        .expect("something is broken");
    assert_eq!((breach.rule, breach.line), (rule, index as u64 + 2), "{breach}");
    breach
}

/// The first step with such an event.
pub fn position(steps: &[Step], is: impl Fn(&Event) -> bool) -> usize {
    steps
        .iter()
        .position(|step| step.actions.events.iter().any(&is))
        .unwrap()
}

pub fn acquired(event: &Event) -> bool {
    matches!(event, Event::Acquired { .. })
}

pub fn renewed(event: &Event) -> bool {
    matches!(event, Event::Renewed { .. })
}

fn ended(event: &Event) -> bool {
    matches!(event, Event::Ended { .. })
}

pub fn until(step: &mut Step) -> &mut Moment {
    match &mut step.actions.events[0] {
        Event::Acquired { until, .. } | Event::Renewed { until, .. } => until,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_belief_past_the_grant_is_found() {
    for is in [acquired, renewed] {
        let mut steps = sound();
        let index = position(&steps, is);
        let later = until(&mut steps[index]).after(NANOSECOND);
        *until(&mut steps[index]) = later;
        broken(&steps, Rule::BelievesWithinGrant, index);
    }
}

#[test]
fn a_belief_at_the_deadline_is_found() {
    let mut steps = sound();
    let index = position(&steps, renewed);
    let deadline = steps[index]
        .actions
        .wake
        .unwrap()
        .at
        .after(Duration::from_secs(3));
    // Nothing happens for longer than the term lasts, and then a tick that ends nothing.
    steps.truncate(index + 2);
    steps[index + 1].at = deadline;
    steps[index + 1].input = Input::Tick;
    steps[index + 1].actions.events.clear();
    broken(&steps, Rule::BelievesWithinGrant, index + 1);
}

#[test]
fn a_term_without_a_grant_is_found() {
    let mut steps = sound();
    let index = position(&steps, acquired);
    steps[index].input = Input::Tick;
    broken(&steps, Rule::BeginsByGrant, index);
    let mut steps = sound();
    // The grant is another's.
    let Input::Answer {
        reply: Reply::Acquired(Ok(Acquired::Granted(grant))),
        ..
    } = &mut steps[index].input
    else {
        panic!("the first term begins with an answer")
    };
    grant.terms += 1;
    broken(&steps, Rule::BeginsByGrant, index);
}

#[test]
fn a_grant_to_a_request_that_was_given_up_is_found() {
    let mut steps = sound();
    let index = position(&steps, acquired);
    let mut tick = steps[index].clone();
    tick.input = Input::Tick;
    tick.actions.events.clear();
    tick.actions.requests.clear();
    tick.at = steps[index - 1].actions.requests[0].give_up_at;
    for step in &mut steps[index..] {
        step.at = step.at.max(tick.at);
    }
    tick.actions.wake = None;
    steps.insert(index, tick);
    broken(&steps, Rule::BeginsByGrant, index + 1);
}

#[test]
fn a_term_that_ends_twice_or_is_renewed_after_its_end_is_found() {
    let mut steps = sound();
    let index = position(&steps, ended);
    let event = steps[index].actions.events[0].clone();
    steps[index].actions.events.push(event.clone());
    broken(&steps, Rule::EndsOnce, index);
    let mut steps = sound();
    let index = position(&steps, renewed);
    steps[index].actions.events.insert(0, event);
    steps[index].actions.events.swap(0, 1);
    // Given back, though no work has ended.
    broken(&steps, Rule::ReleasesAfterWork, index);
    steps[index].actions.events.swap(0, 1);
    let Event::Ended { cause, .. } = &mut steps[index].actions.events[0] else {
        panic!("it was put there")
    };
    *cause = Cause::Vanished;
    broken(&steps, Rule::EndsOnce, index);
}

fn release(id: u64, at: Moment, token: FencingToken) -> Request {
    let candidate = header(1).candidate;
    Request {
        id: RequestId::from_number(id),
        give_up_at: at.after(NANOSECOND),
        operation: Operation::Release(vec![Release {
            name: name(),
            incarnation: candidate.incarnation,
            token,
            attempt: tenure_core::Attempt::FIRST,
        }]),
    }
}

#[test]
fn a_release_of_a_running_or_lost_term_is_found() {
    let mut steps = sound();
    let index = position(&steps, renewed);
    let Event::Renewed { token, .. } = steps[index].actions.events[0] else {
        panic!("it is one")
    };
    let request = release(1 << 32, steps[index].at, token);
    steps[index].actions.requests.push(request);
    broken(&steps, Rule::ReleasesAfterWork, index);
    // Lost in this very step: its work may still be running.
    let cause = Cause::Vanished;
    let name = name();
    steps[index]
        .actions
        .events
        .push(Event::Ended { name, token, cause });
    broken(&steps, Rule::ReleasesAfterWork, index);
}

#[test]
fn a_request_that_outlasts_its_term_is_found() {
    let mut steps = sound();
    let renewal = |step: &Step| {
        let mut requests = step.actions.requests.iter();
        requests.any(|request| matches!(request.operation, Operation::Renew(_)))
    };
    let index = steps.iter().position(renewal).unwrap();
    let at = steps[index].at;
    steps[index].actions.requests[0].give_up_at = at.after(header(1).timing.request_timeout() + NANOSECOND);
    broken(&steps, Rule::RequestsWithinTerm, index);
    // Within the time-out, but the term ends sooner.
    let mut steps = sound();
    let begun = position(&steps, acquired);
    let deadline = *until(&mut steps[begun]);
    steps.truncate(begun + 1);
    let mut late = sound()[index].clone();
    late.at = deadline.before(NANOSECOND);
    late.actions.requests[0].give_up_at = deadline.after(NANOSECOND);
    steps.push(late);
    broken(&steps, Rule::RequestsWithinTerm, begun + 1);
}

#[test]
fn a_token_that_does_not_rise_is_found() {
    let mut steps = sound();
    let first = FencingToken::new(1).unwrap();
    let is_later =
        |event: &Event| matches!(event, Event::Acquired { grant, .. } if grant.token.number() == 3);
    let index = position(&steps, is_later);
    let Input::Answer {
        reply: Reply::Acquired(Ok(Acquired::Granted(given))),
        ..
    } = &mut steps[index].input
    else {
        panic!("a term begins with an answer")
    };
    given.token = first;
    let Event::Acquired { grant, .. } = &mut steps[index].actions.events[0] else {
        panic!("it is one")
    };
    grant.token = first;
    broken(&steps, Rule::TokensRise, index);
}

/// A grant that nobody took up was given back, and its token is taken up all the same.
#[test]
fn a_token_that_is_taken_up_after_its_release_is_found() {
    let mut steps = sound();
    let index = position(&steps, ended);
    let [release] = steps[index].actions.requests.as_mut_slice() else {
        panic!("it is given back at once")
    };
    let Operation::Release(releases) = &mut release.operation else {
        panic!("it is given back")
    };
    let token = FencingToken::new(3).unwrap();
    releases.push(Release {
        token,
        ..releases[0].clone()
    });
    let begins = |event: &Event| matches!(event, Event::Acquired { grant, .. } if grant.token == token);
    let index = position(&steps, begins);
    broken(&steps, Rule::TokensRise, index);
}

#[test]
fn an_engine_that_sleeps_past_a_deadline_is_found() {
    let mut steps = sound();
    let index = position(&steps, acquired);
    let deadline = *until(&mut steps[index]);
    steps[index].actions.wake.as_mut().unwrap().at = deadline.after(NANOSECOND);
    broken(&steps, Rule::WakesInTime, index);
    steps[index].actions.wake = None;
    broken(&steps, Rule::WakesInTime, index);
}

#[test]
fn a_renewal_that_grants_less_ends_belief_sooner() {
    let mut steps = sound();
    let index = position(&steps, renewed);
    let (mut engine, mut lived) = (header(2).engine(), Vec::new());
    let Input::Answer {
        reply: Reply::Renewed(results),
        ..
    } = &mut steps[index].input
    else {
        panic!("a renewal is answered");
    };
    let (ttl, wish) = (Ttl::from_millis(1500).unwrap(), Wish::Nothing);
    results[0] = Ok(Renewed::Extended { ttl, wish });
    for Step { at, input, .. } in steps.drain(..=index) {
        let actions = engine.step(at, input.clone());
        lived.push(Step { at, input, actions });
    }
    assert_eq!(check(&mut reader(&written(&lived))).unwrap().breach, None);
    let until = until(&mut lived[index]);
    *until = until.after(NANOSECOND);
    broken(&lived, Rule::BelievesWithinGrant, index);
}

/// A renewal of the term before is answered when the next has begun, which was granted less.
#[test]
fn a_belief_that_another_terms_renewal_has_extended_is_found() {
    let mut steps = sound();
    let index = position(&steps, renewed);
    let Step { at, input, .. } = steps[index].clone();
    let Input::Answer { request, reply } = input else {
        panic!("a renewal is answered");
    };
    let sent = steps[..index].iter().rev().find(|step| {
        let mut requests = step.actions.requests.iter();
        requests.any(|sent| sent.id == request)
    });
    let sent_at = sent.unwrap().at;
    // The engine lives up to there, and instead of the answer hears that its work has ended; and so on.
    let (mut engine, mut lived) = (header(2).engine(), Vec::new());
    let mut then = |at: Moment, input: Input| {
        let actions = engine.step(at, input.clone());
        let id = actions.requests.first().map(|request| request.id);
        lived.push(Step { at, input, actions });
        id
    };
    for Step { at, input, .. } in steps.drain(..index) {
        then(at, input);
    }
    let work_ended = Input::Command(Command::WorkEnded {
        name: name(),
        token: FencingToken::new(2).unwrap(),
    });
    let released = then(at, work_ended).unwrap();
    let reply_released = Reply::Released(vec![Ok(Released::Vacated)]);
    then(at, answer(released, reply_released));
    let campaign = Command::Campaign {
        name: name(),
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    };
    let asked = then(at, Input::Command(campaign)).unwrap();
    let grant = Grant {
        token: FencingToken::new(3).unwrap(),
        ttl: Ttl::from_millis(1500).unwrap(),
        terms: 3,
        again: false,
        predecessor: None,
    };
    let granted = Reply::Acquired(Ok(Acquired::Granted(grant)));
    then(at, answer(asked, granted));
    then(at, answer(request, reply));
    assert_eq!(check(&mut reader(&written(&lived))).unwrap().breach, None);
    let until = sent_at.after(header(1).timing.trust(Ttl::from_millis(3000).unwrap()));
    let last = lived.len() - 1;
    lived[last].actions.events.push(Event::Renewed {
        name: name(),
        token: FencingToken::new(3).unwrap(),
        until,
        round_trip: NANOSECOND,
        slack: NANOSECOND,
    });
    broken(&lived, Rule::BelievesWithinGrant, last);
}

fn answer(request: RequestId, reply: Reply) -> Input {
    Input::Answer { request, reply }
}

#[test]
fn nobody_wakes_for_a_request_of_a_withdrawn_campaign() {
    let mut engine = header(1).engine();
    let commands = [
        Command::Campaign {
            name: name(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        },
        Command::Withdraw { name: name() },
    ];
    let steps: Vec<Step> = (1..)
        .zip(commands)
        .map(|(milliseconds, command)| {
            let (at, input) = (Moment::from_millis(milliseconds), Input::Command(command));
            let actions = engine.step(at, input.clone());
            Step { at, input, actions }
        })
        .collect();
    assert_eq!(check(&mut reader(&written(&steps))).unwrap().breach, None);
}

#[test]
fn work_that_ended_in_another_term_gives_nothing_back() {
    let mut steps = sound();
    let index = position(&steps, ended);
    let token = FencingToken::new(77).unwrap();
    steps[index].input = Input::Command(Command::WorkEnded { name: name(), token });
    broken(&steps, Rule::ReleasesAfterWork, index);
}
