//! Two engines in virtual time over one lease, and the traces they leave.

#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, its functions too"
)]

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Command, Engine, Event, FencingToken, Grant,
    Incarnation, Input, Lease, LeaseName, Moment, Note, Operation, Released, Renewed, Reply, Timing, Ttl,
    Wish,
};
use tenure_trace::{Header, Reader, Step, Writer};

pub fn name() -> LeaseName {
    LeaseName::new("job").unwrap()
}

pub fn header(number: u8) -> Header {
    Header {
        tenure: "0.1.0".to_owned(),
        candidate: Candidate {
            id: CandidateId::new(format!("candidate-{number}")).unwrap(),
            incarnation: Incarnation::from_bits(u128::from(number)),
        },
        timing: Timing::of(Ttl::from_millis(3000).unwrap()),
        batch_max: NonZeroUsize::new(10).unwrap(),
        seed: u64::MAX - u64::from(number),
        store: "toy".to_owned(),
        boot: Some("a-boot".to_owned()),
        started: "2026-07-01T00:00:00Z".to_owned(),
    }
}

/// One lease in memory, by virtual time.
#[derive(Default)]
struct Store {
    record: Option<(Lease, Moment)>,
}

impl Store {
    fn now(&self, at: Moment) -> Option<Lease> {
        let (lease, expires) = self.record.as_ref()?;
        let mut lease = lease.clone();
        lease.remaining = if lease.released {
            Duration::ZERO
        } else {
            expires.since(at)
        };
        Some(lease)
    }

    fn holds(&self, at: Moment, incarnation: Incarnation, token: FencingToken, attempt: Attempt) -> bool {
        self.now(at).is_some_and(|lease| {
            let same =
                (lease.holder.incarnation, lease.token, lease.attempt) == (incarnation, token, attempt);
            same && !lease.remaining.is_zero()
        })
    }

    fn answer(&mut self, at: Moment, operation: &Operation) -> Reply {
        match operation {
            Operation::Acquire(acquire) => Reply::Acquired(Ok(self.acquire(at, acquire))),
            Operation::Renew(renewals) => {
                let renew = &renewals[0];
                if !self.holds(at, renew.incarnation, renew.token, renew.attempt) {
                    return Reply::Renewed(vec![Ok(Renewed::Lost(self.now(at).map(Box::new)))]);
                }
                self.record.as_mut().unwrap().1 = at.after(renew.ttl.duration());
                let wish = Wish::Nothing;
                Reply::Renewed(vec![Ok(Renewed::Extended { ttl: renew.ttl, wish })])
            }
            Operation::Release(releases) => {
                let release = &releases[0];
                if !self.holds(at, release.incarnation, release.token, release.attempt) {
                    return Reply::Released(vec![Ok(Released::NotYours(self.now(at).map(Box::new)))]);
                }
                self.record.as_mut().unwrap().0.released = true;
                Reply::Released(vec![Ok(Released::Vacated)])
            }
            Operation::Look(_) => Reply::Looked(Ok(self.now(at))),
        }
    }

    fn acquire(&mut self, at: Moment, acquire: &Acquire) -> Acquired {
        let Acquire {
            name,
            candidate,
            attempt,
            ttl,
            note,
        } = acquire.clone();
        let before = self.now(at);
        if let Some(lease) = before.as_ref().filter(|lease| !lease.remaining.is_zero()) {
            return Acquired::Held(lease.clone());
        }
        let token = FencingToken::successor(before.map(|lease| lease.token), 0).unwrap();
        let lease = Lease {
            name,
            holder: candidate,
            token,
            attempt,
            terms: token.number(),
            ttl,
            remaining: Duration::ZERO,
            released: false,
            held_for: Duration::ZERO,
            renewed_ago: Duration::ZERO,
            asked_to_step_down: false,
            note,
        };
        self.record = Some((lease, at.after(ttl.duration())));
        let (terms, again, predecessor) = (token.number(), false, None);
        Acquired::Granted(Grant {
            token,
            ttl,
            terms,
            again,
            predecessor,
        })
    }
}

/// One process of the world.
struct Process {
    engine: Engine,
    trace: Writer<Vec<u8>>,
    wake: Option<Moment>,
    answers: VecDeque<(Moment, Input)>,
    token: Option<FencingToken>,
}

impl Process {
    fn step(&mut self, at: Moment, input: Input, store: &mut Store, round_trip: Duration) {
        let actions = self.engine.step(at, input.clone());
        self.trace.step(at, &input, &actions).unwrap();
        self.wake = actions.wake.map(|wake| wake.at);
        for event in &actions.events {
            match event {
                Event::Acquired { grant, .. } => self.token = Some(grant.token),
                Event::Ended { .. } => self.token = None,
                _ => {}
            }
        }
        for request in actions.requests {
            let reply = store.answer(at.after(round_trip / 2), &request.operation);
            let input = Input::Answer {
                request: request.id,
                reply,
            };
            self.answers.push_back((at.after(round_trip), input));
        }
    }

