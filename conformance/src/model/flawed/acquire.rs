use super::super::records::{Record, Records, Slot, unreadable};
use crate::model::Defect;
use tenure_core::{
    Acquire, Acquired, End, Fault, FencingToken, Grant, Incarnation, LeaseName, Note, StoreError, Ttl,
};

/// How long an expired lease is withheld.
const WITHHELD_MS: u64 = 1_000;

/// What a ttl is silently cut to, in seconds.
const TTL_CUT_S: u64 = 600;

/// How long a lease lasts at most, whatever it was granted.
const LASTS_MS_MAX: u64 = 100_000;

impl Defect {
    /// The rule for taking a lease, broken.
    pub(super) fn acquire(
        self,
        records: &mut Records,
        request: &Acquire,
        now_ms: u64,
    ) -> Result<Acquired, StoreError> {
        let before = match records.slots.get(&request.name) {
            Some(Slot::Own(record)) => Some(record.clone()),
            Some(Slot::Foreign(_)) if self == Self::UnreadableOverwritten => {
                records.slots.remove(&request.name);
                None
            }
            Some(Slot::Foreign(_)) | None => None,
        };
        if let Some(record) = &before {
            if let Some(answer) = self.answer_at_once(record, request, now_ms) {
                return answer;
            }
            let forged = self.forge(record, request, now_ms);
            records.write(&request.name, forged);
        }
        let answer = records.acquire(request, now_ms);
        if before.is_some() && !matches!(answer, Ok(Acquired::Granted(_))) {
            // What was forged to mislead the rule must not show.
            let record = before.clone().expect("checked just now");
            records.write(&request.name, record);
        }
        match answer? {
            Acquired::Granted(grant) => Ok(self.spoil_grant(records, request, before.as_ref(), grant)),
            Acquired::Held(mut lease) => {
                if self == Self::LosersWrite {
                    self.edit(records, &request.name, |record| {
                        record.note = request.note.clone()
                    });
                }
                if self == Self::HeldShowsTheAsker {
                    lease.holder = request.candidate.clone();
                }
                Ok(Acquired::Held(lease))
            }
            Acquired::Superseded => Ok(Acquired::Superseded),
        }
    }

    /// Answers that do not even ask the rule.
    fn answer_at_once(
        self,
        record: &Record,
        request: &Acquire,
        now_ms: u64,
    ) -> Option<Result<Acquired, StoreError>> {
        let mine = record.holder.incarnation == request.candidate.incarnation;
        let held = record.is_held(now_ms);
        let show = || Some(Ok(Acquired::Held(record.lease(&request.name, now_ms))));
        let expired = !held && record.released_ms.is_none();
        match self {
            Self::FarOffExpiryKeepsItsHolderOut if mine && record.lasts_too_long(now_ms) => {
                Some(Err(unreadable(request.name.as_str())))
            }
            Self::LaterAttemptWaits if held && mine && record.attempt < request.attempt => show(),
            Self::ExpiryJudgedLate if expired && now_ms < record.expires_ms + WITHHELD_MS => show(),
            Self::AttemptsComparedAcrossProcesses if !held && !mine && record.attempt > request.attempt => {
                Some(Ok(Acquired::Superseded))
            }
            Self::RaceIsAnError if held && !mine && record.began_ms + 1 >= now_ms => {
                let message = format!("duplicate key: \"{}\"", request.name);
                Some(Err(StoreError::not_applied(Fault::Internal, message)))
            }
            _ => None,
        }
    }

