use std::fmt;

/// What every trace must keep to, whatever its engine looks like inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// A term begins by a grant to a request that was not given up, and while no other of its lease goes on.
    BeginsByGrant,
    /// A term ends exactly once, and nothing happens to it afterwards.
    EndsOnce,
    /// Nobody believes longer than `sent + trust(granted)`, counted from before the request was sent.
    BelievesWithinGrant,
    /// A lease is given back only after its work has ended, and one that was lost never.
    ReleasesAfterWork,
    /// No request outlasts the term that it is to extend, nor the request time-out.
    RequestsWithinTerm,
    /// The token of a term is greater than that of every earlier one of its lease, and than every one that
    /// was given back.
    TokensRise,
    /// The engine asks to be woken by the end of its terms and requests.
    WakesInTime,
    /// At any moment at most one process believes that it holds a lease.
    OneBeliever,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeginsByGrant => "a term begins by a grant",
            Self::EndsOnce => "a term ends once",
            Self::BelievesWithinGrant => "belief keeps within the grant",
            Self::ReleasesAfterWork => "a release follows the end of the work",
            Self::RequestsWithinTerm => "a request keeps within its term",
            Self::TokensRise => "tokens rise",
            Self::WakesInTime => "an engine wakes in time",
            Self::OneBeliever => "one believer at a time",
        })
    }
}

/// Where a rule was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// The line of the trace.
    pub line: u64,
    /// The rule.
    pub rule: Rule,
    /// The lease, the token and the numbers.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: broken: {}: {}", self.line, self.rule, self.what)
    }
}
