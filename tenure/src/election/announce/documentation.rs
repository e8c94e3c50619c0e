//! The documentation of the log is made of the lines themselves: each event is announced, and what comes out
//! are the tables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::announce;
use crate::driver::announce_not_taken_up;
use crate::lock;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, Cause, Departure, End, Event, Fault, FencingToken, Grant, Incarnation,
    Lease, LeaseName, Moment, Note, Predecessor, Released, StoreError, Ttl,
};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::with_default;

/// What is logged by others than elections and locks, and what the command says; its own tests compare that.
const BESIDE: &str = include_str!("beside.md");

/// Set, the documentation is written anew instead of being compared.
const WRITE: &str = "TENURE_WRITE_DOCS";

/// When an event happens. One that is new in the engine does not compile before it is documented here.
fn when(event: &Event) -> &'static str {
    match event {
        Event::Standby { twin: false, .. } => "Another holds the lease; once for each of its terms.",
        Event::Standby { twin: true, .. } => {
            "The holder has this candidate's id and is another process, or was one that did not give the lease back."
        }
        Event::AttemptFailed { .. } => {
            "The store refused an acquisition or did not answer; the campaign goes on."
        }
        Event::CampaignEnded { .. } => "The campaign cannot go on before somebody acts.",
        Event::Withdrawn { .. } => "The campaign was given up; nothing is held.",
        Event::Acquired { grant, .. } if grant.predecessor.is_some() => {
            "A term began after a holder that did not come back. Nobody led for `vacant_for_ms`."
        }
        Event::Acquired { .. } => "A term began.",
        Event::Renewed { .. } => "The term was extended, `slack_ms` before its old deadline.",
        Event::RenewalFailed { .. } => {
            "A renewal failed; the tries go on until the deadline, `remaining_ms` from now."
        }
        Event::Doubted { .. } => {
            "It was asked back or nears its longest hold, or no renewal came through until the grace before the deadline; the work is to end."
        }
        Event::Reassured { .. } => "A renewal ended the doubt.",
        Event::Stuck { .. } => "The work reported no progress in time; the lease is let go.",
        Event::AskedToStepDown { .. } => "Somebody asked the holder to hand over.",
        Event::Ended { cause, .. } => match cause {
            Cause::GivenBack => "The term ended as the holder wished.",
            Cause::Succeeded { .. } => "A later term began: this process was away for longer than its lease.",
            Cause::Vanished => "The store has no such term any more.",
            Cause::Deadline(_) => "The deadline passed without a renewal; `error` is the last one.",
            Cause::NoProgress(_) => "The deadline passed, as nothing was renewed without progress.",
            Cause::MaxHold(_) => "The longest hold that was allowed is over.",
        },
        Event::ReleaseFailed { .. } => WHEN_A_RELEASE_FAILS,
        Event::Departed { departure, .. } => when_departed(departure),
    }
}

const WHEN_A_RELEASE_FAILS: &str = "A release failed; the tries go on, unless \"Release unconfirmed\" follows. By itself it has expired in `remaining_ms`.";

fn when_departed(departure: &Departure) -> &'static str {
    match departure {
        Departure::Answered(Released::Vacated) => "It was given back.",
        Departure::Answered(Released::NotYours(_)) => "The release found it to be another's, or nobody's.",
        Departure::Unconfirmed { .. } => {
            "Nobody knows whether it was given back, `error` is why; others may have to wait for `remaining_ms`."
        }
    }
}

/// The same of a lock; `None` where no line is written, or one that is documented with another event.
fn when_of_a_lock(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Standby { twin: false, .. } => {
            "Another process holds the lock, and somebody here waits for it."
        }
        Event::AttemptFailed { .. } => "The store refused an attempt or did not answer.",
        Event::CampaignEnded { .. } => {
            "Nobody can have the lock before somebody acts; whoever waited is told so."
        }
        Event::Withdrawn { .. } => "Whoever waited has left; nothing is held.",
        Event::Acquired { grant, .. } if grant.predecessor.is_some() => {
            "It was taken after a holder that did not come back. Nobody had it for `vacant_for_ms`."
        }
        Event::Acquired { .. } => "The lock was taken.",
        Event::RenewalFailed { .. } => {
            "An extension failed; the tries go on until the deadline, `remaining_ms` from now."
        }
        Event::Doubted { .. } => {
            "It was asked back or nears its longest hold, or no extension came through until the grace before the deadline; the work is to end."
        }
        Event::Reassured { .. } => "An extension ended the doubt.",
        Event::AskedToStepDown { .. } => "Somebody asked the holder to release.",
        Event::Ended {
            cause: Cause::Succeeded { .. },
            ..
        } => "It was over before it was released, for the reason in `cause`, in words in `why`.",
        Event::ReleaseFailed { .. } => WHEN_A_RELEASE_FAILS,
        Event::Departed { departure, .. } => when_departed(departure),
        Event::Standby { twin: true, .. }
        | Event::Renewed { .. }
        | Event::Stuck { .. }
        | Event::Ended { .. } => return None,
    })
}