    /// The record as the broken rule sees it.
    fn forge(self, record: &Record, request: &Acquire, now_ms: u64) -> Record {
        let mine = record.holder.incarnation == request.candidate.incarnation;
        let held = record.is_held(now_ms);
        let vacant = record.released_ms.is_some();
        let fifth_ms = record.ttl.as_millis() / 5;
        let mut seen = record.clone();
        let another = Incarnation::from_bits(!record.holder.incarnation.bits());
        match self {
            Self::SameAttemptGetsNewToken if held && mine && record.attempt == request.attempt => {
                seen.expires_ms = now_ms;
            }
            Self::EarlierAttemptTakesOver if held && mine && record.attempt > request.attempt => {
                (seen.expires_ms, seen.attempt) = (now_ms, request.attempt);
            }
            Self::LateDuplicateMakesGhost if vacant && record.attempt == request.attempt => {
                seen.holder.incarnation = another;
            }
            Self::VacantEarlierAttemptGranted if vacant && record.attempt > request.attempt => {
                seen.holder.incarnation = another;
            }
            Self::ExpiredEarlierAttemptGranted if !vacant && !held && record.attempt > request.attempt => {
                seen.holder.incarnation = another;
            }
            Self::LabelIsTheOwner if record.holder.id == request.candidate.id => {
                seen.holder.incarnation = request.candidate.incarnation;
            }
            Self::ExpiryJudgedEarly if !mine => seen.expires_ms = record.expires_ms - fifth_ms,
            Self::AskersTtlCounts if !mine => seen.expires_ms = record.renewed_ms + request.ttl.as_millis(),
            Self::LastTokenWraps if record.token == FencingToken::MAX => {
                seen.token = FencingToken::new(1).expect("1 is a token");
            }
            _ => {}
        }
        seen
    }

    fn spoil_grant(
        self,
        records: &mut Records,
        request: &Acquire,
        before: Option<&Record>,
        mut grant: Grant,
    ) -> Acquired {
        let name = &request.name;
        let vacant = before.is_some_and(|record| record.released_ms.is_some());
        match self {
            Self::AgainIsNotSaid => grant.again = false,
            Self::FirstGrantSaysAgain if before.is_none() => grant.again = true,
            Self::NotesAreDropped => self.edit(records, name, |record| record.note = Note::default()),
            Self::LongTtlCutSilently => self.edit(records, name, |record| {
                let cut = Ttl::from_secs(TTL_CUT_S).expect("a valid ttl");
                record.ttl = record.ttl.min(cut);
            }),
            Self::SameAttemptDoesNotExtend if grant.again => {
                if let Some(record) = before {
                    records.write(name, record.clone());
                }
            }
            Self::SameTtlDoesNotExtend if grant.again => {
                if let Some(record) = before.filter(|record| record.ttl == request.ttl) {
                    records.write(name, record.clone());
                }
            }
            Self::LongExpiryCut if !grant.again => self.cut_expiry(records, name),
            Self::LongExpiryCutAgain if grant.again => self.cut_expiry(records, name),
            Self::TermsNotCounted => grant.terms = 1,
            Self::PredecessorForgotten => grant.predecessor = None,
            Self::PredecessorEndGuessed => {
                if let Some(predecessor) = &mut grant.predecessor {
                    predecessor.end = End::Released;
                }
            }
            Self::TokenRepeats if vacant => grant.token = before.expect("it was vacant").token,
            Self::TokenStartsAgain if vacant => grant.token = FencingToken::new(1).expect("1 is a token"),
            Self::TokenForgetsClock if !grant.again => {
                let last = before.map(|record| record.token);
                grant.token = FencingToken::successor(last, 0).expect("far from the last token");
            }
            Self::WishSurvivesTerm => {
                let asked = before.is_some_and(|record| record.asked);
                self.edit(records, name, |record| record.asked = asked);
            }
            Self::NotesAreCut => self.edit(records, name, |record| record.note = cut(&record.note, 255)),
            Self::NotesEndAtNul => self.edit(records, name, |record| {
                let end = record.note.as_str().find('\0').unwrap_or(usize::MAX);
                record.note = cut(&record.note, end);
            }),
            _ => {}
        }
        let (token, terms) = (grant.token, grant.terms);
        self.edit(records, name, |record| {
            (record.token, record.terms) = (token, terms)
        });
        Acquired::Granted(grant)
    }

    /// Ends a lease early that would last long.
    pub(super) fn cut_expiry(self, records: &mut Records, name: &LeaseName) {
        self.edit(records, name, |record| {
            record.expires_ms = record.expires_ms.min(record.renewed_ms + LASTS_MS_MAX);
        });
    }

    /// Changes a record that is there.
    pub(super) fn edit(self, records: &mut Records, name: &LeaseName, change: impl FnOnce(&mut Record)) {
        if let Some(Slot::Own(record)) = records.slots.get_mut(name) {
            change(record);
        }
    }
}

fn cut(note: &Note, bytes_max: usize) -> Note {
    let text = note.as_str();
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Note::new(&text[..end]).expect("shorter than a note that was valid")
}
