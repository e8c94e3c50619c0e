//! Extending and giving back: each member decides for itself, a majority counts.

use super::member::{Poll, Progress, Waiting};
use super::rivals::Term;
use super::{Effect, Quorum};
use crate::fault::Deed;
use crate::site::subject;
use tenure_core::{Ask, Asked, Lease, Release, Released, Renew, Renewed, StoreError, Wish};

impl Quorum {
    /// Extends leases: one request to each member, however many they are.
    pub(super) async fn renew(&self, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        let asked = requests.to_vec();
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Write,
                |site| {
                    let asked = asked.clone();
                    async move { whole(site.renew(&asked).await) }
                },
                |answers, waiting| {
                    // All are waited for a little: who answers that it has lost a term is to have it back.
                    let is_settled = |place| self.is_renewal_settled(answers, place, waiting);
                    // But one that only silent members could decide holds up none of its neighbours: who asks
                    // may not have the time for that, and would hear of none of them, each time.
                    let is_decided = match waiting.lively {
                        0 => (0..requests.len()).any(is_settled),
                        _ => (0..requests.len()).all(is_settled),
                    };
                    Progress::decided_if(is_decided)
                },
            )
            .await;
        let verdict = |(place, request): (usize, &Renew)| {
            let answers = poll.answers.iter().map(|(_, answers)| answers[place].clone());
            self.renewed(request, answers.collect(), &poll)
        };
        let verdicts: Vec<_> = requests.iter().enumerate().map(verdict).collect();
        for (request, verdict) in requests.iter().zip(&verdicts) {
            if let Ok(Renewed::Lost(_)) = verdict {
                self.tries
                    .believe_no_longer(&request.name, request.incarnation, request.token);
            }
        }
        self.bring(requests, &poll.answers, &verdicts);
        verdicts
    }

    /// Of the request at this place.
    fn is_renewal_settled(&self, answers: &[(usize, Each<Renewed>)], place: usize, waiting: Waiting) -> bool {
        let (mut extended, mut lost) = (0, 0);
        for (_, answers) in answers {
            match answers[place] {
                Ok(Renewed::Extended { .. }) => extended += 1,
                Ok(Renewed::Lost(_)) => lost += 1,
                Err(_) => {}
            }
        }
        self.is_settled(extended, lost, waiting)
    }

    fn renewed(
        &self,
        request: &Renew,
        answers: Each<Renewed>,
        poll: &Poll<Each<Renewed>>,
    ) -> Result<Renewed, StoreError> {
        let (mut extended, mut asked, mut lost, mut errors) = (0, false, Vec::new(), poll.errors.clone());
        for answer in answers {
            match answer {
                Ok(Renewed::Extended { wish, .. }) => {
                    extended += 1;
                    asked |= wish == Wish::StepDown;
                }
                Ok(Renewed::Lost(now)) => lost.push(now),
                Err(error) => errors.push(error),
            }
        }
        if extended >= self.majority() {
            return Ok(Renewed::Extended {
                ttl: request.ttl,
                wish: if asked { Wish::StepDown } else { Wish::Nothing },
            });
        }
        // So many that no majority can still be the holder's.
        if self.blocks(lost.len()) {
            return Ok(Renewed::Lost(latest(lost)));
        }
        let effect = Effect::of(extended + poll.late);
        Err(self.too_few(
            &subject(&request.name),
            extended,
            "have extended it",
            &errors,
            effect,
        ))
    }

    /// Gives leases back.
    pub(super) async fn release(&self, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        for request in requests {
            self.tries
                .believe_no_longer(&request.name, request.incarnation, request.token);
        }
        let held: Vec<Option<Term>> = requests
            .iter()
            .map(|request| self.rivals.is_not_held(&request.name))
            .collect();
        let asked = requests.to_vec();
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Write,
                |site| {
                    let asked = asked.clone();
                    async move { whole(site.release(&asked).await) }
                },
                |answers, _| {
                    let is_vacated = |place| self.is_vacated(answers, place);
                    let is_enough = answers.len() >= self.majority();
                    Progress::complete_if(
                        (0..requests.len()).all(is_vacated),
                        Progress::decided_if(is_enough),
                    )
                },
            )
            .await;
        let verdict = |(place, request): (usize, &Release)| {
            let answers = poll.answers.iter().map(|(_, answers)| answers[place].clone());
            self.released(request, answers.collect(), &poll)
        };
        let verdicts: Vec<_> = requests.iter().enumerate().map(verdict).collect();
        for ((request, held), verdict) in requests.iter().zip(held).zip(&verdicts) {
            if let (Some(term), Ok(Released::Vacated)) = (held, verdict)
                && term.token == request.token
            {
                self.rivals.is_given_back(term);
            }
        }
        verdicts
    }

    /// Of the request at this place, whether a majority has given back what it names.
    fn is_vacated(&self, answers: &[(usize, Each<Released>)], place: usize) -> bool {
        let vacated = answers
            .iter()
            .filter(|(_, answers)| matches!(answers[place], Ok(Released::Vacated)));
        vacated.count() >= self.majority()
    }

    fn released(
        &self,
        request: &Release,
        answers: Each<Released>,
        poll: &Poll<Each<Released>>,
    ) -> Result<Released, StoreError> {
        let (mut vacated, mut others, mut errors) = (0, Vec::new(), poll.errors.clone());
        for answer in answers {
            match answer {
                Ok(Released::Vacated) => vacated += 1,
                Ok(Released::NotYours(now)) => others.push(now),
                Err(error) => errors.push(error),
            }
        }
        if vacated >= self.majority() {
            return Ok(Released::Vacated);
        }
        if vacated + others.len() < self.majority() {
            let effect = Effect::of(vacated + poll.late);
            let answered = vacated + others.len();
            return Err(self.undecided(&subject(&request.name), answered, &errors, effect));
        }
        let later = latest(others);
        // It is nobody's in a majority. A member that has forgotten it, or has an older term, takes nothing
        // from that.
        match vacated > 0 && later.as_ref().is_none_or(|now| now.token <= request.token) {
            true => Ok(Released::Vacated),
            false => Ok(Released::NotYours(later)),
        }
    }

    /// Leaves the wish.
    pub(super) async fn wish(&self, request: &Ask) -> Result<Asked, StoreError> {
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Write,
                |site| {
                    let request = request.clone();
                    async move { site.ask(&request).await }
                },
                |answers, waiting| {
                    let noted = noted_in(answers);
                    Progress::decided_if(self.is_settled(noted, answers.len() - noted, waiting))
                },
            )
            .await;
        let noted = noted_in(&poll.answers);
        if noted >= self.majority() {
            return Ok(Asked::Noted);
        }
        if self.blocks(poll.answers.len() - noted) {
            return Ok(Asked::NotHeld);
        }
        let effect = Effect::of(noted + poll.late);
        Err(self.too_few(
            &subject(&request.name),
            noted,
            "have noted it",
            &poll.errors,
            effect,
        ))
    }
}

/// What one member answers to several requests.
type Each<T> = Vec<Result<T, StoreError>>;

fn noted_in(answers: &[(usize, Asked)]) -> usize {
    let noted = answers.iter().filter(|(_, answer)| *answer == Asked::Noted);
    noted.count()
}

/// A member that could not be asked at all has given the same error for each request: then it has not
/// answered.
fn whole<T>(answers: Each<T>) -> Result<Each<T>, StoreError> {
    match answers.first() {
        Some(Err(error)) if !error.fault.is_misconfiguration() => {
            let error = error.clone();
            match answers.iter().all(Result::is_err) {
                true => Err(error),
                false => Ok(answers),
            }
        }
        _ => Ok(answers),
    }
}

/// The record of the latest term among these.
fn latest(records: Vec<Option<Box<Lease>>>) -> Option<Box<Lease>> {
    records
        .into_iter()
        .flatten()
        .max_by_key(|lease| (lease.token, lease.released))
}
