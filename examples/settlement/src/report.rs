//! What an instance says on standard output, a line each: for people, and for the drill that reads it.

use std::fmt;

/// One thing that happened to an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// It waits for leadership.
    StandsBy,
    /// It was elected.
    Leads {
        /// The token of the term.
        token: u64,
    },
    /// It has claimed the fence, and has read where its predecessor stopped.
    GoesOn {
        /// How many payments were settled before.
        settled: u64,
    },
    /// It holds, as `--hold-at` told it to.
    Holds {
        /// What it was told.
        at: u64,
        /// The batch that it is about to write begins after so many payments.
        settled: u64,
    },
    /// The fence refused its write; the fence's own words.
    Refused(String),
    /// It was asked to step down, and gives the lease back.
    Asked,
    /// It does not lead any more; why.
    Lost(String),
    /// The ledger failed, and it will look again; the ledger's words.
    Trouble(String),
    /// Every payment is settled.
    Complete {
        /// How many there are.
        settled: u64,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandsBy => f.write_str("stands by"),
            Self::Leads { token } => write!(f, "leads with token {token}"),
            Self::GoesOn { settled } => write!(f, "claimed the fence, goes on after payment {settled}"),
            Self::Holds { at, settled } => write!(
                f,
                "holds, told {at}, before writing what comes after payment {settled}"
            ),
            Self::Refused(why) => f.write_str(why),
            Self::Asked => f.write_str("was asked to step down"),
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Trouble(why) => write!(f, "trouble: {why}"),
            Self::Complete { settled } => write!(f, "complete: all {settled} payments are settled"),
        }
    }
}

impl Report {
    /// Reads back what [`Display`](fmt::Display) wrote; `None` for any other line.
    pub fn parse(line: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok();
        if line == "stands by" {
            return Some(Self::StandsBy);
        }
        if line == "was asked to step down" {
            return Some(Self::Asked);
        }
        if line.starts_with("refused: ") {
            return Some(Self::Refused(line.to_owned()));
        }
        if let Some(why) = line.strip_prefix("lost: ") {
            return Some(Self::Lost(why.to_owned()));
        }
        if let Some(why) = line.strip_prefix("trouble: ") {
            return Some(Self::Trouble(why.to_owned()));
        }
        if let Some(token) = line.strip_prefix("leads with token ") {
            return number(token).map(|token| Self::Leads { token });
        }
        if let Some(settled) = line.strip_prefix("claimed the fence, goes on after payment ") {
            return number(settled).map(|settled| Self::GoesOn { settled });
        }
        if let Some(rest) = line.strip_prefix("holds, told ") {
            let (at, settled) = rest.split_once(", before writing what comes after payment ")?;
            return number(at)
                .zip(number(settled))
                .map(|(at, settled)| Self::Holds { at, settled });
        }
        let settled = line
            .strip_prefix("complete: all ")?
            .strip_suffix(" payments are settled")?;
        number(settled).map(|settled| Self::Complete { settled })
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn every_report_is_read_back_as_it_was_said() {
        let reports = [
            Report::StandsBy,
            Report::Leads { token: 17 },
            Report::GoesOn { settled: 4_000 },
            Report::Holds { at: 10, settled: 20 },
            Report::Refused("refused: token 17 is stale".to_owned()),
            Report::Asked,
            Report::Lost("its deadline passed".to_owned()),
            Report::Trouble("no primary".to_owned()),
            Report::Complete { settled: 9 },
        ];
        for report in reports {
            assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
        assert_eq!(Report::parse("leads with token many"), None);
    }
}
