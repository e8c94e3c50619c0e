//! The fenced register: the data path that leaders write to, with the fence that must hold when nothing else does.

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

/// A register behind a fence: mark and value change in one atomic step.
#[derive(Clone, Copy, Default, Debug)]
pub struct Register {
    mark: u64,
    value: u64,
    writes: u64,
}

impl Register {
    /// Does what is asked, as the fence allows.
    pub fn access(&mut self, access: Access, rule: FenceRule) -> Accessed {
        let kept = rule == FenceRule::Kept;
        match access.verb {
            Verb::Claim if access.token >= self.mark || !kept => {
                self.mark = self.mark.max(access.token);
                Accessed::Claimed
            }
            Verb::Read => Accessed::Saw(self.value),
            Verb::Write { .. } if access.token == self.mark || !kept => {
                self.writes += 1;
                self.value = self.writes;
                Accessed::Written(self.writes)
            }
            Verb::Claim | Verb::Write { .. } => Accessed::Refused,
        }
    }

    /// The highest token that claimed; 0 for none.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }
}
