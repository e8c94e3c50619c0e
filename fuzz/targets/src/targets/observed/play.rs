use super::super::choices::Choices;
use super::super::text::assert_one_line;
use super::process::{Belief, Outcome, Process, Running, TURNS_MAX, Wanted, Work};
use super::shelf::Shelf;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Ask, Attempt, Candidate, CandidateId, Certainty, Entry, Fault, FencingToken,
    Incarnation, LeaseName, Note, Reading, Release, Renew, Renewed, Response, Revision, Round, Sightings,
    StoreError, Timing, Ttl, Written,
};

/// ρ: how much any clock may be too fast or too slow; what timings assume by default.
const RATE_ERROR_PPM: u32 = 500;

/// Most rounds that one process has under way: a driver has one a lease, and some that were given up.
const ROUNDS_MAX: usize = 3;

/// Most writes that are still on their way from rounds that were given up.
const LATE_MAX: usize = 8;

/// Three processes and a record.
pub(super) struct Play {
    name: LeaseName,
    shelf: Shelf,
    processes: Vec<Process>,
    /// True time, in nanoseconds.
    now: u64,
    /// Writes of rounds that nobody waits for any more.
    late: Vec<(Option<Revision>, Entry)>,
}

impl Play {
    pub(super) fn new(choices: &mut Choices<'_>) -> Self {
        let processes = (0..3_u8).map(|number| {
            let rate = i64::from(RATE_ERROR_PPM);
            Process {
                candidate: Candidate {
                    id: CandidateId::new(format!("p{number}")).expect("a plain word is an id"),
                    incarnation: Incarnation::from_bits(number.into()),
                },
                fast_ppm: *choices.pick(&[0, rate, -rate]),
                offset: choices.number() >> 8,
                ttl: Ttl::from_millis(*choices.pick(&[100, 101, 300, 30_000])).unwrap_or(Ttl::MIN),
                sightings: Sightings::new(RATE_ERROR_PPM),
                last_attempt: 0,
                belief: None,
                rounds: Vec::new(),
            }
        });
        Self {
            name: LeaseName::new("job").expect("a plain word is a name"),
            processes: processes.collect(),
            shelf: Shelf::default(),
            now: 0,
            late: Vec::new(),
        }
    }

    pub(super) fn step(&mut self, choices: &mut Choices<'_>) {
        let of = choices.below(self.processes.len());
        match choices.byte() % 16 {
            0..=3 => self.begin(choices, of),
            4..=9 => self.advance(choices, of),
            10..=12 => self.pass(choices),
            13 => self.give_up(choices, of),
            14 => self.apply_late(choices),
            _ if choices.once_in(8) => self.shelf.tamper(choices),
            _ => self.told_by_a_watch(choices, of),
        }
        self.check_belief();
    }

    /// No two believe, and whoever believes is who the record says.
    fn check_belief(&self) {
        if self.shelf.is_tampered_with {
            return;
        }
        for process in &self.processes {
            let Some(belief) = process.believes(self.now) else {
                continue;
            };
            let entry = self.shelf.current().map(|version| &version.entry);
            let holds = entry.is_some_and(|entry| {
                entry.token == belief.token && entry.holder == process.candidate && !entry.released
            });
            assert!(
                holds,
                "{} believes in {belief:?}, and the record is {entry:?}",
                process.candidate
            );
        }
    }

    fn pass(&mut self, choices: &mut Choices<'_>) {
        let passed = match choices.byte() % 4 {
            0 => Duration::from_millis(choices.byte().into()),
            1 => Duration::from_millis(100 + u64::from(choices.byte())),
            2 => Duration::from_micros(99_900 + u64::from(choices.byte())),
            _ => Duration::from_millis(choices.number() % 100_000),
        };
        self.now += u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
    }