/// The same of a place in a queue.
fn when_of_a_place(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Standby { twin: false, .. } => {
            "The place is called after its process's id, and somebody has a lease of that name; it is waited for."
        }
        Event::Standby { twin: true, .. } => {
            "The place is held by another process of this candidate's id, or by one that was killed and has not expired."
        }
        Event::AttemptFailed { .. } => "The store refused an attempt to enter the queue, or did not answer.",
        Event::CampaignEnded { .. } => {
            "The queue cannot be entered before somebody acts; whoever waited is told so."
        }
        Event::Acquired { grant, .. } if grant.predecessor.is_none() => "The process waits in the queue.",
        Event::RenewalFailed { .. } => {
            "The place was not extended; the tries go on until its deadline, `remaining_ms` from now."
        }
        Event::Stuck { .. } => "Whoever waits was not polled; the place is let go.",
        Event::AskedToStepDown { .. } => "The next turn is this process's.",
        Event::Ended {
            cause: Cause::Succeeded { .. },
            ..
        } => {
            "The process is to enter the queue anew, at its end, for the reason in `cause`, in words in `why`."
        }
        Event::ReleaseFailed { .. } => {
            "The place could not be given back; the tries go on, unless \"Release unconfirmed\" follows."
        }
        Event::Departed {
            departure: Departure::Unconfirmed { .. },
            ..
        } => {
            "Nobody knows whether the place was given back; those behind it may have to wait for `remaining_ms`."
        }
        Event::Withdrawn { .. }
        | Event::Acquired { .. }
        | Event::Renewed { .. }
        | Event::Doubted { .. }
        | Event::Reassured { .. }
        | Event::Ended { .. }
        | Event::Departed { .. } => return None,
    })
}

#[expect(clippy::too_many_lines, reason = "each event is there once")]
fn every_event() -> Vec<Event> {
    let name = LeaseName::new("job").unwrap();
    let token = FencingToken::new(7).unwrap();
    let candidate = Candidate {
        id: CandidateId::new("other").unwrap(),
        incarnation: Incarnation::from_bits(1),
    };
    let ttl = Ttl::from_secs(30).unwrap();
    let error = StoreError::unknown(Fault::TimedOut, "no answer");
    let some_time = Duration::from_secs(1);
    let lease = Lease {
        name: name.clone(),
        holder: candidate.clone(),
        token,
        attempt: Attempt::FIRST,
        terms: 1,
        ttl,
        remaining: some_time,
        released: false,
        held_for: some_time,
        renewed_ago: some_time,
        asked_to_step_down: false,
        note: Note::default(),
    };
    let grant = |predecessor| Grant {
        token,
        ttl,
        terms: 2,
        again: false,
        predecessor,
    };
    let predecessor = Predecessor {
        candidate: candidate.id.clone(),
        token,
        end: End::Expired,
        vacant_for: some_time,
    };
    let acquired = |predecessor| Event::Acquired {
        name: name.clone(),
        grant: grant(predecessor),
        until: Moment::ZERO,
        round_trip: some_time,
    };
    let ended = |cause| Event::Ended {
        name: name.clone(),
        token,
        cause,
    };
    let departed = |departure| Event::Departed {
        name: name.clone(),
        token,
        departure,
    };
    let standby = |twin| Event::Standby {
        lease: lease.clone(),
        twin,
    };
    vec![
        standby(false),
        standby(true),
        Event::AttemptFailed {
            name: name.clone(),
            error: error.clone(),
            retry_in: some_time,
        },
        Event::CampaignEnded {
            name: name.clone(),
            error: error.clone(),
        },
        Event::Withdrawn { name: name.clone() },
        acquired(None),
        acquired(Some(predecessor)),
        Event::Renewed {
            name: name.clone(),
            token,
            until: Moment::ZERO,
            round_trip: some_time,
            slack: some_time,
        },
        Event::RenewalFailed {
            name: name.clone(),
            token,
            error: error.clone(),
            remaining: some_time,
        },
        Event::Doubted {
            name: name.clone(),
            token,
            remaining: some_time,
        },
        Event::Reassured {
            name: name.clone(),
            token,
        },
        Event::Stuck {
            name: name.clone(),
            token,
            idle_for: some_time,
        },
        Event::AskedToStepDown {
            name: name.clone(),
            token,
        },
        ended(Cause::GivenBack),
        ended(Cause::Succeeded {
            token,
            by: Some(candidate.clone()),
        }),
        ended(Cause::Vanished),
        ended(Cause::Deadline(Some(error.clone()))),
        ended(Cause::NoProgress(some_time)),
        ended(Cause::MaxHold(some_time)),
        departed(Departure::Answered(Released::Vacated)),
        departed(Departure::Answered(Released::NotYours(None))),
        Event::ReleaseFailed {
            name: name.clone(),
            token,
            error: error.clone(),
            remaining: some_time,
        },
        departed(Departure::Unconfirmed {
            error,
            remaining: some_time,
        }),
    ]
}

