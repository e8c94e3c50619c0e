use std::fmt;
use tenure_core::{
    Acquire, Attempt, Candidate, CandidateId, FencingToken, Incarnation, LeaseName, Note, Release, Renew, Ttl,
};

/// One candidate's try for one lease, and the requests that belong to it.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The lease.
    pub name: LeaseName,
    /// Who asks.
    pub candidate: Candidate,
    /// By which attempt.
    pub attempt: Attempt,
    /// The ttl asked for.
    pub ttl: Ttl,
    /// What to note.
    pub note: Note,
}

impl Contender {
    /// The same try with the attempt of this number.
    ///
    /// # Panics
    /// On a number that no attempt can have.
    #[must_use]
    pub fn at_attempt(&self, number: u64) -> Self {
        let attempt = Attempt::new(number).expect("a case gives a valid attempt");
        Self {
            attempt,
            ..self.clone()
        }
    }

    /// The same try with another ttl.
    #[must_use]
    pub fn with_ttl(&self, ttl: Ttl) -> Self {
        Self { ttl, ..self.clone() }
    }

    /// The same try for another lease.
    #[must_use]
    pub fn for_lease(&self, name: &LeaseName) -> Self {
        Self {
            name: name.clone(),
            ..self.clone()
        }
    }

    /// The same try by another process that calls itself the same.
    #[must_use]
    pub fn reborn(&self) -> Self {
        let candidate = Candidate {
            id: self.candidate.id.clone(),
            incarnation: Incarnation::from_bits(!self.candidate.incarnation.bits()),
        };
        Self {
            candidate,
            ..self.clone()
        }
    }

    /// The same try by the same process under another label.
    ///
    /// # Panics
    /// On a text that no candidate id can be.
    #[must_use]
    pub fn called(&self, id: &str) -> Self {
        let candidate = Candidate {
            id: CandidateId::new(id).expect("a case gives a valid candidate id"),
            incarnation: self.candidate.incarnation,
        };
        Self {
            candidate,
            ..self.clone()
        }
    }

    /// The same try with this note.
    ///
    /// # Panics
    /// On more than 1,024 bytes.
    #[must_use]
    pub fn noting(&self, note: &str) -> Self {
        Self {
            note: Note::new(note).expect("a case gives a valid note"),
            ..self.clone()
        }
    }

    /// The request to take the lease.
    #[must_use]
    pub fn acquire(&self) -> Acquire {
        Acquire {
            name: self.name.clone(),
            candidate: self.candidate.clone(),
            attempt: self.attempt,
            ttl: self.ttl,
            note: self.note.clone(),
        }
    }

    /// The request to extend the term with this token.
    #[must_use]
    pub fn renew(&self, token: FencingToken) -> Renew {
        Renew {
            name: self.name.clone(),
            incarnation: self.candidate.incarnation,
            token,
            attempt: self.attempt,
            ttl: self.ttl,
        }
    }

    /// The request to give back the term with this token.
    #[must_use]
    pub fn release(&self, token: FencingToken) -> Release {
        Release {
            name: self.name.clone(),
            incarnation: self.candidate.incarnation,
            token,
            attempt: self.attempt,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (attempt {}, ttl {}) asking for \"{}\"",
            self.candidate, self.attempt, self.ttl, self.name
        )
    }
}
