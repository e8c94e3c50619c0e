//! Taking a lease: a majority is taken, then a token above all that any of them knows is confirmed by a
//! majority.

use super::agree::Agreed;
use super::candidacy::{Given, Offer, Taken, confirm, count_mine, count_of, take};
use super::member::{Progress, is_in_doubt};
use super::rivals::{Order, Term};
use super::token::{Choice, Mine, choose};
use super::tries::Try;
use super::{Effect, Quorum, unsure};
use crate::connect::CONNECTION_TIME_MAX;
use crate::fault::{Deed, timed_out};
use crate::reply::misunderstood;
use crate::site::{REQUEST_TIME_MAX, subject};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Fault, Grant, StoreError};

/// How often one acquisition tries while others take and let go of the same lease.
const ROUNDS_MAX: u32 = 40;

/// For how long it does. A round in which members are silent takes as long again and more.
const ROUNDS_TIME_MAX: Duration = Duration::from_secs(2);

/// For how long all of it is waited for at most, like any request: the last round may take longer than those
/// before it.
const ACQUISITION_TIME_MAX: Duration = CONNECTION_TIME_MAX.saturating_add(REQUEST_TIME_MAX);

/// Pause between two tries, times 1 to 4 by chance.
const PAUSE: Duration = Duration::from_millis(8);

/// How long the first member is waited for before the others are asked without it.
const FIRST_TIME_MAX: Duration = Duration::from_millis(300);

/// What a round came to.
pub(super) enum Round {
    Decided(Result<Acquired, StoreError>),
    /// Others are in the middle of it.
    Again,
}

