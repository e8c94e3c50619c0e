//! Taking a lease: a majority is taken, then a token above all that any of them knows is confirmed by a majority.

use super::member::is_in_doubt;
use super::remains::Try;
use super::token::{Mine, choose};
use super::{Effect, Quorum, unsure};
use crate::fault::Deed;
use crate::read::Sighting;
use crate::record::{decode, is_confirmed, predecessor};
use crate::reply::misunderstood;
use crate::script::{Arguments, CONFIRM, TAKE};
use crate::site::{Site, subject};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, LeaseName, StoreError};

/// How often one acquisition tries while others take and let go of the same lease.
const ROUNDS_MAX: u32 = 40;

/// Pause between two tries, times 1 to 4 by chance.
const PAUSE: Duration = Duration::from_millis(8);

/// How long the first member is waited for before the others are asked without it.
const FIRST_TIME_MAX: Duration = Duration::from_millis(300);

/// What one member says to a candidate.
enum Taken {
    /// The record is the candidate's, here.
    Mine(Mine),
    /// It is somebody else's.
    Held(Sighting),
    Superseded,
    Exhausted,
    Unreadable(StoreError),
}

/// What a round came to.
enum Round {
    Decided(Result<Acquired, StoreError>),
    /// Others are in the middle of it.
    Again,
}

