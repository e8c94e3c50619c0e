//! The fenced register: the data path that leaders write to, with the fence that must hold when nothing else
//! does. What the fence admits is decided by the core's own rules, as in every fence that ships; to keep the
//! mark with the data is done here.

use tenure_core::{FencingToken, Horizon, LeaseName, ResourceName, Ruling, Term, decide_claim, decide_entry};

/// One access of a leader's work to the register of its lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The process that works.
    pub slot: u8,
    /// Which start of it.
    pub instance: u32,
    /// The lease.
    pub name: u8,
    /// Which piece of work it belongs to, for the process to know.
    pub serial: u32,
    /// The token of the term.
    pub token: u64,
    /// What is done.
    pub verb: Verb,
}

/// What is done to a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// The fence is raised to the token.
    Claim,
    /// The register is read. Anybody may.
    Read,
    /// The register is written, as computed from what write `from` had left.
    Write {
        /// The number of that write; 0 for none.
        from: u64,
    },
}

/// What the register answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accessed {
    /// The fence stands at the token.
    Claimed,
    /// The last accepted write, 0 for none.
    Saw(u64),
    /// The write was accepted, as this number.
    Written(u64),
    /// Another token has claimed.
    Refused,
}

/// How the fence is kept: as promised, or with a planted flaw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceRule {
    /// Only the token that claimed last may write, and only a greater one may claim.
    Kept,
    /// Everything is admitted.
    Ignored,
}

/// What a fence is asked with, beside the mark.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'world> {
    /// What is protected.
    pub resource: &'world ResourceName,
    /// The term that works.
    pub term: &'world Term,
    /// The tokens that exist, as far as the fence knows.
    pub horizon: Horizon,
}

/// A register behind a fence: mark and value change in one atomic step.
#[derive(Clone, Copy, Default, Debug)]
pub struct Register {
    mark: u64,
    value: u64,
    writes: u64,
}

impl Register {
    /// Does what is asked, as the fence allows.
    pub fn access(&mut self, access: Access, subject: Subject<'_>, rule: FenceRule) -> Accessed {
        let Subject {
            resource,
            term,
            horizon,
        } = subject;
        let (owner, mark) = (self.owner(term), self.marked());
        match access.verb {
            Verb::Read => Accessed::Saw(self.value),
            Verb::Claim => match (decide_claim(resource, term, owner, mark, horizon), rule) {
                (Ok(Ruling::Holds), _) => Accessed::Claimed,
                (Ok(Ruling::Raise), _) => {
                    self.mark = access.token;
                    Accessed::Claimed
                }
                (Err(_), FenceRule::Kept) => Accessed::Refused,
                (Err(_), FenceRule::Ignored) => Accessed::Claimed,
            },
            Verb::Write { .. } => {
                let admitted = decide_entry(resource, term, owner, mark).is_ok();
                if !admitted && rule == FenceRule::Kept {
                    return Accessed::Refused;
                }
                self.writes += 1;
                self.value = self.writes;
                Accessed::Written(self.writes)
            }
        }
    }

    /// Whose mark it is: the lease's that has claimed first.
    fn owner<'term>(&self, term: &'term Term) -> Option<&'term LeaseName> {
        (self.mark != 0).then_some(&term.lease)
    }

    /// The mark, if anybody has claimed.
    #[must_use]
    pub fn marked(&self) -> Option<FencingToken> {
        FencingToken::new(self.mark).ok()
    }

    /// The highest token that claimed; 0 for none.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }
}
