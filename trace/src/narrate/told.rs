//! The parts of a step in words.

use std::time::Duration;
use tenure_core::{
    Acquired, Cause, Certainty, Change, Command, Departure, Event, Input, Lease, Moment, Occupancy,
    Operation, Released, Renewed, Reply, Request, StoreError, WakeReason, WatchEvent,
};

/// How long after the start a moment is.
pub(super) fn passed(start: Moment, at: Moment) -> String {
    milliseconds(at.since(start))
}

fn milliseconds(duration: Duration) -> String {
    format!(
        "{}.{:03} ms",
        duration.as_millis(),
        duration.subsec_micros() % 1000
    )
}

/// What came in.
pub(super) fn came_in(input: &Input, start: Moment) -> String {
    match input {
        Input::Tick => "time has passed".to_owned(),
        Input::Answer { request, reply } => format!("answer {}: {}", request.number(), replied(reply)),
        Input::Watch(WatchEvent::Gap) => "watch: something may have been missed".to_owned(),
        Input::Watch(WatchEvent::Changed { name, change, token }) => {
            let change = match change {
                Change::Vacated => "vacated",
                Change::Taken => "taken",
                Change::Asked => "its holder asked to step down",
            };
            let token = token.map_or(String::new(), |token| format!(", term {token}"));
            format!("watch: \"{name}\" {change}{token}")
        }
        Input::Command(command) => match command {
            Command::Campaign {
                name,
                progress_within,
                max_hold,
                ..
            } => {
                let gate = progress_within.map_or(String::new(), |within| {
                    format!(", progress within {}", milliseconds(within))
                });
                let hold = max_hold.map_or(String::new(), |max| {
                    format!(", for {} at most", milliseconds(max))
                });
                format!("command: campaign for \"{name}\"{gate}{hold}")
            }
            Command::Withdraw { name } => format!("command: withdraw from \"{name}\""),
            Command::StepDown { name, token } => format!("command: step down from \"{name}\", term {token}"),
            Command::WorkEnded { name, token } => {
                format!("command: the work of \"{name}\" in term {token} has ended")
            }
            Command::HandOn { name, token, .. } => {
                format!("command: the work of \"{name}\" in term {token} has ended, and another here goes on")
            }
            Command::DeadlineSeen { name, token } => {
                format!("command: the deadline of \"{name}\" in term {token} was seen to pass")
            }
            Command::Extend { name, token } => format!("command: extend \"{name}\" in term {token} now"),
            Command::Progress { name, token, at } => {
                let at = passed(start, *at);
                format!("command: progress of \"{name}\" in term {token} at {at}")
            }
        },
    }
}

fn replied(reply: &Reply) -> String {
    match reply {
        Reply::Acquired(Ok(Acquired::Granted(grant))) => {
            let again = if grant.again { ", again" } else { "" };
            format!("granted term {} for {}{again}", grant.token, grant.ttl)
        }
        Reply::Acquired(Ok(Acquired::Held(lease))) => leased(lease),
        Reply::Acquired(Ok(Acquired::Superseded)) => "superseded by a later attempt".to_owned(),
        Reply::Acquired(Err(error)) | Reply::Looked(Err(error)) => failed(error),
        Reply::Renewed(results) => each(results, |renewed| match renewed {
            Renewed::Extended { ttl, .. } => format!("extended for {ttl}"),
            Renewed::Lost(lease) => format!("lost, {}", maybe(lease.as_deref())),
        }),
        Reply::Released(results) => each(results, given_back),
        Reply::Looked(Ok(lease)) => maybe(lease.as_ref()),
    }
}

fn each<T>(results: &[Result<T, StoreError>], told: impl Fn(&T) -> String) -> String {
    let results: Vec<String> = results
        .iter()
        .map(|result| result.as_ref().map_or_else(failed, &told))
        .collect();
    results.join(", ")
}

fn given_back(released: &Released) -> String {
    match released {
        Released::Vacated => "vacated".to_owned(),
        Released::NotYours(lease) => format!("not this process's any more, {}", maybe(lease.as_deref())),
    }
}

fn maybe(lease: Option<&Lease>) -> String {
    lease.map_or_else(|| "there is no record".to_owned(), leased)
}

fn leased(lease: &Lease) -> String {
    let Lease {
        holder,
        token,
        remaining,
        ..
    } = lease;
    match lease.occupancy() {
        Occupancy::Held => format!(
            "held by {holder} in term {token}, {} remain",
            milliseconds(*remaining)
        ),
        Occupancy::Expired => format!("expired, last held by {holder} in term {token}"),
        Occupancy::Vacant => format!("vacant, last held by {holder} in term {token}"),
    }
}