impl Quorum {
    /// Decides an acquisition.
    pub(super) async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        let mut trying = Try::begin(self, request);
        for round in 0..ROUNDS_MAX {
            match self.round(request, round, &mut trying).await {
                Round::Decided(answer) => return answer.map_err(|error| trying.effect.told_in(error)),
                Round::Again => {}
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
        // One member first: of those who ask at once, it lets one through, and the others need not split the rest. None
        // where all were silent: whoever asks may not have the time for one that still is, and would never hear the rest.
        let first = (0..self.members.len()).find(|place| !self.members[*place].is_silent());
        let mut taken = Vec::new();
        let mut errors = Vec::new();
        if let Some(first) = first {
            let member = &self.members[first];
            let asking = take(Arc::clone(&member.site), request.clone());
            trying.asks([first]);
            let answer = member.within(Deed::Write, FIRST_TIME_MAX, asking).await;
            trying.hears(match &answer {
                Ok(answer) => Some((first, matches!(answer, Taken::Mine(_)))),
                Err(_) => is_in_doubt(&answer).then_some((first, true)),
            });
            match answer {
                Ok(Taken::Held(sighting)) if round % 4 != 3 => match self.judge_held(request).await {
                    Some(round) => return round,
                    None => taken.push((first, Taken::Held(sighting))),
                },
                Ok(answer) => taken.push((first, answer)),
                Err(error) => errors.push(error),
            }
        }
        let others: Vec<usize> = (0..self.members.len())
            .filter(|place| Some(*place) != first)
            .collect();
        let is_mine = |answers: &[(usize, Taken)]| {
            let mine = answers
                .iter()
                .filter(|(_, answer)| matches!(answer, Taken::Mine(_)));
            mine.count()
        };
        let before = (is_mine(&taken), taken.len());
        trying.asks(others.iter().copied());
        let rest = self
            .ask(
                others.iter().copied(),
                Deed::Write,
                |site| take(site, request.clone()),
                |answers, waiting| {
                    let mine = before.0 + is_mine(answers);
                    let differing = before.1 + answers.len() - mine;
                    self.is_settled(mine, differing, waiting)
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
        self.weigh(request, taken, &errors, trying).await
    }

    /// The first member is somebody else's: whoever has a majority holds the lease, and nothing was changed. Nothing where
    /// that is the process that asks: what it holds is for the others to say.
    async fn judge_held(&self, request: &Acquire) -> Option<Round> {
        Some(match self.get(&request.name).await {
            Ok(Some(lease)) if !lease.remaining.is_zero() => {
                if lease.holder.incarnation == request.candidate.incarnation {
                    return None;
                }
                Round::Decided(Ok(Acquired::Held(lease)))
            }
            Ok(_) => Round::Again,
            Err(error) => Round::Decided(Err(error)),
        })
    }

    async fn weigh(
        &self,
        request: &Acquire,
        taken: Vec<(usize, Taken)>,
        errors: &[StoreError],
        trying: &mut Try,
    ) -> Round {
        let answered = taken.len();
        let (mut mine, mut held, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let (mut superseded, mut exhausted) = (false, false);
        for (place, answer) in taken {
            match answer {
                Taken::Mine(answer) => mine.push((place, answer)),
                Taken::Held(sighting) => held.push(sighting),
                Taken::Superseded => superseded = true,
                Taken::Exhausted => exhausted = true,
                Taken::Unreadable(error) => unreadable.push(error),
            }
        }
        if !superseded && !exhausted && mine.len() >= self.majority() {
            return self.confirm(request, &mine, trying).await;
        }
        trying
            .effect
            .add(mine.iter().filter(|(_, mine)| mine.again).count());
        self.undo(&mine, trying).await;
        if superseded {
            return Round::Decided(Ok(Acquired::Superseded));
        }
        if exhausted {
            return Round::Decided(Err(StoreError::not_applied(
                Fault::Internal,
                format!(
                    "{}: its tokens are used up at 2^63 - 1; use another name",
                    subject(&request.name)
                ),
            )));
        }
        if self.blocks(unreadable.len()) {
            return Round::Decided(Err(unreadable.remove(0)));
        }
        if let Some(lease) = self.agreed(&held).filter(|lease| !lease.remaining.is_zero()) {
            return Round::Decided(Ok(Acquired::Held(lease)));
        }
        if answered < self.majority() {
            return Round::Decided(Err(self.undecided(
                &subject(&request.name),
                answered,
                errors,
                trying.effect,
            )));
        }
        Round::Again
    }

    /// Gives what was taken its token: above all that a majority knows, or the one that the attempt was given before.
    ///
    /// It is used only when a majority has confirmed it. Each of them knew lower ones only, and any earlier term has one
    /// of them in its own majority: so it is above every earlier term's, whichever was chosen.
    async fn confirm(&self, request: &Acquire, mine: &[(usize, Mine)], trying: &mut Try) -> Round {
        let Some(choice) = choose(mine) else {
            return Round::Again;
        };
        let confirmed = mine.iter().filter(|(_, mine)| mine.again);
        confirmed
            .filter_map(|(_, mine)| mine.token)
            .for_each(|token| trying.confirms(token));
        if choice.able + self.members.len() - mine.len() < self.majority() {
            self.undo(mine, trying).await;
            return Round::Decided(Ok(trying.split()));
        }
        let Some(wanted) = choice.token else {
            return Round::Decided(Err(misunderstood()));
        };
        let (mut token, mut terms, mut again) = (wanted, choice.terms, choice.again);
        // Whoever is not heard from now on may have confirmed it, and a majority with it.
        trying.effect = Effect::Possible;
        trying.confirms(wanted);
        // One of them decides between duplicates of this very request.
        let first = choice.first;
        let site = Arc::clone(&self.members[first].site);
        let asking = confirm(site, request.clone(), wanted, terms);
        let (mut agreed, mut differing) = (0, 0);
        match self.members[first]
            .within(Deed::Write, FIRST_TIME_MAX, asking)
            .await
        {
            // Where a duplicate was faster, its token is this attempt's, unless it is too low for the others.
            Ok(Some((given, count, new))) if given == wanted || Some(given) > choice.highest => {
                (token, terms, again) = (given, count, again || !new);
                trying.confirms(token);
                agreed += 1;
            }
            Ok(Some((older, ..))) => {
                trying.confirms(older);
                differing += 1;
            }
            Ok(None) => return Round::Again,
            Err(_unheard) => {}
        }
        let rest = mine
            .iter()
            .map(|(place, _)| *place)
            .filter(|place| *place != first);
        // Also those that have not answered yet: what was sent to them comes before this.
        let late = (0..self.members.len()).filter(|place| !mine.iter().any(|(mine, _)| mine == place));
        let places: Vec<usize> = rest.chain(late).collect();
        let poll = self
            .ask(
                places,
                Deed::Write,
                |site| confirm(site, request.clone(), token, terms),
                |answers, waiting| {
                    let confirmed = agreed
                        + answers
                            .iter()
                            .filter(|(_, given)| is_given(*given, token))
                            .count();
                    confirmed >= self.majority() || confirmed + waiting < self.majority()
                },
            )
            .await;
        for (given, ..) in poll.answers.into_iter().filter_map(|(_, given)| given) {
            trying.confirms(given);
            match given == token {
                true => agreed += 1,
                false => differing += 1,
            }
        }
        if agreed < self.majority() {
            if poll.errors.is_empty() {
                // Where members answered, what was taken in them has run out meanwhile: it is taken anew.
                return Round::Again;
            }
            return Round::Decided(match differing > 0 && agreed + differing >= self.majority() {
                true => Ok(trying.split()),
                false => Err(self.undecided(&subject(&request.name), agreed, &poll.errors, trying.effect)),
            });
        }
        // What a member knows of later terms that were none comes after this one, not before.
        let before = mine.iter().map(|(_, mine)| mine).filter(|mine| !mine.again);
        let last = before
            .filter(|mine| mine.token < Some(token))
            .max_by_key(|mine| mine.token);
        trying.is_granted();
        Round::Decided(Ok(Acquired::Granted(Grant {
            token,
            ttl: request.ttl,
            terms,
            again,
            predecessor: last.and_then(|mine| mine.predecessor.clone()),
        })))
    }

    /// Lets go of what was taken, and waits for it: who asks next is not held up.
    async fn undo(&self, mine: &[(usize, Mine)], trying: &mut Try) {
        let pending = mine
            .iter()
            .filter(|(_, mine)| !mine.again)
            .map(|(place, _)| *place);
        let places: Vec<usize> = pending.collect();
        if places.is_empty() {
            return;
        }
        let taken = places.len();
        let undone = self
            .ask(places, Deed::Write, |site| trying.undo(site), |_, _| true)
            .await;
        trying.effect.add(taken - undone.answers.len());
        trying.hears(undone.answers.iter().map(|(place, ())| (*place, false)));
    }
}

async fn take(site: Arc<Site>, request: Acquire) -> Result<Taken, StoreError> {
    let key = site.keys.record(&request.name);
    let arguments = Arguments::on([site.keys.index(), key.clone()])
        .with(&request.candidate.id)
        .with(request.candidate.incarnation)
        .with(request.attempt)
        .with(request.ttl.as_millis())
        .with(&request.note)
        .with(&request.name);
    let mut reply = site
        .run(&TAKE, &arguments, Deed::Write, &subject(&request.name))
        .await?;
    let (verdict, now_ms) = (reply.word()?, reply.number()?);
    let name = request.name.as_str();
    Ok(match verdict.as_str() {
        "pending" | "again" => {
            let (token, terms) = (reply.number()?, reply.number()?);
            let previous = [reply.text()?, reply.text()?, reply.text()?, reply.text()?];
            Taken::Mine(Mine {
                now_ms,
                token: FencingToken::new(token).ok(),
                terms,
                again: verdict == "again",
                predecessor: predecessor(&key, name, previous, now_ms)?,
            })
        }
        "held" => {
            let fields = reply.fields()?;
            let lease = decode(&key, name, fields.as_ref(), now_ms)?;
            Taken::Held(Sighting {
                lease,
                confirmed: is_confirmed(fields.as_ref()),
            })
        }
        "superseded" => Taken::Superseded,
        "exhausted" => Taken::Exhausted,
        "unreadable" => Taken::Unreadable(site.cannot_read(&key, name, reply.fields()?.as_ref(), now_ms)),
        _ => return Err(misunderstood()),
    })
}

/// Which token a member has confirmed for an attempt, the count of terms, and whether it was just now.
type Given = (FencingToken, u64, bool);

fn is_given(given: Option<Given>, token: FencingToken) -> bool {
    given.is_some_and(|(given, ..)| given == token)
}

/// None where the record is not the attempt's any more.
async fn confirm(
    site: Arc<Site>,
    request: Acquire,
    token: FencingToken,
    terms: u64,
) -> Result<Option<Given>, StoreError> {
    let arguments = on_record(&site, &request.name)
        .with(request.candidate.incarnation)
        .with(request.attempt)
        .with(token)
        .with(terms)
        .with(request.ttl.as_millis())
        .with(site.keys.channel(&request.name));
    let mut reply = site
        .run(&CONFIRM, &arguments, Deed::Write, &subject(&request.name))
        .await?;
    let (verdict, _now_ms) = (reply.word()?, reply.number()?);
    match verdict.as_str() {
        "confirmed" | "already" => {
            let token = FencingToken::new(reply.number()?).map_err(|_| misunderstood())?;
            Ok(Some((token, reply.number()?, verdict == "confirmed")))
        }
        "gone" | "unreadable" => Ok(None),
        _ => Err(misunderstood()),
    }
}

pub(super) fn on_record(site: &Site, name: &LeaseName) -> Arguments {
    Arguments::on([site.keys.index(), site.keys.record(name)])
}
