//! The check finds what happens outside of the term, or of the request, that it belongs to.

use crate::check::{acquired, broken, position, renewed, sound, until};
use crate::common::name;
use std::time::Duration;
use tenure_core::{
    Acquired, Event, FencingToken, Input, LeaseName, Moment, Operation, Reply, Request, RequestId,
};
use tenure_trace::{Rule, Step};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// A number that no request of a sound trace has.
fn number() -> RequestId {
    RequestId::from_number(1 << 32)
}

fn stranger() -> FencingToken {
    FencingToken::new(77).unwrap()
}

/// The first step that sends such a request, as its only one.
fn sends(steps: &[Step], is: impl Fn(&Operation) -> bool) -> usize {
    let sends = |step: &Step| {
        let mut requests = step.actions.requests.iter();
        requests.len() == 1 && requests.any(|request| is(&request.operation))
    };
    steps.iter().position(sends).unwrap()
}

fn asks(operation: &Operation) -> bool {
    matches!(operation, Operation::Acquire(_))
}

fn renews(operation: &Operation) -> bool {
    matches!(operation, Operation::Renew(_))
}

/// A step within a term, to which something is added that does not belong there.
fn within_a_term(add: impl FnOnce(&mut Step), rule: Rule) {
    let mut steps = sound();
    let index = position(&steps, renewed);
    add(&mut steps[index]);
    broken(&steps, rule, index);
}

fn sent(at: Moment, operation: Operation) -> Request {
    Request {
        id: number(),
        give_up_at: at.after(NANOSECOND),
        operation,
    }
}

#[test]
fn a_number_of_a_request_that_comes_again_is_found() {
    let mut steps = sound();
    let first = steps[sends(&steps, asks)].actions.requests[0].id;
    let index = sends(&steps, renews);
    steps[index].actions.requests[0].id = first;
    broken(&steps, Rule::RequestsWithinTerm, index);
}

#[test]
fn a_request_that_is_given_up_before_it_is_sent_is_found() {
    let mut steps = sound();
    let index = sends(&steps, renews);
    let at = steps[index].at;
    steps[index].actions.requests[0].give_up_at = at.before(NANOSECOND);
    broken(&steps, Rule::RequestsWithinTerm, index);
}

#[test]
fn a_candidate_that_asks_or_searches_or_stands_by_within_its_term_is_found() {
    let steps = sound();
    let asked = steps[sends(&steps, asks)].actions.requests[0].operation.clone();
    for operation in [asked, Operation::Look(name())] {
        within_a_term(
            |step| step.actions.requests.push(sent(step.at, operation)),
            Rule::BeginsByGrant,
        );
    }
    let standby = |event: &Event| matches!(event, Event::Standby { .. });
    let index = position(&steps, standby);
    let standby = steps[index].actions.events.iter().find(|event| standby(event));
    for event in [standby.unwrap().clone(), Event::Withdrawn { name: name() }] {
        within_a_term(|step| step.actions.events.push(event), Rule::BeginsByGrant);
    }
}

#[test]
fn what_happens_to_another_term_than_the_present_one_is_found() {
    let (name, token) = (name(), stranger());
    let event = Event::Reassured { name, token };
    within_a_term(|step| step.actions.events.push(event), Rule::EndsOnce);
    let steps = sound();
    let index = sends(&steps, renews);
    let mut renewal = steps[index].actions.requests[0].operation.clone();
    let Operation::Renew(renewals) = &mut renewal else {
        panic!("it renews")
    };
    renewals[0].token = stranger();
    within_a_term(
        |step| step.actions.requests.push(sent(step.at, renewal)),
        Rule::EndsOnce,
    );
}

#[test]
fn a_departure_of_the_present_term_is_found() {
    let mut steps = sound();
    let departed = |event: &Event| matches!(event, Event::Departed { .. });
    let index = position(&steps, departed);
    let events = &steps[index].actions.events;
    let mut event = events.iter().find(|event| departed(event)).unwrap().clone();
    let index = position(&steps, renewed);
    let Event::Renewed { token: present, .. } = steps[index].actions.events[0] else {
        panic!("it is one")
    };
    let Event::Departed { token, .. } = &mut event else {
        panic!("it is one")
    };
    *token = present;
    steps[index].actions.events.push(event);
    broken(&steps, Rule::ReleasesAfterWork, index);
}

#[test]
fn a_term_by_the_grant_of_another_lease_is_found() {
    let mut steps = sound();
    let index = sends(&steps, asks);
    let begins = position(&steps, acquired);
    for step in &mut steps[index..begins] {
        for request in &mut step.actions.requests {
            if let Operation::Acquire(acquire) = &mut request.operation {
                acquire.name = LeaseName::new("other").unwrap();
            }
        }
    }
    broken(&steps, Rule::BeginsByGrant, begins);
}

#[test]
fn a_term_that_begins_within_another_is_found() {
    let mut steps = sound();
    let begins = position(&steps, acquired);
    steps.truncate(begins + 1);
    // Asked for twice before, and both are granted.
    let index = steps.iter().rposition(|step| !step.actions.requests.is_empty());
    let index = index.filter(|index| *index < begins).unwrap();
    let mut twin = steps[index].actions.requests[0].clone();
    twin.id = number();
    steps[begins].actions.wake.as_mut().unwrap().at = twin.give_up_at;
    steps[index].actions.requests.push(twin);
    let mut again = steps[begins].clone();
    let Input::Answer {
        request,
        reply: Reply::Acquired(Ok(Acquired::Granted(given))),
    } = &mut again.input
    else {
        panic!("a term begins with an answer")
    };
    (*request, given.token) = (number(), stranger());
    let Event::Acquired { grant, .. } = &mut again.actions.events[0] else {
        panic!("it is one")
    };
    grant.token = stranger();
    steps.push(again);
    broken(&steps, Rule::BeginsByGrant, begins + 1);
}

#[test]
fn a_renewal_that_is_taken_in_at_the_deadline_is_found() {
    let mut steps = sound();
    let index = position(&steps, renewed);
    let begins = position(&steps, acquired);
    let deadline = *until(&mut steps[begins]);
    // Nothing else has happened meanwhile, not even that the request was given up.
    steps.truncate(index + 1);
    steps[index].at = deadline;
    assert!(deadline < *until(&mut steps[index]), "it would be believed in");
    broken(&steps, Rule::EndsOnce, index);
}
