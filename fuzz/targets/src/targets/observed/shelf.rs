use super::super::choices::Choices;
use tenure_core::{
    Attempt, Candidate, CandidateId, Entry, FencingToken, Incarnation, Note, Reading, Revision, Ttl, Version,
    Written,
};

/// Most old versions that a read may still show.
const OLD_VERSIONS_MAX: usize = 32;

/// One record in a store that compares and swaps, and has no clock.
#[derive(Default)]
pub(super) struct Shelf {
    /// Every version so far, the current one last. It is never removed.
    versions: Vec<Version>,
    revisions: u64,
    /// Whether somebody else has written in it: who leads by it is then nobody's promise.
    pub(super) is_tampered_with: bool,
}

impl Shelf {
    pub(super) fn current(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// A reading, of the latest state or of one before.
    pub(super) fn read(&self, choices: &mut Choices<'_>) -> Reading {
        let found = match choices.byte() % 8 {
            0 if !self.versions.is_empty() => {
                let back = choices.below(self.versions.len().min(OLD_VERSIONS_MAX));
                Some(self.versions[self.versions.len() - 1 - back].clone())
            }
            1 if choices.once_in(8) => None,
            _ => self.current().cloned(),
        };
        let token_floor = if choices.once_in(8) { choices.number() } else { 0 };
        Reading { found, token_floor }
    }

    /// Writes on the condition that the record is still of this revision (`None`: that there is none).
    pub(super) fn write(&mut self, over: Option<&Revision>, entry: &Entry) -> Written {
        if self.current().map(|version| &version.revision) != over {
            return Written::Conflict;
        }
        if let Some(before) = self.current().filter(|_| !self.is_tampered_with) {
            check_order(&before.entry, entry);
        }
        self.put(entry.clone())
    }

    /// Somebody else writes anything.
    pub(super) fn tamper(&mut self, choices: &mut Choices<'_>) {
        self.is_tampered_with = true;
        let token = FencingToken::new(choices.number()).unwrap_or(FencingToken::MAX);
        let entry = Entry {
            holder: Candidate {
                id: CandidateId::new("p0").expect("a plain word is an id"),
                incarnation: Incarnation::from_bits(u128::from(choices.byte() % 4)),
            },
            token,
            attempt: Attempt::new(choices.number()).unwrap_or(Attempt::FIRST),
            terms: choices.number(),
            ttl: if choices.once_in(2) { Ttl::MIN } else { Ttl::MAX },
            renewals: choices.number(),
            released: choices.once_in(2),
            asked_to_step_down: choices.once_in(2),
            note: Note::default(),
        };
        self.put(entry);
    }

    fn put(&mut self, entry: Entry) -> Written {
        self.revisions += 1;
        let revision = Revision::from(self.revisions);
        self.versions.push(Version {
            revision: revision.clone(),
            entry,
            ages: None,
        });
        Written::As(revision)
    }
}

/// What holds of two writes in a row, whoever made them.
fn check_order(before: &Entry, after: &Entry) {
    assert!(before != after, "two writes of a record are the same: {after:?}");
    let same_term = before.token == after.token;
    if same_term {
        assert_eq!(before.holder, after.holder, "the holder changed within a term");
        assert_eq!(before.attempt, after.attempt, "the attempt changed within a term");
        assert_eq!(
            before.terms, after.terms,
            "the count of terms changed within a term"
        );
        assert!(!before.released, "a released term was written to: {after:?}");
        assert!(before.renewals <= after.renewals, "renewals were taken back");
        assert!(
            !before.asked_to_step_down || after.asked_to_step_down,
            "a wish was forgotten"
        );
    } else {
        assert!(
            before.token < after.token,
            "the token fell from {} to {}",
            before.token,
            after.token
        );
        assert!(
            !after.released && !after.asked_to_step_down,
            "a term began released or asked: {after:?}"
        );
        assert_eq!(after.terms, before.terms + 1, "a term was counted wrongly");
    }
}
