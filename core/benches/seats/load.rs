//! An engine with many seats, and a store that says yes at once.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;

/// From one beat to the next: [`Timing::batch`], a ttl of 30 s.
pub(crate) const BEAT: Duration = Duration::from_secs(10);

/// Leases in one request, as MongoDB's store has it.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero");

pub(crate) struct Load {
    engine: Engine,
    now: Moment,
    wake: Option<Moment>,
    token: FencingToken,
    further: LeaseName,
}

/// What one beat sent.
#[derive(Default)]
pub(crate) struct Beat {
    pub(crate) requests: usize,
    /// How many requests were under way at once, at most.
    pub(crate) at_once: usize,
}

impl Load {
    /// An engine that has taken this many leases, one after the other, within one beat.
    pub(crate) fn holding(seats: usize) -> Self {
        let candidate = Candidate {
            id: CandidateId::new("bench").expect("a plain word"),
            incarnation: Incarnation::from_bits(1),
        };
        let mut load = Self {
            engine: Engine::new(candidate, Timing::batch(), BATCH_MAX, 7),
            now: Moment::from_millis(1_000_000),
            wake: None,
            token: FencingToken::new(1).expect("not zero"),
            further: LeaseName::new("orders/further").expect("a plain word"),
        };
        let pause = BEAT / u32::try_from(seats + 1).expect("not that many");
        for seat in 0..seats {
            // As names of orders come: in no order.
            let number = seat.wrapping_mul(0x9e37_79b1) % (1 << 32);
            load.now = load.now.after(pause);
            load.take(LeaseName::new(format!("orders/{number:010}")).expect("a plain word"));
        }
        load
    }

    /// A step at which nothing is due.
    pub(crate) fn idle_step(&mut self) {
        let actions = self.engine.step(self.now, Input::Tick);
        assert!(actions.requests.is_empty(), "the step was to be idle");
    }

    /// One further lease is taken and given back.
    pub(crate) fn cycle(&mut self) {
        let name = self.further.clone();
        self.take(name.clone());
        let token = self.token;
        self.step(Input::Command(Command::StepDown {
            name: name.clone(),
            token,
        }));
        let release = self.step(Input::Command(Command::WorkEnded { name, token }));
        self.answer(&release[0]);
    }

    /// Everything that is to do in one renewal interval.
    pub(crate) fn beat(&mut self) -> Beat {
        let end = self.now.after(BEAT);
        let mut beat = Beat::default();
        while let Some(wake) = self.wake.filter(|wake| *wake <= end) {
            self.now = wake;
            let mut under_way: VecDeque<Request> = self.step(Input::Tick).into();
            while let Some(request) = under_way.pop_front() {
                beat.requests += 1;
                beat.at_once = beat.at_once.max(under_way.len() + 1);
                under_way.extend(self.answer(&request));
            }
        }
        self.now = end;
        beat
    }

    fn take(&mut self, name: LeaseName) {
        let campaign = Command::Campaign {
            name,
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        for request in self.step(Input::Command(campaign)) {
            self.answer(&request);
        }
    }

    fn step(&mut self, input: Input) -> Vec<Request> {
        let actions = self.engine.step(self.now, input);
        self.wake = actions.wake.map(|wake| wake.at);
        actions.requests
    }

    /// Says yes; answers what is sent next.
    fn answer(&mut self, request: &Request) -> Vec<Request> {
        let ttl = self.engine.timing().ttl();
        let reply = match &request.operation {
            Operation::Acquire(_) => {
                self.token = FencingToken::successor(Some(self.token), 0).expect("not the last");
                Reply::Acquired(Ok(Acquired::Granted(Grant {
                    token: self.token,
                    ttl,
                    terms: 1,
                    again: false,
                    predecessor: None,
                })))
            }
            Operation::Renew(renewals) => {
                let extended = |_| {
                    Ok(Renewed::Extended {
                        ttl,
                        wish: Wish::Nothing,
                    })
                };
                Reply::Renewed(renewals.iter().map(extended).collect())
            }
            Operation::Release(releases) => {
                Reply::Released(releases.iter().map(|_| Ok(Released::Vacated)).collect())
            }
            Operation::Look(_) => Reply::Looked(Ok(None)),
        };
        self.step(Input::Answer {
            request: request.id,
            reply,
        })
    }
}
