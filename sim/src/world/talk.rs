//! Rounds with a store that only compares and swaps: the real adaptor of the core, one read or write at a
//! time.
//!
//! What the library does with futures is done here with messages: the items of a batch go together, a round
//! that the engine has given up is dropped where it stands, and each process has its own sightings.

use super::World;
use super::network::{Asked, Load};
use crate::faults::FaultKind;
use crate::sometimes::Sometimes;
use tenure_core::{
    Acquire, Acquired, Entry, Grant, Lease, LeaseName, Moment, Need, Operation, Release, Released, Renew,
    Renewed, Reply, Response, Revision, Round, Sightings, StoreError, Wish, Written,
};

/// The rounds that are under way.
#[derive(Default)]
pub(super) struct Talks {
    talks: Vec<Option<Box<Talk>>>,
    free: Vec<u32>,
    begun: u64,
}

/// One request of an engine, as one round for each of its leases.
struct Talk {
    number: u64,
    instance: u32,
    asked: Asked,
    items: Vec<Item>,
}

struct Item {
    round: AnyRound,
    /// How many needs have been met: what answers an earlier one is late.
    met: u32,
    /// What the store last said of time, as a floor for a token.
    token_floor: u64,
}

enum AnyRound {
    Acquire(Round<Acquire>),
    Renew(Round<Renew>),
    Release(Round<Release>),
    Look(Round<LeaseName>),
}

/// What a round needs, without what it is about.
#[derive(Clone)]
enum Want {
    Read,
    Write(Option<Revision>, Entry),
    Done,
}

/// One need of a round on its way to the store, and the response on its way back.
#[derive(Clone)]
pub(super) struct RoundMessage {
    talk: u32,
    number: u64,
    item: usize,
    met: u32,
    purpose: Purpose,
    token_floor: u64,
    name: usize,
    want: Want,
    response: Option<Response>,
}

impl RoundMessage {
    /// Whether it asks for a change, and not only for a look.
    pub(super) fn writes(&self) -> bool {
        matches!(self.want, Want::Write(..))
    }

    /// In place of the response comes an error.
    pub(super) fn fail(&mut self, error: StoreError) {
        self.response = self.response.take().map(|response| match response {
            Response::Read(_) => Response::Read(Err(error)),
            Response::Written(_) => Response::Written(Err(error)),
        });
    }
}

/// What a write is for: how it is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Acquire,
    Renew,
    Release,
    Look,
}

fn want<Answered>(need: Need<Answered>) -> Want {
    match need {
        Need::Read(_) => Want::Read,
        Need::Create(_, entry) => Want::Write(None, entry),
        Need::Swap(_, revision, entry) => Want::Write(Some(revision), entry),
        Need::Done(_) => Want::Done,
    }
}

fn done<Answered>(need: Need<Answered>) -> Option<Result<Answered, StoreError>> {
    match need {
        Need::Done(answer) => Some(answer),
        Need::Read(_) | Need::Create(..) | Need::Swap(..) => None,
    }
}

impl AnyRound {
    fn want(&self) -> Want {
        match self {
            Self::Acquire(round) => want(round.next()),
            Self::Renew(round) => want(round.next()),
            Self::Release(round) => want(round.next()),
            Self::Look(round) => want(round.next()),
        }
    }

    fn take_in(&mut self, now: Moment, response: Response, sightings: &mut Sightings) {
        match self {
            Self::Acquire(round) => round.take_in(now, response, sightings),
            Self::Renew(round) => round.take_in(now, response, sightings),
            Self::Release(round) => round.take_in(now, response, sightings),
            Self::Look(round) => round.take_in(now, response, sightings),
        }
    }

    fn purpose(&self) -> Purpose {
        match self {
            Self::Acquire(_) => Purpose::Acquire,
            Self::Renew(_) => Purpose::Renew,
            Self::Release(_) => Purpose::Release,
            Self::Look(_) => Purpose::Look,
        }
    }
}

