//! The terms of one lease in one trace.

use super::{Broken, Rule, hold};
use std::collections::BTreeSet;
use tenure_core::{Cause, Command, FencingToken, Input, LeaseName, Moment};

/// One term, and for how long it was believed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermSpan {
    /// The lease.
    pub name: LeaseName,
    /// The term.
    pub token: FencingToken,
    /// The line in which it begins.
    pub line: u64,
    /// Since when it was believed in.
    pub from: Moment,
    /// Until when it was believed in, not included: when it ended, or its deadline if that was before. For a
    /// term whose end the trace does not tell, the last deadline in it: it may have ended long before, with
    /// its process, or, if only the recording had ended, have been renewed past it.
    pub until: Moment,
    /// Until when the trace shows that it was believed in, not included: [`until`](Self::until) if it tells
    /// of the end, else its last moment.
    pub recorded_until: Moment,
    /// Whether the trace tells of its end.
    pub ended: bool,
}

/// What a trace has told of one lease so far.
pub(super) struct Seat {
    name: LeaseName,
    open: Option<TermSpan>,
    last: Option<FencingToken>,
    /// Terms that ended otherwise than by the end of their work.
    lost: BTreeSet<FencingToken>,
    /// The highest token whose release was sent, whether or not its term was ever taken up.
    given_back: Option<FencingToken>,
}

impl Seat {
    pub(super) fn new(name: &LeaseName) -> Self {
        Self {
            name: name.clone(),
            open: None,
            last: None,
            lost: BTreeSet::new(),
            given_back: None,
        }
    }

    /// When the present term ends unless it is renewed.
    pub(super) fn until(&self) -> Option<Moment> {
        self.open.as_ref().map(|term| term.until)
    }

    /// The term that had not ended when the trace did, at `last`.
    pub(super) fn into_open(self, last: Moment) -> Option<TermSpan> {
        self.open.map(|term| TermSpan {
            recorded_until: last.min(term.until),
            ..term
        })
    }

    /// `limit` is `sent + trust(granted)`; `None` if nothing was granted.
    pub(super) fn begin(&mut self, term: TermSpan, limit: Option<Moment>) -> Result<(), Broken> {
        let (token, until) = (term.token, term.until);
        let name = &self.name;
        let Some(limit) = limit else {
            let what =
                format!("lease \"{name}\": term {token} begins without a grant in answer to its request");
            return Err(Broken {
                rule: Rule::BeginsByGrant,
                what,
            });
        };
        hold(self.open.is_none(), Rule::BeginsByGrant, || {
            format!("lease \"{name}\": term {token} begins within another")
        })?;
        let before = self.last.max(self.given_back);
        hold(
            before.is_none_or(|before| before < token),
            Rule::TokensRise,
            || format!("lease \"{name}\": term {token} follows {before:?}"),
        )?;
        hold(until <= limit, Rule::BelievesWithinGrant, || {
            format!(
                "lease \"{name}\": term {token} is believed in until {until:?}, its grant allows {limit:?}"
            )
        })?;
        self.last = Some(token);
        self.open = Some(term);
        Ok(())
    }

    pub(super) fn extend(
        &mut self,
        at: Moment,
        token: FencingToken,
        until: Moment,
        limit: Option<Moment>,
    ) -> Result<(), Broken> {
        self.goes_on(token)?;
        let name = &self.name;
        let Some(term) = &mut self.open else { return Ok(()) };
        let old = term.until;
        hold(at < old, Rule::EndsOnce, || {
            format!("lease \"{name}\": term {token} is renewed at {at:?}, after its deadline {old:?}")
        })?;
        // The latest grant counts, also where it is less than the one before.
        hold(
            limit.is_some_and(|limit| until <= limit),
            Rule::BelievesWithinGrant,
            || {
                format!(
                    "lease \"{name}\": term {token} was believed in until {old:?} and now until {until:?}, its \
                     renewal allows {limit:?}"
                )
            },
        )?;
        term.until = until;
        Ok(())
    }

    pub(super) fn end(
        &mut self,
        at: Moment,
        token: FencingToken,
        cause: &Cause,
        input: &Input,
    ) -> Result<TermSpan, Broken> {
        self.goes_on(token)?;
        let Some(mut term) = self.open.take() else {
            unreachable!("it goes on");
        };
        term.until = term.until.min(at);
        term.recorded_until = term.until;
        term.ended = true;
        if *cause == Cause::GivenBack {
            let done = matches!(
                input,
                Input::Command(Command::WorkEnded { name, token: ended } | Command::HandOn { name, token: ended, .. })
                    if *name == self.name && *ended == token
            );
            hold(done, Rule::ReleasesAfterWork, || {
                let name = &self.name;
                format!("lease \"{name}\": term {token} is given back, though its work has not ended")
            })?;
        } else {
            self.lost.insert(token);
        }
        Ok(term)
    }

    /// Something happens to a term: it must be the present one.
    pub(super) fn goes_on(&self, token: FencingToken) -> Result<(), Broken> {
        let present = self.open.as_ref().map(|term| term.token);
        hold(present == Some(token), Rule::EndsOnce, || {
            let name = &self.name;
            format!("lease \"{name}\": something happens to term {token}, but the present one is {present:?}")
        })
    }

    /// Something happens that is only possible without a term.
    pub(super) fn is_free(&self, what: &str) -> Result<(), Broken> {
        hold(self.open.is_none(), Rule::BeginsByGrant, || {
            format!("lease \"{}\": {what} within a term", self.name)
        })
    }

    pub(super) fn may_release(&self, token: FencingToken) -> Result<(), Broken> {
        let present = self.open.as_ref().is_some_and(|term| term.token == token);
        hold(
            !present && !self.lost.contains(&token),
            Rule::ReleasesAfterWork,
            || {
                let name = &self.name;
                format!("lease \"{name}\": term {token} is released, though its work has not ended")
            },
        )
    }

    /// A release is sent.
    pub(super) fn release(&mut self, token: FencingToken) -> Result<(), Broken> {
        self.may_release(token)?;
        self.given_back = self.given_back.max(Some(token));
        Ok(())
    }

    /// After a step at `at`, every term has a deadline still to come.
    pub(super) fn over_by(&self, at: Moment, name: &LeaseName) -> Result<(), Broken> {
        let overdue = self.open.as_ref().filter(|term| term.until <= at);
        overdue.map_or(Ok(()), |term| {
            let (token, until) = (term.token, term.until);
            hold(false, Rule::BelievesWithinGrant, || {
                format!("lease \"{name}\": term {token} goes on at {at:?}, though its deadline was {until:?}")
            })
        })
    }
}
