//! Taking a lease: a majority is taken, then a token above all that any of them knows is confirmed by a majority.

use super::Quorum;
use crate::fault::Deed;
use crate::read::Sighting;
use crate::record::{decode, is_confirmed, predecessor};
use crate::reply::misunderstood;
use crate::script::{Arguments, CONFIRM, TAKE, UNDO};
use crate::site::{Site, subject};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, LeaseName, Predecessor, StoreError};

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

struct Mine {
    now_ms: u64,
    /// Of the term before; of this one, if it was confirmed before.
    token: Option<FencingToken>,
    terms: u64,
    again: bool,
    predecessor: Option<Predecessor>,
}

/// What a round came to.
enum Round {
    Decided(Result<Acquired, StoreError>),
    /// Others are in the middle of it.
    Again,
}

impl Quorum {
    /// Decides an acquisition.
    pub(super) async fn acquire(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        for round in 0..ROUNDS_MAX {
            match self.round(request, round).await {
                Round::Decided(answer) => return answer,
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

    async fn round(&self, request: &Acquire, round: u32) -> Round {
        // One member first: of those who ask at once, it lets one through, and the others need not split the rest.
        let first = (0..self.members.len())
            .find(|place| !self.members[*place].is_silent())
            .unwrap_or(0);
        let member = &self.members[first];
        let asking = take(Arc::clone(&member.site), request.clone());
        let mut taken = Vec::new();
        let mut errors = Vec::new();
        match member.within(Deed::Write, FIRST_TIME_MAX, asking).await {
            Ok(Taken::Held(_)) if round % 4 != 3 => return self.judge_held(request).await,
            Ok(answer) => taken.push((first, answer)),
            Err(error) => errors.push(error),
        }
        let others = (0..self.members.len()).filter(|place| *place != first);
        let rest = self
            .ask(others, Deed::Write, |site| take(site, request.clone()))
            .await;
        taken.extend(rest.answers);
        errors.extend(rest.errors);
        self.weigh(request, taken, &errors).await
    }

    /// The first member is somebody else's: whoever has a majority holds the lease, and nothing was changed.
    async fn judge_held(&self, request: &Acquire) -> Round {
        match self.get(&request.name).await {
            Ok(Some(lease)) if !lease.remaining.is_zero() => Round::Decided(Ok(Acquired::Held(lease))),
            Ok(_) => Round::Again,
            Err(error) => Round::Decided(Err(error)),
        }
    }

    async fn weigh(&self, request: &Acquire, taken: Vec<(usize, Taken)>, errors: &[StoreError]) -> Round {
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
            return self.confirm(request, &mine).await;
        }
        self.undo(request, &mine).await;
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
            return Round::Decided(Err(self.undecided(&subject(&request.name), answered, errors)));
        }
        Round::Again
    }

    /// Gives what was taken a token above every other: the same that the attempt was given before, if it was.
    async fn confirm(&self, request: &Acquire, mine: &[(usize, Mine)]) -> Round {
        let before = mine.iter().filter(|(_, mine)| !mine.again).map(|(_, mine)| mine);
        let last = before.clone().max_by_key(|mine| mine.token);
        let highest = last.and_then(|mine| mine.token);
        let confirmed = mine
            .iter()
            .filter(|(_, mine)| mine.again)
            .map(|(_, mine)| mine)
            .max_by_key(|mine| mine.token);
        let adopted = confirmed.filter(|mine| mine.token >= highest);
        let (mut token, mut terms) = match adopted {
            Some(mine) => (mine.token, mine.terms),
            // The first, or somebody's later term lies between: this one is another then.
            None => {
                let clock_ms = mine.iter().map(|(_, mine)| mine.now_ms).max().unwrap_or(0);
                let count = before.clone().map(|mine| mine.terms).max().unwrap_or(0);
                (
                    FencingToken::successor(highest, clock_ms),
                    count.saturating_add(1).min(i64::MAX.unsigned_abs()),
                )
            }
        };
        let Some(wanted) = token else {
            return Round::Decided(Err(misunderstood()));
        };
        // The first of them decides between duplicates of this very request.
        let mut again = adopted.is_some();
        let (first, _) = &mine[0];
        let asking = confirm(
            Arc::clone(&self.members[*first].site),
            request.clone(),
            wanted,
            terms,
        );
        let mut agreed = 0;
        match self.members[*first]
            .within(Deed::Write, FIRST_TIME_MAX, asking)
            .await
        {
            Ok(Some((given, count, new))) => {
                (token, terms, again) = (Some(given), count, again || !new);
                agreed += 1;
            }
            Ok(None) => return Round::Again,
            Err(_unheard) => {}
        }
        let token = token.unwrap_or(wanted);
        let rest = mine
            .iter()
            .map(|(place, _)| *place)
            .filter(|place| place != first);
        // Also those that have not answered yet: what was sent to them comes before this.
        let late = (0..self.members.len()).filter(|place| !mine.iter().any(|(mine, _)| mine == place));
        let places: Vec<usize> = rest.chain(late).collect();
        let poll = self
            .ask(places, Deed::Write, |site| {
                confirm(site, request.clone(), token, terms)
            })
            .await;
        agreed += poll
            .answers
            .iter()
            .filter(|(_, answer)| answer.is_some_and(|(given, ..)| given == token))
            .count();
        if agreed < self.majority() {
            // Where members answered, what was taken in them has run out meanwhile: it is taken anew.
            return match poll.errors.is_empty() {
                true => Round::Again,
                false => Round::Decided(Err(self.undecided(&subject(&request.name), agreed, &poll.errors))),
            };
        }
        Round::Decided(Ok(Acquired::Granted(Grant {
            token,
            ttl: request.ttl,
            terms,
            again,
            predecessor: last.and_then(|mine| mine.predecessor.clone()),
        })))
    }

    async fn undo(&self, request: &Acquire, mine: &[(usize, Mine)]) {
        let pending = mine
            .iter()
            .filter(|(_, mine)| !mine.again)
            .map(|(place, _)| *place);
        let places: Vec<usize> = pending.collect();
        if places.is_empty() {
            return;
        }
        let _undone = self
            .ask(places, Deed::Write, |site| undo(site, request.clone()))
            .await;
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

/// Which token this member has confirmed for the attempt, the count of terms, and whether it was just now.
async fn confirm(
    site: Arc<Site>,
    request: Acquire,
    token: FencingToken,
    terms: u64,
) -> Result<Option<(FencingToken, u64, bool)>, StoreError> {
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

async fn undo(site: Arc<Site>, request: Acquire) -> Result<(), StoreError> {
    let arguments = on_record(&site, &request.name)
        .with(request.candidate.incarnation)
        .with(request.attempt);
    site.run(&UNDO, &arguments, Deed::Write, &subject(&request.name))
        .await?;
    Ok(())
}

fn on_record(site: &Site, name: &LeaseName) -> Arguments {
    Arguments::on([site.keys.index(), site.keys.record(name)])
}