    fn due(&self) -> Moment {
        let answer = self.answers.front().map(|(at, _)| *at);
        answer
            .into_iter()
            .chain(self.wake)
            .min()
            .unwrap_or(Moment::from_nanos(u64::MAX))
    }
}

/// What a world leaves.
pub struct Traces {
    pub first: Vec<u8>,
    pub second: Vec<u8>,
}

/// Two candidates take turns for 20 s: the first is killed at 5 s and leaves no more lines, the second takes
/// over, gives back at 15 s, and campaigns again.
pub fn take_over() -> Traces {
    let mut store = Store::default();
    let process = |number| Process {
        engine: header(number).engine(),
        trace: Writer::new(Vec::new(), &header(number)).unwrap(),
        wake: None,
        answers: VecDeque::new(),
        token: None,
    };
    let mut processes = [process(1), process(2)];
    let campaign = || {
        Input::Command(Command::Campaign {
            name: name(),
            note: Note::new("a note").unwrap(),
            progress_within: None,
            max_hold: None,
        })
    };
    let round_trip = Duration::from_micros(1500);
    let seconds = |seconds: u64| Moment::from_millis(1_000_000 + seconds * 1000);
    let mut commands: VecDeque<(Moment, usize)> = [
        (seconds(0), 0),
        (seconds(1), 1),
        (seconds(15), 1),
        (seconds(16), 1),
    ]
    .into();
    loop {
        let command = commands
            .front()
            .map_or(Moment::from_nanos(u64::MAX), |(at, _)| *at);
        let dead = |index: usize, at: Moment| index == 0 && at >= seconds(5);
        let (index, due) = (0..2)
            .map(|index| (index, processes[index].due()))
            .filter(|(index, at)| !dead(*index, *at))
            .min_by_key(|(_, at)| *at)
            .unwrap_or((1, Moment::from_nanos(u64::MAX)));
        let at = due.min(command);
        if at > seconds(20) {
            break;
        }
        if command <= due {
            let (_, index) = commands.pop_front().unwrap();
            let input = match processes[index].token {
                Some(token) => Input::Command(Command::WorkEnded { name: name(), token }),
                None => campaign(),
            };
            processes[index].step(at, input, &mut store, round_trip);
        } else {
            let process = &mut processes[index];
            let answered = process.answers.front().is_some_and(|(answer, _)| *answer <= at);
            let input = if answered {
                process.answers.pop_front().unwrap().1
            } else {
                Input::Tick
            };
            process.step(at, input, &mut store, round_trip);
        }
    }
    let [first, second] = processes.map(|process| process.trace.into_inner());
    Traces { first, second }
}

/// A trace that ends within a term, and then that the work ends and the lease is given back.
pub fn given_back(trace: &[u8]) -> Vec<u8> {
    let mut engine = header(1).engine();
    let mut lived = steps(trace);
    for step in &lived {
        let _ = engine.step(step.at, step.input.clone());
    }
    let token = engine.belief(&name()).unwrap().token;
    let mut then = |input: Input| {
        let at = lived.last().unwrap().at.after(Duration::from_millis(1));
        let actions = engine.step(at, input.clone());
        lived.push(Step { at, input, actions });
        lived
            .last()
            .unwrap()
            .actions
            .requests
            .first()
            .map(|request| request.id)
    };
    let released = then(Input::Command(Command::WorkEnded { name: name(), token }));
    then(Input::Answer {
        request: released.unwrap(),
        reply: Reply::Released(vec![Ok(Released::Vacated)]),
    });
    written(&lived)
}

/// The lines of a trace without their ends.
pub fn lines(trace: &[u8]) -> Vec<String> {
    String::from_utf8(trace.to_vec())
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A trace of these lines.
pub fn joined(lines: &[String]) -> Vec<u8> {
    (lines.join("\n") + "\n").into_bytes()
}

pub fn reader(trace: &[u8]) -> Reader<&[u8]> {
    Reader::new(trace).unwrap()
}

/// Every step of a sound trace.
pub fn steps(trace: &[u8]) -> Vec<Step> {
    reader(trace).collect::<Result<_, _>>().unwrap()
}

/// A trace of these steps, with the header of the first candidate.
pub fn written(steps: &[Step]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(1)).unwrap();
    for step in steps {
        writer.step(step.at, &step.input, &step.actions).unwrap();
    }
    writer.into_inner()
}
