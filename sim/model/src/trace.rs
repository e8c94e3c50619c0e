use crate::canonical::{Order, canonical};
use crate::expand::{Admitted, Arrived, Happening, Successor};
use crate::invariant::Invariant;
use crate::label::Label;
use crate::local::Sender;
use crate::model::Model;
use crate::visited::{StateId, Visited};
use crate::world::{Holder, World};
use std::fmt;
use tenure_core::Change;

/// A shortest way from the beginning to a broken promise, in words.
///
/// Each line begins with the store's clock, in ticks. Tokens and attempts are numbered by their order among
/// those that still matter, so that a number may stand for another one later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// What was broken.
    pub broken: Invariant,
    /// What happened, in order, each in one line.
    pub lines: Vec<String>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in (1..).zip(&self.lines) {
            writeln!(f, "{number:>3}. {line}")?;
        }
        write!(f, "     {}", self.broken)
    }
}

const NAMES: [&str; 3] = ["A", "B", "C"];

/// What a trace remembers along its way: who stands where, and what the store's clock shows.
struct Teller {
    names: Order,
    tick: u32,
    lines: Vec<String>,
}

impl Model {
    /// Tells the way to the last state that was right, and the step that broke the promise.
    pub(crate) fn trace(&mut self, visited: &Visited, last: StateId, broken: &Successor) -> Trace {
        let mut way = vec![last];
        while let Some(parent) = visited.parent(way[way.len() - 1]) {
            way.push(parent);
        }
        way.reverse();
        let mut teller = Teller {
            names: [0, 1, 2],
            tick: 0,
            lines: Vec::new(),
        };
        let (mut found, mut canonicals) = (Vec::new(), Vec::new());
        for pair in way.windows(2) {
            let (from, to) = (World::unpack(visited.state(pair[0])), visited.state(pair[1]));
            self.next(&from, &mut found, &mut canonicals);
            let place = canonicals.iter().position(|world| world.pack() == to);
            let successor = found[place.expect("a state is found again from where it was found")];
            teller.tell(self, &successor);
            let (_, order) = canonical(&self.catalogue, successor.world)
                .unwrap_or_else(|_| unreachable!("it was worked out by `next`"));
            teller.names = order.map(|old| teller.names[usize::from(old)]);
        }
        teller.tell(self, broken);
        Trace {
            broken: broken.broken.unwrap_or(Invariant::BeliefIsTrue),
            lines: teller.lines,
        }
    }
}

impl Teller {
    fn name(&self, place: u8) -> &'static str {
        NAMES[usize::from(self.names[usize::from(place)])]
    }

    fn tell(&mut self, model: &Model, successor: &Successor) {
        let what = self.happening(successor.happening);
        let record = self.record(&successor.world);
        let believers: Vec<&str> = (0_u8..)
            .zip(&successor.world.locals[..model.catalogue.configuration.candidates])
            .filter(|(_, local)| model.catalogue.brief(**local).believes != 0)
            .map(|(place, _)| self.name(place))
            .collect();
        let believers = match believers[..] {
            [] => "nobody leads".to_owned(),
            [one] => format!("{one} leads"),
            _ => format!("{} lead", believers.join(" and ")),
        };
        self.lines
            .push(format!("[{:>2}] {what}  ({record}; {believers})", self.tick));
    }

    fn record(&self, world: &World) -> String {
        let Some(record) = world.record else {
            return "no record".to_owned();
        };
        let holder = match world.holder {
            Holder::Place(place, Sender::Present) => self.name(place).to_owned(),
            Holder::Place(place, Sender::Former) => format!("former {}", self.name(place)),
            Holder::Gone => "one that died".to_owned(),
        };
        let rest = if record.released {
            "vacant".to_owned()
        } else if record.remaining == 0 {
            "expired".to_owned()
        } else {
            format!("{} tick(s) left", record.remaining)
        };
        format!("record: {holder}, token {}, {rest}", record.token)
    }

    fn happening(&mut self, happening: Happening) -> String {
        match happening {
            Happening::Own(place, Label::ClockTicks) => format!("{}'s clock ticks", self.name(place)),
            Happening::Own(place, label) => format!("{} {}", self.name(place), own(label)),
            Happening::Arrived {
                place,
                by,
                ask,
                answer,
                when,
            } => {
                let when = match when {
                    Arrived::InTime => "",
                    Arrived::InTimeWithCopy => ", and a copy of it stays under way",
                    Arrived::Late => ", late: nobody hears the answer",
                };
                let former = match by {
                    Sender::Present => "",
                    Sender::Former => "the former ",
                };
                let name = self.name(place);
                format!("the store gets {former}{name}'s {ask} and answers {answer:?}{when}")
            }
            Happening::Told(place, change, token) => {
                let change = match change {
                    Change::Vacated => "was vacated",
                    Change::Taken => "was taken",
                    Change::Asked => "was asked to step down",
                };
                format!("the watch tells {} that term {token} {change}", self.name(place))
            }
            Happening::Gap(place) => format!("the watch tells {} that it missed something", self.name(place)),
            Happening::StoreTick => {
                self.tick += 1;
                "the store's clock ticks".to_owned()
            }
            Happening::Claimed(place, Admitted::Yes) => {
                format!("{}'s work claims the fence and reads", self.name(place))
            }
            Happening::Claimed(place, Admitted::No) => {
                format!("{}'s work claims the fence and is refused", self.name(place))
            }
            Happening::Wrote(place, Admitted::Yes) => format!("{}'s work writes", self.name(place)),
            Happening::Wrote(place, Admitted::No) => {
                format!("{}'s work writes and is refused", self.name(place))
            }
            Happening::Asked => "somebody asks the holder to step down".to_owned(),
            Happening::Forced => "an operator vacates the lease by force".to_owned(),
        }
    }
}

fn own(label: Label) -> String {
    match label {
        Label::Wakes => "wakes".to_owned(),
        Label::AnswerArrives { ask, answer } => format!("gets the answer {answer:?} to its {ask}"),
        Label::ErrorArrives { ask, certainty } => format!("gets an error ({certainty:?}) for its {ask}"),
        Label::LateAnswerArrives { answer } => {
            format!("gets the answer {answer:?} to a request that it gave up")
        }
        Label::Campaigns => "is told to campaign".to_owned(),
        Label::Withdraws => "is told to withdraw".to_owned(),
        Label::StepsDown => "is told to step down".to_owned(),
        Label::WorkEnds { token } => format!("ends the work of term {token}"),
        Label::HandsOn { token } => format!("ends the work of term {token}, and another in it goes on"),
        Label::Crashes => "crashes".to_owned(),
        Label::Restart => "starts again".to_owned(),
        Label::ClockTicks
        | Label::Applied
        | Label::LateArrives
        | Label::StoreTick
        | Label::Told
        | Label::Claims
        | Label::Writes
        | Label::Outdated => "is acted on".to_owned(),
    }
}