fn failed(error: &StoreError) -> String {
    let certainty = match error.certainty {
        Certainty::NotApplied => "nothing was changed",
        Certainty::Unknown => "nobody knows whether it was applied",
    };
    // A message is foreign text, and this is for a terminal.
    let message: String = error
        .message
        .chars()
        .flat_map(|character| {
            let escaped = character.is_control().then(|| character.escape_default());
            let plain = escaped.is_none().then_some(character);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect();
    format!("failed ({certainty}): {message}")
}

/// What happened.
pub(super) fn happened(event: &Event) -> String {
    match event {
        Event::Standby { lease, twin } => {
            let twin = if *twin {
                ", which has this candidate's id"
            } else {
                ""
            };
            format!("STANDBY behind {}{twin}", lease.holder)
        }
        Event::AttemptFailed { retry_in, .. } => {
            format!("attempt failed, next in {}", milliseconds(*retry_in))
        }
        Event::CampaignEnded { error, .. } => format!("CAMPAIGN ENDED, {}", failed(error)),
        Event::Withdrawn { .. } => "WITHDRAWN".to_owned(),
        Event::Acquired { name, grant, .. } => format!("ACQUIRED \"{name}\", term {}", grant.token),
        Event::Renewed { slack, .. } => format!("renewed, {} before the deadline", milliseconds(*slack)),
        Event::RenewalFailed { error, .. } => format!("renewal {}", failed(error)),
        Event::Doubted { remaining, .. } => {
            format!("DOUBTED, {} before the deadline", milliseconds(*remaining))
        }
        Event::Reassured { .. } => "REASSURED".to_owned(),
        Event::Stuck { idle_for, .. } => {
            format!(
                "STUCK, renewals stop: no progress for {}",
                milliseconds(*idle_for)
            )
        }
        Event::AskedToStepDown { .. } => "ASKED TO STEP DOWN".to_owned(),
        Event::Ended { name, token, cause } => format!("ENDED \"{name}\", term {token}: {}", why(cause)),
        Event::ReleaseFailed { error, .. } => format!("release {}", failed(error)),
        Event::Departed { departure, .. } => match departure {
            Departure::Answered(released) => format!("departed: {}", given_back(released)),
            Departure::Unconfirmed { error, .. } => format!("departed, the release {}", failed(error)),
        },
    }
}

fn why(cause: &Cause) -> String {
    match cause {
        Cause::GivenBack => "given back".to_owned(),
        Cause::Succeeded { token, by: Some(by) } => format!("succeeded by {by} in term {token}"),
        Cause::Succeeded { token, by: None } => format!("succeeded by term {token}"),
        Cause::Vanished => "over in the store, though nobody has taken it".to_owned(),
        Cause::Deadline(None) => "deadline".to_owned(),
        Cause::Deadline(Some(error)) => format!("deadline, the last renewal {}", failed(error)),
        Cause::NoProgress(idle_for) => format!("no progress for {}", milliseconds(*idle_for)),
        Cause::MaxHold(max) => format!("held for {}, the longest allowed", milliseconds(*max)),
    }
}

/// What was asked of the store.
pub(super) fn sent(request: &Request, start: Moment) -> String {
    let names = |names: Vec<String>| names.join(", ");
    let what = match &request.operation {
        Operation::Acquire(acquire) => format!("acquire \"{}\"", acquire.name),
        Operation::Renew(renewals) => {
            let renewals = renewals.iter();
            format!(
                "renew {}",
                names(renewals.map(|renew| format!("\"{}\"", renew.name)).collect())
            )
        }
        Operation::Release(releases) => {
            let releases = releases.iter();
            let told = releases.map(|release| format!("\"{}\", term {}", release.name, release.token));
            format!("release {}", names(told.collect()))
        }
        Operation::Look(name) => format!("look at \"{name}\""),
    };
    let until = passed(start, request.give_up_at);
    format!("request {}: {what}, by {until}", request.id.number())
}

/// Why an engine wakes.
pub(super) fn reason(why: WakeReason) -> &'static str {
    match why {
        WakeReason::Deadline => "the deadline",
        WakeReason::Doubt => "the doubt",
        WakeReason::Renewal => "a renewal",
        WakeReason::Attempt => "an attempt",
        WakeReason::Departure => "the departure",
        WakeReason::RequestTimeout => "a request's time-out",
    }
}