    fn begin(&mut self, choices: &mut Choices<'_>, of: usize) {
        let process = &mut self.processes[of];
        if process.rounds.len() == ROUNDS_MAX {
            return;
        }
        let began = process.clock(self.now);
        let belief = process.believes(self.now);
        // What is over stays over, as in the engine: a late answer revives nothing.
        process.belief = belief;
        let ttl = process.ttl;
        let name = self.name.clone();
        let incarnation = process.incarnation();
        let (attempt, work) = match (choices.byte() % 8, belief) {
            (0, _) => (Attempt::FIRST, Work::Look(Round::get(name))),
            (1, _) => {
                let token = self
                    .shelf
                    .current()
                    .map_or(first_token(), |version| version.entry.token);
                (Attempt::FIRST, Work::Ask(Round::ask(Ask { name, token })))
            }
            (2..=4, Some(Belief { token, attempt, .. })) => (
                attempt,
                Work::Renew(
                    Round::renew(Renew {
                        name,
                        incarnation,
                        token,
                        attempt,
                        ttl,
                    })
                    .over_last_written(began, &mut process.sightings),
                ),
            ),
            (_, Some(Belief { token, attempt, .. })) => {
                // Belief is gone before the release is sent, and the attempt rotates.
                process.belief = None;
                process.last_attempt += 1;
                (
                    attempt,
                    Work::Release(
                        Round::release(Release {
                            name,
                            incarnation,
                            token,
                            attempt,
                        })
                        .over_last_written(began, &mut process.sightings),
                    ),
                )
            }
            (kind, None) => {
                // The same attempt again now and then, as long as no term of it was begun and ended.
                if kind != 7 || process.last_attempt == 0 || process.belief.is_some() {
                    process.last_attempt += 1;
                }
                let attempt = Attempt::new(process.last_attempt).expect("attempts are few");
                let candidate = process.candidate.clone();
                let acquire = Acquire {
                    name,
                    candidate,
                    attempt,
                    ttl,
                    note: Note::default(),
                };
                (attempt, Work::Acquire(Round::acquire(acquire)))
            }
        };
        process.rounds.push(Running {
            began,
            attempt,
            work,
            turns: 0,
        });
    }

    /// Gives a round of a process what it needs, or something else.
    fn advance(&mut self, choices: &mut Choices<'_>, of: usize) {
        let process = &mut self.processes[of];
        if process.rounds.is_empty() {
            return;
        }
        let at = choices.below(process.rounds.len());
        let now = process.clock(self.now);
        let running = &mut process.rounds[at];
        let wanted = running.work.wanted();
        let response = match &wanted {
            Wanted::Read => read(&self.shelf, choices),
            Wanted::Write(over, entry) => write(&mut self.shelf, choices, over.as_ref(), entry),
            Wanted::Nothing(_) => Response::Written(Ok(Written::Conflict)),
        };
        if choices.once_in(8) {
            misfit(running, &wanted, now, &mut process.sightings);
        }
        let failed_reading = matches!((&wanted, &response), (Wanted::Read, Response::Read(Err(_))));
        running.work.take_in(now, response, &mut process.sightings);
        running.turns += 1;
        assert!(running.turns <= TURNS_MAX, "a round does not end");
        if let Wanted::Nothing(outcome) = running.work.wanted() {
            if let (true, Outcome::Failed(error)) = (failed_reading, &outcome) {
                assert_eq!(
                    error.certainty,
                    Certainty::NotApplied,
                    "a reading has changed something"
                );
            }
            let running = process.rounds.remove(at);
            self.end(of, &running, outcome);
        }
    }

