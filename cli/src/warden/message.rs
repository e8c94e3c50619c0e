//! What supervisor and warden say to each other: short lines over a socket.

use rustix::process::Signal;
use serde_json::{Value, json};
use tenure::contract::Moment;
use tenure::{FencingToken, LeaseName};

/// The first line: what the warden must know to give the lease back by itself.
pub(crate) struct Begin {
    /// The store's URL, with its password: over the socket, where nobody reads along.
    pub(crate) store: String,
    /// The lease.
    pub(crate) lease: LeaseName,
    /// The process that holds it, as its incarnation's bits.
    pub(crate) incarnation: u128,
    /// The term.
    pub(crate) token: FencingToken,
    /// Until when.
    pub(crate) limit: Limit,
}

/// How long the work may live. Moments of this machine's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    /// When it gets SIGKILL.
    pub(crate) kill_at: Moment,
    /// When the lease ends.
    pub(crate) until: Moment,
}

/// What the supervisor says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The term was extended.
    Until(Limit),
    /// This signal for the command's group, and for the command where it has left that.
    Signal(Signal),
    /// Everything is asked to end, the stopped too.
    Terminate,
    /// Everything is killed.
    Kill,
    /// The supervisor has seen that nothing is left, and gives the lease back.
    Seen,
    /// The supervisor sees to the lease: the warden ends.
    Dismiss,
}

/// What the warden says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// The command runs under this number, which is its group's, too; and why it has no control group, as the
    /// system's error number, or 0.
    Started(i32, i32),
    /// It could not be started: the system's error number.
    Refused(i32),
    /// It was not started, as it would have been killed at once: the lease may be another's.
    Late,
    /// The end that was told last has come: everything is killed.
    LimitPassed,
    /// The command was stopped, by this signal.
    Stopped(i32),
    /// The command ended, with this status of `wait`.
    Ended(i32),
    /// Nothing is left of it, nor of what it started.
    Empty,
}

impl Begin {
    pub(crate) fn to_line(&self) -> String {
        let limit = self.limit;
        let value = json!({
            "store": self.store,
            "lease": self.lease.as_str(),
            "incarnation": format!("{:032x}", self.incarnation),
            "token": self.token.number(),
            "kill_at": limit.kill_at.as_nanos(),
            "until": limit.until.as_nanos(),
        });
        format!("{value}\n")
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let moment = |field: &str| Some(Moment::from_nanos(value[field].as_u64()?));
        Some(Self {
            store: value["store"].as_str()?.to_owned(),
            lease: LeaseName::new(value["lease"].as_str()?).ok()?,
            incarnation: u128::from_str_radix(value["incarnation"].as_str()?, 16).ok()?,
            token: FencingToken::new(value["token"].as_u64()?).ok()?,
            limit: Limit {
                kill_at: moment("kill_at")?,
                until: moment("until")?,
            },
        })
    }
}

impl Order {
    pub(crate) fn to_line(self) -> String {
        match self {
            Self::Until(Limit { kill_at, until }) => {
                format!("until {} {}\n", kill_at.as_nanos(), until.as_nanos())
            }
            Self::Signal(signal) => format!("signal {}\n", signal.as_raw()),
            Self::Terminate => "terminate\n".to_owned(),
            Self::Kill => "kill\n".to_owned(),
            Self::Seen => "seen\n".to_owned(),
            Self::Dismiss => "dismiss\n".to_owned(),
        }
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["until", kill_at, until] => Some(Self::Until(Limit {
                kill_at: Moment::from_nanos(kill_at.parse().ok()?),
                until: Moment::from_nanos(until.parse().ok()?),
            })),
            ["signal", number] => Some(Self::Signal(Signal::from_named_raw(number.parse().ok()?)?)),
            ["terminate"] => Some(Self::Terminate),
            ["kill"] => Some(Self::Kill),
            ["seen"] => Some(Self::Seen),
            ["dismiss"] => Some(Self::Dismiss),
            _ => None,
        }
    }
}

impl Word {
    pub(crate) fn to_line(self) -> String {
        match self {
            Self::Started(pid, ungrouped) => format!("started {pid} {ungrouped}\n"),
            Self::Refused(error) => format!("refused {error}\n"),
            Self::Late => "late\n".to_owned(),
            Self::LimitPassed => "limit\n".to_owned(),
            Self::Stopped(signal) => format!("stopped {signal}\n"),
            Self::Ended(status) => format!("ended {status}\n"),
            Self::Empty => "empty\n".to_owned(),
        }
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["started", pid, ungrouped] => Some(Self::Started(pid.parse().ok()?, ungrouped.parse().ok()?)),
            ["refused", error] => Some(Self::Refused(error.parse().ok()?)),
            ["late"] => Some(Self::Late),
            ["limit"] => Some(Self::LimitPassed),
            ["stopped", signal] => Some(Self::Stopped(signal.parse().ok()?)),
            ["ended", status] => Some(Self::Ended(status.parse().ok()?)),
            ["empty"] => Some(Self::Empty),
            _ => None,
        }
    }
}