impl Quorum {
    /// Decides an acquisition.
    pub(super) async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        let mut trying = Try::begin(self, request);
        if trying.is_over {
            return Ok(Acquired::Superseded);
        }
        let rounds = async {
            self.record().await?;
            self.rounds(request, &mut trying).await
        };
        let late = |_| {
            Err(timed_out(
                Deed::Write,
                &subject(&request.name),
                &self.place,
                ACQUISITION_TIME_MAX,
            ))
        };
        tokio::time::timeout(ACQUISITION_TIME_MAX, rounds)
            .await
            .unwrap_or_else(late)
    }

    async fn rounds(&self, request: &Acquire, trying: &mut Try) -> Result<Acquired, StoreError> {
        let began = Instant::now();
        for round in 0..ROUNDS_MAX {
            if began.elapsed() > ROUNDS_TIME_MAX {
                break;
            }
            match self.round(request, round, trying).await {
                Round::Decided(answer) => {
                    if !matches!(answer, Ok(Acquired::Granted(_)) | Err(_)) {
                        let _lost = self.rivals.is_not_held(&request.name);
                    }
                    return answer.map_err(|error| trying.effect.told_in(error));
                }
                Round::Again => self.rivals.are_met(),
            }
            let chance =
                u32::try_from(request.candidate.incarnation.bits() >> (round % 32 * 4) & 3).unwrap_or(0);
            tokio::time::sleep(PAUSE * (1 + chance)).await;
        }
        Err(StoreError::unknown(
            Fault::Busy,
            format!(
                "{} at the quorum {}: its members do not agree who holds it; ask again",
                subject(&request.name),
                self.place
            ),
        ))
    }

    async fn round(&self, request: &Acquire, round: u32, trying: &mut Try) -> Round {
        let (order, guess) = match round {
            0 => (
                self.rivals.order_at_first(&request.name),
                self.guess(request, trying),
            ),
            _ => (self.rivals.order(), None),
        };
        if order == Order::AllAtOnce
            && let Some(guess) = guess
        {
            return self.take_at_once(request, guess, trying).await;
        }
        let first = match order {
            Order::AllAtOnce => None,
            // None where all were silent: whoever asks may not have the time for one that still is, and would
            // never hear the rest.
            Order::OneFirst => (0..self.members.len()).find(|place| !self.members[*place].is_silent()),
        };
        let mut taken = Vec::new();
        let mut errors = Vec::new();
        let mut others: Vec<usize> = (0..self.members.len()).collect();
        if let Some(first) = first {
            let member = &self.members[first];
            let asking = take(Arc::clone(&member.site), request.clone());
            trying.asks([first]);
            let answer = member.within(Deed::Write, FIRST_TIME_MAX, asking).await;
            trying.hears(match &answer {
                Ok(answer) => Some((first, matches!(answer, Taken::Mine(_)))),
                Err(_) => is_in_doubt(&answer).then_some((first, true)),
            });
            // One that is late is asked once more with the others: it may be about to answer, and without it
            // they may be too few.
            if !is_in_doubt(&answer) {
                others.retain(|place| *place != first);
            }
            match answer {
                Ok(Taken::Held(sighting)) if round % 4 != 3 => match self.judge_held(request, trying).await {
                    Some(round) => return round,
                    None => taken.push((first, Taken::Held(sighting))),
                },
                Ok(answer) => taken.push((first, answer)),
                Err(error) => errors.push(error),
            }
        }
        let before = (count_mine(&taken), taken.len());
        trying.asks(others.iter().copied());
        let rest = self
            .ask(
                others.iter().copied(),
                Deed::Write,
                |site| take(site, request.clone()),
                |answers, waiting| {
                    let mine = before.0 + count_mine(answers);
                    let differing = before.1 + answers.len() - mine;
                    // All are waited for a little: what one of them has confirmed before, for this attempt,
                    // is its token.
                    Progress::decided_if(self.is_settled(mine, differing, waiting))
                },
            )
            .await;
        let answered = rest
            .answers
            .iter()
            .map(|(place, answer)| (*place, matches!(answer, Taken::Mine(_))));
        trying.hears(answered.chain(rest.unheard.iter().map(|place| (*place, true))));
        taken.extend(rest.answers);
        errors.extend(rest.errors);
        trying.effect.add(rest.late + unsure(&errors));
        self.weigh(request, order, taken, &errors, trying).await
    }

    /// The first member is somebody else's: whoever has a majority holds the lease, and nothing was changed.
    /// Nothing where that is the process that asks, or members may have confirmed a token for it: what
    /// becomes of that is for the others to say.
    async fn judge_held(&self, request: &Acquire, trying: &Try) -> Option<Round> {
        self.rivals.are_met();
        Some(match self.look(&request.name).await {
            Ok(Agreed::Term(lease)) if !lease.remaining.is_zero() => {
                if lease.holder.incarnation == request.candidate.incarnation || trying.has_tokens() {
                    return None;
                }
                Round::Decided(Ok(Acquired::Held(lease)))
            }
            // One of the two may be what the process that asks was granted.
            Ok(Agreed::Open(_)) => {
                Round::Decided(Err(Effect::Possible.told_in(self.not_agreed(&request.name))))
            }
            Ok(Agreed::Term(_) | Agreed::Never) => Round::Again,
            Err(error) => Round::Decided(Err(error)),
        })
    }

    /// Gives what was taken its token: above all that a majority knows, or the one that the attempt was given
    /// before.
    ///
    /// It is used only when a majority has confirmed it. Each of them knew lower ones only, and any earlier
    /// term has one of them in its own majority: so it is above every earlier term's, whichever was chosen.
    pub(super) async fn confirm(
        &self,
        request: &Acquire,
        order: Order,
        mine: &[(usize, Mine)],
        trying: &mut Try,
    ) -> Round {
        let Some(choice) = choose(mine, self.majority()) else {
            return Round::Again;
        };
        let confirmed = mine.iter().filter(|(_, mine)| mine.is_confirmed());
        confirmed
            .filter_map(|(_, mine)| mine.token)
            .for_each(|token| trying.confirms(token));
        if let Some(answer) = self.comes_to_nothing(&choice, mine.len(), trying) {
            self.undo(mine, trying).await;
            return Round::Decided(Ok(answer));
        }
        let Some(mut offer) = choice.offer() else {
            return Round::Decided(Err(misunderstood()));
        };
        let (wanted, mut again) = (offer.token, choice.again);
        // Whoever is not heard from now on may have confirmed it, and a majority with it.
        trying.effect = Effect::Possible;
        trying.confirms(wanted);
        let mut given = Vec::new();
        let mut places: Vec<usize> = mine.iter().map(|(place, _)| *place).collect();
        if order == Order::OneFirst {
            // One of them decides between duplicates of this very request.
            let first = choice.first;
            places.retain(|place| *place != first);
            let site = Arc::clone(&self.members[first].site);
            let asking = confirm(site, request.clone(), offer);
            match self.members[first]
                .within(Deed::Write, FIRST_TIME_MAX, asking)
                .await
            {
                Ok(Some(answer)) => {
                    trying.confirms(answer.token);
                    // Where a duplicate was faster, its token is this attempt's, unless it is too low for the
                    // others.
                    if answer.token == wanted || Some(answer.token) > choice.highest {
                        let mut firsts = mine.iter().filter(|(place, _)| *place == first);
                        offer = Offer {
                            token: answer.token,
                            terms: answer.terms,
                            follows: firsts.find_map(|(_, mine)| mine.guessed_from(answer.token)),
                        };
                        again |= !answer.is_new;
                    }
                    given.push(answer);
                }
                Ok(None) => return Round::Again,
                // As when it was taken.
                Err(_unheard) => places.push(first),
            }
        }
        // Also those that have not answered yet: what was sent to them comes before this.
        places.extend((0..self.members.len()).filter(|place| !mine.iter().any(|(mine, _)| mine == place)));
        let before = count_of(&given, offer.token);
        let poll = self
            .ask(
                places,
                Deed::Write,
                |site| confirm(site, request.clone(), offer),
                |answers, waiting| {
                    let given = answers.iter().filter_map(|(_, given)| given.as_ref());
                    let confirmed = before + count_of(given, offer.token);
                    let is_settled =
                        confirmed >= self.majority() || confirmed + waiting.all < self.majority();
                    Progress::decided_if(is_settled)
                },
            )
            .await;
        given.extend(poll.answers.into_iter().filter_map(|(_, given)| given));
        given.iter().for_each(|given| trying.confirms(given.token));
        // A duplicate's is this attempt's where a majority has it.
        let by_majority = |one: &&Given| count_of(&given, one.token) >= self.majority();
        let Some(decided) = given.iter().find(by_majority) else {
            if poll.errors.is_empty() {
                // Where members answered, what was taken in them has run out meanwhile: it is taken anew.
                return Round::Again;
            }
            let agreed = count_of(&given, offer.token);
            return Round::Decided(match agreed < given.len() && given.len() >= self.majority() {
                true => Ok(trying.split()),
                false => Err(self.unconfirmed(&subject(&request.name), agreed, &poll.errors, trying.effect)),
            });
        };
        if decided.token != offer.token {
            (offer.terms, again) = (decided.terms, true);
        }
        let grant = Grant {
            token: decided.token,
            ttl: request.ttl,
            terms: offer.terms,
            again,
            predecessor: None,
        };
        self.granted(request, mine, grant, trying)
    }

    /// Where no majority can confirm what was chosen of what so many members know, or it is a guess that too
    /// few of these can.
    fn comes_to_nothing(&self, choice: &Choice, heard: usize, trying: &mut Try) -> Option<Acquired> {
        if choice.able + self.members.len() - heard < self.majority() {
            return Some(trying.split());
        }
        // Those that were heard would refuse it each time that it is repeated, and keep everybody else out
        // meanwhile, for as long as the others are away.
        match choice.follows.is_some() && choice.able < self.majority() {
            true => trying.gives_way(),
            false => None,
        }
    }

    /// What these members know of the term before is the grant's, too.
    pub(super) fn granted(
        &self,
        request: &Acquire,
        mine: &[(usize, Mine)],
        mut grant: Grant,
        trying: &mut Try,
    ) -> Round {
        let mine = || mine.iter().map(|(_, mine)| mine);
        // What a member knows of later terms that were none comes after this one, not before.
        let last = mine()
            .filter(|mine| !mine.is_confirmed() && mine.token < Some(grant.token))
            .max_by_key(|mine| mine.token);
        grant.predecessor = last.and_then(|mine| mine.predecessor.clone());
        self.rivals.is_held(Term {
            name: request.name.clone(),
            incarnation: request.candidate.incarnation,
            attempt: request.attempt,
            token: grant.token,
            terms: grant.terms,
        });
        trying.is_granted(grant.token);
        Round::Decided(Ok(Acquired::Granted(grant)))
    }
}