impl Talk {
    /// The answer to the engine, once every round of it is done.
    fn reply(&self) -> Option<Reply> {
        let mut renewed: Vec<Result<Renewed, StoreError>> = Vec::new();
        let mut released: Vec<Result<Released, StoreError>> = Vec::new();
        for item in &self.items {
            match &item.round {
                AnyRound::Acquire(round) => {
                    let answer: Result<Acquired, StoreError> = done(round.next())?;
                    return Some(Reply::Acquired(answer));
                }
                AnyRound::Look(round) => {
                    let answer: Result<Option<Lease>, StoreError> = done(round.next())?;
                    return Some(Reply::Looked(answer));
                }
                AnyRound::Renew(round) => renewed.push(done(round.next())?),
                AnyRound::Release(round) => released.push(done(round.next())?),
            }
        }
        Some(if matches!(self.asked.operation, Operation::Renew(_)) {
            Reply::Renewed(renewed)
        } else {
            Reply::Released(released)
        })
    }
}

impl World<'_> {
    pub(super) fn begin_talk(&mut self, slot: u8, asked: Asked) {
        let process = &mut self.processes[usize::from(slot)];
        let (now, sightings) = (
            Moment::from_nanos(process.clock.shown(self.now)),
            &mut process.sightings,
        );
        let rounds: Vec<AnyRound> = match &asked.operation {
            Operation::Acquire(acquire) => vec![AnyRound::Acquire(Round::acquire(acquire.clone()))],
            Operation::Look(name) => vec![AnyRound::Look(Round::get(name.clone()))],
            Operation::Renew(renewals) => renewals
                .iter()
                .map(|renew| AnyRound::Renew(Round::renew(renew.clone()).over_last_written(now, sightings)))
                .collect(),
            Operation::Release(releases) => releases
                .iter()
                .map(|release| {
                    AnyRound::Release(Round::release(release.clone()).over_last_written(now, sightings))
                })
                .collect(),
        };
        self.talks.begun += 1;
        let talk = Box::new(Talk {
            number: self.talks.begun,
            instance: self.processes[usize::from(slot)].instance,
            asked,
            items: rounds
                .into_iter()
                .map(|round| Item {
                    round,
                    met: 0,
                    token_floor: 0,
                })
                .collect(),
        });
        let (number, items) = (talk.number, talk.items.len());
        let place = if let Some(place) = self.talks.free.pop() {
            self.talks.talks[place as usize] = Some(talk);
            place
        } else {
            self.talks.talks.push(Some(talk));
            u32::try_from(self.talks.talks.len() - 1).expect("few rounds are under way")
        };
        for item in 0..items {
            self.ask_for(slot, place, number, item);
        }
    }

    /// Sends what a round needs next.
    fn ask_for(&mut self, slot: u8, place: u32, number: u64, item: usize) {
        let Some(talk) = self.talks.talks[place as usize]
            .as_ref()
            .filter(|talk| talk.number == number)
        else {
            return;
        };
        let Item {
            round,
            met,
            token_floor,
        } = &talk.items[item];
        let name = match &talk.asked.operation {
            Operation::Acquire(acquire) => &acquire.name,
            Operation::Renew(renewals) => &renewals[item].name,
            Operation::Release(releases) => &releases[item].name,
            Operation::Look(name) => name,
        };
        let message = RoundMessage {
            talk: place,
            number,
            item,
            met: *met,
            purpose: round.purpose(),
            token_floor: *token_floor,
            name: self.name_index(name),
            want: round.want(),
            response: None,
        };
        self.dispatch(slot, Load::Round(message));
    }

    /// The store does what a round needs.
    pub(super) fn serve(
        &mut self,
        slot: u8,
        instance: u32,
        message: &mut RoundMessage,
        error: Option<StoreError>,
        late: bool,
    ) {
        let index = message.name;
        let floor = self.store.token_floor(self.now);
        let now_ms = self.store.clock_ms(self.now);
        let stale = &mut self.processes[usize::from(slot)].arms.stale_read;
        let lags = *stale > 0 && self.plan.store.reads_lag && matches!(message.want, Want::Read);
        if lags {
            *stale -= 1;
        }
        let Some(store) = self.store.swap() else { return };
        let response = match (&message.want, error) {
            (Want::Done, _) => return,
            (Want::Read, Some(error)) => Response::Read(Err(error)),
            (Want::Write(..), Some(error)) => Response::Written(Err(error)),
            (Want::Read, None) if lags => {
                let reading = store.read_the_past(index, floor);
                if reading != store.read(index, floor) {
                    self.struck(FaultKind::StaleRead);
                }
                Response::Read(Ok(reading))
            }
            (Want::Read, None) => Response::Read(Ok(store.read(index, floor))),
            (Want::Write(over, entry), None) => {
                let written = store.write(index, over.as_ref(), entry, now_ms);
                if let Written::As(_) = written {
                    let entry = entry.clone();
                    self.judge_write(index, u64::from(instance), message, &entry);
                    if late {
                        self.saw(Sometimes::LateDuplicateApplied);
                    }
                    self.tell_watches();
                }
                Response::Written(Ok(written))
            }
        };
        self.tell(|| format!("the store responds to c{slot}: {response:?}"));
        message.response = Some(response);
    }

    /// A write was applied: it is judged by what it was for.
    fn judge_write(&mut self, index: usize, holder: u64, message: &RoundMessage, entry: &Entry) {
        let before = self.leases[index].truth;
        let clock_ms = self.store.clock_ms(self.now);
        let (name, incarnation) = (self.names[index].clone(), entry.holder.incarnation);
        let (token, attempt, ttl) = (entry.token, entry.attempt, entry.ttl);
        match message.purpose {
            Purpose::Acquire => {
                let again =
                    before.is_some_and(|before| before.is_term(holder, token.number(), attempt.number()));
                let grant = Grant {
                    token,
                    ttl,
                    terms: entry.terms,
                    again,
                    predecessor: None,
                };
                self.judge_grant(
                    index,
                    &grant,
                    before,
                    (holder, attempt.number()),
                    clock_ms,
                    message.token_floor,
                );
                self.judge_taken(index, before, clock_ms);
                self.record_changed(index);
            }
            Purpose::Renew => {
                let renew = Renew {
                    name,
                    incarnation,
                    token,
                    attempt,
                    ttl,
                };
                let extended = Ok(Renewed::Extended {
                    ttl,
                    wish: Wish::Nothing,
                });
                self.judge_renewal(index, &renew, &extended, before, holder, clock_ms);
            }
            Purpose::Release => {
                let release = Release {
                    name,
                    incarnation,
                    token,
                    attempt,
                };
                self.judge_release(index, &release, before, holder);
            }
            Purpose::Look => {}
        }
    }

    /// A response reaches the round that needs it.
    pub(super) fn hear(&mut self, slot: u8, message: RoundMessage) {
        let RoundMessage {
            talk: place,
            number,
            item,
            met,
            response,
            ..
        } = message;
        let process = &mut self.processes[usize::from(slot)];
        let local = process.clock.shown(self.now);
        let Some(talk) = self.talks.talks[place as usize]
            .as_mut()
            .filter(|talk| talk.number == number)
        else {
            return;
        };
        let (Some(response), true) = (response, talk.instance == process.instance) else {
            return;
        };
        if talk.items[item].met != met {
            return;
        }
        if local >= talk.asked.give_up_at {
            // The driver has dropped the future; the engine knows by its own clock.
            self.talks.end(place);
            return;
        }
        talk.items[item].met += 1;
        if let Response::Read(Ok(reading)) = &response {
            talk.items[item].token_floor = reading.token_floor;
        }
        talk.items[item]
            .round
            .take_in(Moment::from_nanos(local), response, &mut process.sightings);
        if !matches!(talk.items[item].round.want(), Want::Done) {
            self.ask_for(slot, place, number, item);
            return;
        }
        let Some(reply) = talk.reply() else { return };
        let Some(talk) = self.talks.end(place) else { return };
        self.count_answer(&reply);
        self.tell(|| format!("c{slot}'s round ends: {}", crate::world::operator::short(&reply)));
        self.answer(slot, &talk.asked, reply);
    }

    fn count_answer(&mut self, reply: &Reply) {
        match reply {
            Reply::Acquired(Ok(Acquired::Superseded)) => self.saw(Sometimes::Superseded),
            Reply::Acquired(_) | Reply::Renewed(_) | Reply::Released(_) | Reply::Looked(_) => {}
        }
    }

    /// Drops every round that its engine has given up.
    pub(super) fn drop_talks(&mut self) {
        self.talks.talks.clear();
        self.talks.free.clear();
    }
}

impl Talks {
    fn end(&mut self, place: u32) -> Option<Box<Talk>> {
        let talk = self.talks.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(talk)
    }
}
