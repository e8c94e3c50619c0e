//! An engine with a hand on its clock, and short words for what stores say.

use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;

pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

pub fn job() -> LeaseName {
    name("job")
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub fn seconds(count: f64) -> Duration {
    Duration::from_secs_f64(count)
}

pub fn me() -> Candidate {
    Candidate {
        id: CandidateId::new("me").unwrap(),
        incarnation: Incarnation::from_bits(1),
    }
}

pub fn other() -> Candidate {
    Candidate {
        id: CandidateId::new("other").unwrap(),
        incarnation: Incarnation::from_bits(2),
    }
}

/// A lease of 30 s, renewed every 10 s, requests of 3 s, doubt 5 s before the end.
pub fn timing() -> Timing {
    Timing::batch()
}

pub fn grant(number: u64) -> Acquired {
    grant_for(number, 30)
}

pub fn grant_for(number: u64, ttl_seconds: u64) -> Acquired {
    let ttl = Ttl::from_secs(ttl_seconds).unwrap();
    Acquired::Granted(Grant {
        token: token(number),
        ttl,
        terms: number,
        again: false,
        predecessor: None,
    })
}

pub fn lease_of(holder: Candidate, number: u64, remaining: Duration) -> Lease {
    Lease {
        name: job(),
        holder,
        token: token(number),
        attempt: Attempt::FIRST,
        terms: 1,
        ttl: Ttl::from_secs(30).unwrap(),
        remaining,
        released: false,
        held_for: Duration::ZERO,
        renewed_ago: Duration::ZERO,
        asked_to_step_down: false,
        note: Note::default(),
    }
}

pub fn extended() -> Renewed {
    Renewed::Extended {
        ttl: Ttl::from_secs(30).unwrap(),
        wish: Wish::Nothing,
    }
}

pub fn unreachable() -> StoreError {
    StoreError::unknown(Fault::Unreachable, "lease \"job\": the store cannot be reached")
}

pub fn forbidden() -> StoreError {
    StoreError::not_applied(Fault::Forbidden, "lease \"job\": no privilege to write")
}

/// As a store says it of a wrong password, and of a directory behind it that is away.
pub fn refused_login() -> StoreError {
    StoreError::not_applied(
        Fault::Unauthenticated,
        "lease \"job\": the credentials were refused",
    )
}

/// As where another hand has written the record, or the store's clock was set back by more than a day.
pub fn unreadable() -> StoreError {
    StoreError::not_applied(Fault::Unreadable, "lease \"job\": the record is damaged")
}

pub struct Harness {
    pub engine: Engine,
    pub now: Moment,
    pub events: Vec<Event>,
    pub wake: Option<Wake>,
}

/// A seed with which an engine does not beat apart from others: renewals are a whole interval apart from the
/// first on.
pub const IN_PHASE: u64 = 0x0db4_e267_b476_2ab2;

impl Harness {
    pub fn new() -> Self {
        Self::with(timing(), 1000)
    }

    pub fn with(timing: Timing, batch_max: usize) -> Self {
        let engine = Engine::new(me(), timing, NonZeroUsize::new(batch_max).unwrap(), IN_PHASE);
        Self {
            engine,
            now: Moment::from_millis(1_000_000),
            events: Vec::new(),
            wake: None,
        }
    }

    /// Leads `job` with a progress gate of 15 s.
    pub fn gated() -> Self {
        let mut harness = Self::new();
        let request = only(harness.command(Command::Campaign {
            name: job(),
            note: Note::default(),
            progress_within: Some(seconds(15.0)),
            max_hold: None,
        }));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
        harness
    }

    /// A harness that leads `job` with token 5, granted without delay.
    pub fn leading() -> Self {
        let mut harness = Self::new();
        let request = harness.campaign_once();
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
        assert!(matches!(harness.authority(), Authority::Held { .. }));
        harness
    }

    pub fn input(&mut self, input: Input) -> Vec<Request> {
        let actions = self.engine.step(self.now, input);
        self.events.extend(actions.events);
        self.wake = actions.wake;
        actions.requests
    }

    pub fn command(&mut self, command: Command) -> Vec<Request> {
        self.input(Input::Command(command))
    }

    pub fn campaign(&mut self) -> Vec<Request> {
        self.command(Command::Campaign {
            name: job(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        })
    }

    /// Leads one more lease.
    pub fn lead(&mut self, name: LeaseName) {
        let campaign = Command::Campaign {
            name,
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = only(self.command(campaign));
        self.answer(request.id, Reply::Acquired(Ok(grant(5))));
    }

    pub fn campaign_once(&mut self) -> Request {
        only(self.campaign())
    }

    pub fn work_ended(&mut self, number: u64) -> Vec<Request> {
        self.command(Command::WorkEnded {
            name: job(),
            token: token(number),
        })
    }

    pub fn answer(&mut self, request: RequestId, reply: Reply) -> Vec<Request> {
        self.input(Input::Answer { request, reply })
    }

    pub fn watch(&mut self, change: Change, number: u64) -> Vec<Request> {
        self.input(Input::Watch(WatchEvent::Changed {
            name: job(),
            change,
            token: Some(token(number)),
        }))
    }

    /// Lets time pass without stepping.
    pub fn pass(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
    }

    /// Lets time pass to the next wake-up, and steps.
    pub fn run_to_wake(&mut self) -> Vec<Request> {
        let wake = self.wake.expect("the engine wants to wake");
        assert!(
            wake.at > self.now,
            "a wake-up in the past is a busy loop: {wake:?} at {:?}",
            self.now
        );
        self.now = wake.at;
        self.input(Input::Tick)
    }

    /// Steps from wake-up to wake-up until a request is sent.
    pub fn run_to_request(&mut self) -> Request {
        for _ in 0..100 {
            let requests = self.run_to_wake();
            if !requests.is_empty() {
                return only(requests);
            }
        }
        panic!("no request in a hundred wake-ups");
    }

    pub fn authority(&self) -> Authority {
        self.engine.authority(&job(), self.now)
    }

    pub fn leads(&self) -> bool {
        self.authority() != Authority::None
    }

    pub fn until(&self) -> Moment {
        self.authority().until().expect("not leading")
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

pub fn only(mut requests: Vec<Request>) -> Request {
    assert_eq!(requests.len(), 1, "exactly one request: {requests:?}");
    requests.remove(0)
}

pub fn attempt_of(request: &Request) -> Attempt {
    match &request.operation {
        Operation::Acquire(acquire) => acquire.attempt,
        Operation::Renew(renewals) => renewals[0].attempt,
        Operation::Release(releases) => releases[0].attempt,
        Operation::Look(_) => panic!("a look has no attempt"),
    }
}

pub fn is_acquire(request: &Request) -> bool {
    matches!(request.operation, Operation::Acquire(_))
}

pub fn is_renew(request: &Request) -> bool {
    matches!(request.operation, Operation::Renew(_))
}

pub fn is_release(request: &Request) -> bool {
    matches!(request.operation, Operation::Release(_))
}