/// A line as it was written: level, message, names of fields.
type Line = (String, String, Vec<&'static str>);

/// Takes lines down.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<Line>>>);

#[derive(Default)]
struct Fields {
    message: String,
    names: Vec<&'static str>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.names.push(name),
        }
    }
}

impl tracing::Subscriber for Taken {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().to_string().to_lowercase();
        self.0.lock().unwrap().push((level, fields.message, fields.names));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// What is written meanwhile.
fn lines_of(announcing: impl FnOnce()) -> Vec<Line> {
    let taken = Taken::default();
    with_default(taken.clone(), announcing);
    std::mem::take(&mut *taken.0.lock().unwrap())
}

/// A table of lines, each of which names what it is about by `key`.
struct Table {
    key: &'static str,
    text: String,
    /// When each line comes that is in it.
    shown: BTreeSet<&'static str>,
    lines: Vec<Line>,
}

impl Table {
    fn new(key: &'static str) -> Self {
        Self {
            key,
            text: "| level | line | fields | when |\n|---|---|---|---|\n".to_owned(),
            shown: BTreeSet::new(),
            lines: Vec::new(),
        }
    }

    fn add(&mut self, line: Line, when: &'static str) {
        let (level, message, names) = &line;
        let tells_both = ["Failover detected", "Taken over"].contains(&message.as_str());
        assert!(
            names.contains(&self.key) && (names.contains(&"candidate") || tells_both),
            "{message}"
        );
        let besides = [self.key, "candidate"];
        let names = names.iter().filter(|name| !besides.contains(name));
        let fields: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        assert!(self.shown.insert(when), "{message} is there twice");
        writeln!(
            self.text,
            "| {level} | {message} | {} | {when} |",
            fields.join(", ")
        )
        .unwrap();
        self.lines.push(line);
    }
}

fn documentation() -> String {
    let mut elections = Table::new("lease");
    let mut locks = Table::new("lock");
    let mut places = Table::new("place");
    for event in every_event() {
        // An event of two lines begins with one that is in the table already.
        let lines = lines_of(|| announce("one", &event));
        elections.add(
            lines.last().expect("every event is announced").clone(),
            when(&event),
        );
        let lines = lines_of(|| lock::announce("one", &event));
        match when_of_a_lock(&event) {
            Some(when) => locks.add(lines.last().expect("it is announced").clone(), when),
            None => assert!(lines.iter().all(|line| locks.lines.contains(line)), "{lines:?}"),
        }
        let lines = lines_of(|| lock::announce_place("one", &event));
        match when_of_a_place(&event) {
            Some(when) => places.add(lines.last().expect("it is announced").clone(), when),
            None => assert!(lines.iter().all(|line| places.lines.contains(line)), "{lines:?}"),
        }
    }
    let place = LeaseName::new("a/candidates/1/one").unwrap();
    let error = StoreError::unknown(Fault::TimedOut, "no answer");
    let lines = lines_of(|| lock::announce_unread("one", &place, &error, Duration::from_secs(1)));
    let when = "The store does not tell who is before the place; once for each kind of fault. The process waits, though the lock may be free.";
    places.add(lines.last().expect("it is announced").clone(), when);
    let mut either = Table::new("lease");
    let (name, token) = (LeaseName::new("job").unwrap(), FencingToken::new(7).unwrap());
    let lines = lines_of(|| announce_not_taken_up("one", &name, token, Duration::from_secs(30)));
    let when = "A campaign, or a wait for a lock, has won, and its future is kept without being polled.";
    either.add(lines.last().expect("it is announced").clone(), when);
    let head = "# The log of Tenure\n\n\
         Every line of elections and locks has the target `tenure`. In `--log-format json` its fields have the names below, and\n\
         `candidate` is in all but \"Failover detected\" and \"Taken over\". Those of elections have `lease` besides, those of\n\
         locks `lock`, and those of places in queues, which are nobody's locks, `place`. Tokens, counts and what ends with `_ms`\n\
         (milliseconds) are numbers; all else is text.\n\n\
         This page is written by `TENURE_WRITE_DOCS=1 cargo test -p tenure --features metrics --lib announce`, from the lines\n\
         themselves.";
    let tables = [
        ("Elections", elections),
        ("Locks", locks),
        ("Places in queues", places),
        ("Either, with `lease`", either),
    ];
    let sections = tables.map(|(heading, table)| format!("\n## {heading}\n\n{}", table.text));
    format!("{head}\n{}{BESIDE}", sections.concat())
}

#[test]
fn the_documentation_of_the_log_is_what_is_logged() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/LOGS.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, documentation(), "write it anew: see its head");
}