    fn end(&mut self, of: usize, running: &Running, outcome: Outcome) {
        let process = &mut self.processes[of];
        process.belief = process.believes(self.now);
        let until = |ttl: Ttl| running.began.after(Timing::of(process.ttl).trust(ttl));
        match outcome {
            Outcome::Acquired(Acquired::Granted(grant)) => {
                // Only the newest attempt is waited for, and what it began is not believed after its release.
                if running.attempt.number() == process.last_attempt {
                    process.belief = Some(Belief {
                        token: grant.token,
                        attempt: running.attempt,
                        until: until(grant.ttl),
                    });
                }
            }
            Outcome::Renewed(Renewed::Extended { ttl, .. }) => {
                if let Some(belief) = &mut process.belief
                    && belief.attempt == running.attempt
                {
                    belief.until = belief.until.max(until(ttl));
                }
            }
            Outcome::Renewed(Renewed::Lost(_)) | Outcome::Acquired(Acquired::Superseded) => {
                process.belief = None
            }
            Outcome::Acquired(Acquired::Held(lease)) | Outcome::Looked(Some(lease)) => {
                let ttl = lease.ttl.duration();
                assert!(
                    lease.remaining <= ttl + ttl / 2000 + Duration::from_nanos(1),
                    "more remains than can"
                );
                assert!(
                    lease.renewed_ago <= lease.held_for,
                    "renewed before the term was seen"
                );
            }
            Outcome::Failed(error) => assert_one_line(&error.message),
            Outcome::Released(_) | Outcome::Asked(_) | Outcome::Looked(None) => {}
        }
    }

    /// Nobody waits for a round any more; its write may still be on its way.
    fn give_up(&mut self, choices: &mut Choices<'_>, of: usize) {
        let process = &mut self.processes[of];
        if process.rounds.is_empty() {
            return;
        }
        let running = process.rounds.remove(choices.below(process.rounds.len()));
        if let Wanted::Write(over, entry) = running.work.wanted()
            && self.late.len() < LATE_MAX
        {
            self.late.push((over, entry));
        }
    }

    fn apply_late(&mut self, choices: &mut Choices<'_>) {
        if !self.late.is_empty() {
            let (over, entry) = self.late.remove(choices.below(self.late.len()));
            self.shelf.write(over.as_ref(), &entry);
        }
    }

    /// A watch tells of a version, current or old, or of a removal that never was.
    fn told_by_a_watch(&mut self, choices: &mut Choices<'_>, of: usize) {
        let Reading { found, .. } = self.shelf.read(choices);
        let process = &mut self.processes[of];
        let now = process.clock(self.now);
        match &found {
            Some(version) if choices.once_in(2) => process.sightings.glance(now, &self.name, version),
            _ => process.sightings.see(now, &self.name, found.as_ref()),
        }
    }
}

fn read(shelf: &Shelf, choices: &mut Choices<'_>) -> Response {
    Response::Read(match choices.once_in(8) {
        true => Err(error(choices)),
        false => Ok(shelf.read(choices)),
    })
}

/// Applied and told; applied and not told; not applied; or in conflict though nobody wrote.
fn write(shelf: &mut Shelf, choices: &mut Choices<'_>, over: Option<&Revision>, entry: &Entry) -> Response {
    Response::Written(match choices.byte() % 8 {
        0 => {
            shelf.write(over, entry);
            Err(StoreError::unknown(Fault::TimedOut, "no answer"))
        }
        1 => Err(error(choices)),
        2 if choices.once_in(4) => Ok(Written::Conflict),
        _ => Ok(shelf.write(over, entry)),
    })
}

/// A response of another kind is a duplicate of an earlier one, and changes nothing.
fn misfit(running: &mut Running, wanted: &Wanted, now: tenure_core::Moment, sightings: &mut Sightings) {
    let response = match wanted {
        Wanted::Read => Response::Written(Ok(Written::As(Revision::from(1)))),
        Wanted::Write(..) | Wanted::Nothing(_) => Response::Read(Ok(Reading {
            found: None,
            token_floor: 0,
        })),
    };
    running.work.take_in(now, response, sightings);
    assert_eq!(
        running.work.wanted(),
        *wanted,
        "a duplicate was taken for an answer"
    );
}

fn error(choices: &mut Choices<'_>) -> StoreError {
    let fault = *choices.pick(&[Fault::Unreachable, Fault::Forbidden, Fault::Internal]);
    let certainty = if choices.once_in(2) {
        Certainty::NotApplied
    } else {
        Certainty::Unknown
    };
    StoreError {
        fault,
        certainty,
        message: "no".to_owned(),
    }
}

fn first_token() -> FencingToken {
    FencingToken::new(1).expect("1 is a token")
}
