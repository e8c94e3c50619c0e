use super::super::records::{Records, Slot, unreadable};
use crate::model::Defect;
use tenure_core::{
    Acquire, Ask, Asked, Attempt, Candidate, CandidateId, Change, Fault, FencingToken, Note, Release,
    Released, Renew, Renewed, StoreError, WatchEvent, Wish,
};

/// Requests of a batch that are really done.
const DONE_MAX: usize = 100;

impl Defect {
    /// The rule for extending leases, broken.
    pub(super) fn renew_all(
        self,
        records: &mut Records,
        requests: &[Renew],
        now_ms: u64,
    ) -> Vec<Result<Renewed, StoreError>> {
        let mut answers = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            let mut request = request.clone();
            if self == Self::BatchHasOneTtl {
                request.ttl = requests[0].ttl;
            }
            if self == Self::BatchCutAtHundred && number >= DONE_MAX {
                let (ttl, wish) = (request.ttl, Wish::Nothing);
                answers.push(Ok(Renewed::Extended { ttl, wish }));
            } else {
                let rule = self.in_batch(requests.len(), number);
                answers.push(rule.renew(records, request, now_ms));
            }
        }
        self.spoil_batch(&mut answers, |answer| matches!(answer, Renewed::Lost(_)));
        answers
    }

    /// The rule for giving leases back, broken.
    pub(super) fn release_all(
        self,
        records: &mut Records,
        requests: &[Release],
        now_ms: u64,
    ) -> Vec<Result<Released, StoreError>> {
        let mut answers = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            if self == Self::BatchCutAtHundred && number >= DONE_MAX {
                answers.push(Ok(Released::Vacated));
            } else {
                let rule = self.in_batch(requests.len(), number);
                answers.push(rule.release(records, request.clone(), now_ms));
            }
        }
        self.spoil_batch(&mut answers, |answer| matches!(answer, Released::NotYours(_)));
        answers
    }

    /// The rule for one request, broken where it is one of several, or has a hundred before it.
    fn in_batch(self, count: usize, number: usize) -> Self {
        match self {
            Self::BatchTailIgnoresAttempt if number >= DONE_MAX => Self::RenewIgnoresAttempt,
            Self::BatchTailReleaseIgnoresAttempt if number >= DONE_MAX => Self::ReleaseIgnoresAttempt,
            alone if count == 1 => alone,
            Self::BatchRevivesExpired => Self::RenewRevivesExpired,
            Self::BatchRevivesReleased => Self::RenewRevivesReleased,
            Self::BatchIgnoresIncarnation => Self::RenewIgnoresIncarnation,
            Self::BatchIgnoresToken => Self::RenewIgnoresToken,
            Self::BatchIgnoresAttempt => Self::RenewIgnoresAttempt,
            Self::BatchMakesRecord => Self::RenewMakesRecord,
            Self::BatchWritesLost => Self::LostRenewalWrites,
            Self::BatchCutsExpiry => Self::LongRenewalCut,
            Self::BatchReleaseIgnoresIncarnation => Self::ReleaseIgnoresIncarnation,
            Self::BatchReleaseIgnoresToken => Self::ReleaseIgnoresToken,
            Self::BatchReleaseIgnoresAttempt => Self::ReleaseIgnoresAttempt,
            Self::BatchReleaseForgetsAttempt => Self::ReleaseForgetsAttempt,
            Self::BatchReleaseDeletesRecord => Self::ReleaseDeletesRecord,
            Self::BatchReleaseOnlyOnce => Self::ReleaseOnlyOnce,
            Self::BatchReleaseRefusesExpired => Self::ReleaseRefusesExpired,
            Self::BatchReleaseTakesAnyVacancy => Self::ReleaseTakesAnyVacancy,
            other => other,
        }
    }

    fn spoil_batch<T: Clone>(self, answers: &mut Vec<Result<T, StoreError>>, is_lost: impl Fn(&T) -> bool) {
        match self {
            Self::EmptyBatchIsAnswered if answers.is_empty() => {
                let message = "an empty batch";
                answers.push(Err(StoreError::not_applied(Fault::Invalid, message)));
            }
            Self::BatchShifted if !answers.is_empty() => answers.rotate_right(1),
            Self::BatchPartsChangePlaces if answers.len() > DONE_MAX => answers.rotate_left(DONE_MAX),
            Self::BatchPartsShareVerdicts => {
                for place in DONE_MAX..answers.len() {
                    answers[place] = answers[place - DONE_MAX].clone();
                }
            }
            Self::BatchDropsUnreadable => answers.retain(Result::is_ok),
            Self::BatchStopsAtFirstLoss => {
                let lost = |answer: &Result<T, StoreError>| answer.as_ref().is_ok_and(&is_lost);
                if let Some(first) = answers.iter().position(lost) {
                    let verdict = answers[first].clone();
                    answers[first..].fill(verdict);
                }
            }
            _ => {}
        }
    }

    fn renew(self, records: &mut Records, mut request: Renew, now_ms: u64) -> Result<Renewed, StoreError> {
        let Some(before) = records.read(&request.name)?.cloned() else {
            if self == Self::RenewMakesRecord {
                records.acquire(&revived(&request), now_ms)?;
            }
            return Ok(Renewed::Lost(None));
        };
        let term_is_mine = (before.holder.incarnation, before.token, before.attempt)
            == (request.incarnation, request.token, request.attempt);
        match self {
            Self::FarOffExpiryIsNotRenewed if before.lasts_too_long(now_ms) => {
                return Err(unreadable(request.name.as_str()));
            }
            Self::RenewRevivesExpired if term_is_mine && before.released_ms.is_none() => {
                self.edit(records, &request.name, |record| record.expires_ms = now_ms + 1);
            }
            Self::RenewRevivesReleased if term_is_mine => {
                self.edit(records, &request.name, |record| record.released_ms = None);
            }
            Self::RenewIgnoresIncarnation => request.incarnation = before.holder.incarnation,
            Self::RenewIgnoresToken => request.token = before.token,
            Self::RenewIgnoresAttempt => request.attempt = before.attempt,
            _ => {}
        }
        let mut answer = records.renew(&request, now_ms)?;
        self.spoil_renewal(records, &request, &before, now_ms, &mut answer);
        Ok(answer)
    }

    fn spoil_renewal(
        self,
        records: &mut Records,
        request: &Renew,
        before: &super::super::Record,
        now_ms: u64,
        answer: &mut Renewed,
    ) {
        let name = &request.name;
        match (answer, self) {
            (Renewed::Extended { .. }, Self::RenewDoesNotExtend) => records.write(name, before.clone()),
            (Renewed::Extended { .. }, Self::LongRenewalCut) => self.cut_expiry(records, name),
            (Renewed::Extended { .. }, Self::RenewOnlyLengthens) => self.edit(records, name, |record| {
                record.expires_ms = record.expires_ms.max(before.expires_ms);
            }),
            (Renewed::Extended { .. }, Self::FarOffExpiryStays) if before.lasts_too_long(now_ms) => {
                self.edit(records, name, |record| record.expires_ms = before.expires_ms);
            }
            (Renewed::Extended { .. }, Self::RenewRaisesToken) => self.edit(records, name, |record| {
                record.token = FencingToken::successor(Some(record.token), 0).expect("far from the last");
            }),
            (Renewed::Extended { wish, .. }, Self::WishNotTold) => *wish = Wish::Nothing,
            (Renewed::Extended { .. }, Self::WishToldOnce) => {
                self.edit(records, name, |record| record.asked = false);
            }
            (Renewed::Extended { .. }, Self::WatchTellsRenewals) => {
                records.events.push(WatchEvent::Changed {
                    name: name.clone(),
                    change: Change::Taken,
                    token: Some(request.token),
                })
            }
            (Renewed::Lost(now), Self::LostSaysNothing) => *now = None,
            (Renewed::Lost(_), Self::LostRenewalWrites) => {
                self.edit(records, name, |record| record.renewed_ms = now_ms);
            }
            _ => {}
        }
    }

    fn release(
        self,
        records: &mut Records,
        mut request: Release,
        now_ms: u64,
    ) -> Result<Released, StoreError> {
        let name = request.name.clone();
        if self == Self::UnreadableRemoved && matches!(records.slots.get(&name), Some(Slot::Foreign(_))) {
            records.purge(&name);
        }
        let Some(before) = records.read(&name)?.cloned() else {
            if self == Self::ReleaseMakesRecord {
                records.slots.insert(name, Slot::Foreign("released".to_owned()));
            }
            return Ok(Released::NotYours(None));
        };
        let vacant = before.released_ms.is_some();
        let expired = !vacant && !before.is_held(now_ms);
        let refuse = || Ok(Released::NotYours(Some(Box::new(before.lease(&name, now_ms)))));
        match self {
            Self::ReleaseIgnoresIncarnation => request.incarnation = before.holder.incarnation,
            Self::ReleaseIgnoresToken => request.token = before.token,
            Self::ReleaseIgnoresAttempt => request.attempt = before.attempt,
            Self::ReleaseIgnoresTerm => (request.token, request.attempt) = (before.token, before.attempt),
            Self::FarOffExpiryIsNotReleased if before.lasts_too_long(now_ms) => {
                return Err(unreadable(name.as_str()));
            }
            Self::ReleaseOnlyOnce if vacant => return refuse(),
            Self::ReleaseRefusesExpired if expired => return refuse(),
            Self::ReleaseTakesAnyVacancy if vacant => return Ok(Released::Vacated),
            _ => {}
        }
        let answer = records.release(&request, now_ms)?;
        if answer == Released::Vacated {
            match self {
                Self::ReleaseDeletesRecord => drop(records.slots.remove(&name)),
                Self::ReleaseForgetsAttempt => {
                    self.edit(records, &name, |record| record.attempt = Attempt::FIRST);
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// The rule for leaving a wish, broken.
    pub(super) fn ask(self, records: &mut Records, request: &Ask, now_ms: u64) -> Result<Asked, StoreError> {
        let mut request = request.clone();
        let Some(before) = records.read(&request.name)?.cloned() else {
            if self == Self::AskMakesRecord {
                let slot = Slot::Foreign("asked".to_owned());
                records.slots.insert(request.name.clone(), slot);
            }
            return Ok(Asked::NotHeld);
        };
        match self {
            Self::AskIgnoresToken => request.token = before.token,
            Self::AskTakesVacant if before.released_ms.is_some() && before.token == request.token => {
                self.edit(records, &request.name, |record| record.asked = true);
                return Ok(Asked::Noted);
            }
            Self::AskTakesExpired if before.released_ms.is_none() && before.token == request.token => {
                self.edit(records, &request.name, |record| record.asked = true);
                return Ok(Asked::Noted);
            }
            _ => {}
        }
        let answer = records.ask(&request, now_ms)?;
        if answer == Asked::Noted && self == Self::AskExtends {
            self.edit(records, &request.name, |record| {
                record.renewed_ms = now_ms;
                record.expires_ms = now_ms + record.ttl.as_millis();
            });
        }
        Ok(answer)
    }
}

/// What a renewal that inserts would have inserted.
fn revived(request: &Renew) -> Acquire {
    Acquire {
        name: request.name.clone(),
        candidate: Candidate {
            id: CandidateId::new("revived").expect("a valid id"),
            incarnation: request.incarnation,
        },
        attempt: request.attempt,
        ttl: request.ttl,
        note: Note::default(),
    }
}
