//! `tenure run`: wait, lead, run, give back.

mod chronicle;
mod cooldown;
mod giving_back;
mod opening;
mod order;
mod seeing;
mod signs;
mod story;
mod turn;
mod waiting;

use crate::arguments::{Again, CareArguments, Patience, RunArguments};
use crate::endpoint::Board;
use crate::exit::{Code, End, Failure, of_signal};
use crate::manager;
use crate::output::{Voice, unless_url};
use crate::place::{Credentials, Place};
use crate::supervise::{Hooks, Job, Signals, adopt_orphans, spare_children};
use crate::warden::tree::shows_own_processes;
use chronicle::Chronicle;
use clap::ArgMatches;
use cooldown::{Cooldown, Next};
use opening::Opened;
use seeing::{Seeing, Told};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure::tooling::{Candidacy, default_candidate_id};
use tenure::{
    BuildError, CandidateId, Election, ElectionBuilder, LeaseName, LockManager, LockTimingOptions, Priority,
    SharedStore, Timing,
};
use turn::{Taken, Turn};

/// How many request time-outs to wait for the release, and for leaving without one: an answer that does not
/// come by then will hardly come, and the lease expires by itself.
const LEAVING_REQUESTS: u32 = 2;

/// The longest wait for leaving without a release, however long the ttl: whoever has given up, or was asked
/// to end, has nothing left to do.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs the command while this process leads; answers how to end.
pub(crate) async fn run(
    mut arguments: RunArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<End, Failure> {
    let again = arguments.again(matches)?;
    let patience = arguments.patience(matches)?;
    arguments.care.settle(again, matches)?;
    let name = LeaseName::new(arguments.given_name(matches)?)?;
    let wishes = Wishes {
        kind: Kind::Election,
        name,
        candidate: arguments.label(matches),
        again,
        patience,
        queue: arguments.priority.map_or(Queue::None, Queue::ByPriority),
    };
    undertake(arguments, wishes, store, voice).await
}

/// What the arguments of a command come to.
pub(super) struct Wishes {
    pub(super) kind: Kind,
    pub(super) name: LeaseName,
    /// Its label, if it was given one.
    pub(super) candidate: Option<String>,
    pub(super) again: Again,
    pub(super) patience: Patience,
    pub(super) queue: Queue,
}

/// What the lease is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// One of a few elections.
    Election,
    /// A lock, whose name may be one of any number: nothing that outlives it is told under that.
    Lock,
}

impl Kind {
    /// That this process wants the lease from now on.
    fn candidacy(self, name: &LeaseName) -> Candidacy {
        match self {
            Self::Election => Candidacy::of_election(name),
            Self::Lock => Candidacy::of_lock(name),
        }
    }

    fn build(
        self,
        mut builder: ElectionBuilder,
        trace: Option<&Path>,
        candidate: &CandidateId,
    ) -> Result<Election, Failure> {
        if let Some(path) = trace {
            builder = builder.trace(created(path)?);
        }
        builder = builder.candidate(candidate.as_str());
        match self {
            Self::Election => Ok(builder.build()?),
            Self::Lock => Ok(builder.metrics_with_all_locks().build()?),
        }
    }
}

/// Whether there is an order among those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    /// Whoever asks first when it is free.
    None,
    /// First come, first served.
    Fair,
    /// The highest priority first, and of equals first come, first served.
    ByPriority(Priority),
}

impl Queue {
    /// The priority in the queue, if there is one.
    fn priority(self) -> Option<Priority> {
        match self {
            Self::None => None,
            Self::Fair => Some(Priority::default()),
            Self::ByPriority(priority) => Some(priority),
        }
    }
}

/// Runs the command while this process leads; answers how to end.
pub(super) async fn undertake(
    mut arguments: RunArguments,
    mut wishes: Wishes,
    store: Option<&str>,
    voice: Voice,
) -> Result<End, Failure> {
    let name = wishes.name.clone();
    let of_lease = |failure: Failure| failure.of_lease(name.as_str());
    let timing = arguments
        .timing
        .timing()
        .map_err(|error| of_lease(error.into()))?;
    let seeing = Seeing::open(std::mem::take(&mut arguments.metrics)).map_err(of_lease)?;
    // Before anybody campaigns: a command that cannot run must not cost the others their turn.
    let mut job = Job::new(&arguments.command, name.as_str())?;
    look_after(&mut job, &arguments.care).map_err(of_lease)?;
    let place = Place::find(store)?;
    let signals = take_charge(voice).map_err(of_lease)?;
    manager::tell_life();
    let board = Arc::new(Board::new(name.clone()));
    let candidate = wishes.candidate.take();
    let candidate = candidate.map_or_else(|| Ok(default_candidate_id()), CandidateId::new);
    let candidate = candidate.map_err(|error| of_lease(BuildError::Name(error).into()))?;
    let mut told = seeing
        .serve(&board)
        .and_then(|seeing| seeing.record(&candidate))
        .map_err(of_lease)?;
    let mut candidacy = wishes.kind.candidacy(&name);
    let pursuit = Pursuit {
        arguments,
        wishes,
        candidate,
        timing,
        place,
        job,
        board,
        voice,
    };
    let ended = pursue(pursuit, &mut told, &mut candidacy, signals).await;
    // Also what has failed is told to the end: that nobody here wants the lease any more.
    drop(candidacy);
    told.close().await;
    ended
}

/// What is to be done, and all that is there for it before the store is.
struct Pursuit {
    arguments: RunArguments,
    wishes: Wishes,
    candidate: CandidateId,
    timing: Timing,
    place: Place,
    job: Job,
    board: Arc<Board>,
    voice: Voice,
}

/// Opens the store, campaigns and runs the command.
async fn pursue(
    pursuit: Pursuit,
    told: &mut Told,
    candidacy: &mut Candidacy,
    mut signals: Signals,
) -> Result<End, Failure> {
    let Pursuit {
        arguments,
        wishes,
        candidate,
        timing,
        place,
        mut job,
        board,
        voice,
    } = pursuit;
    let (name, kind, patience) = (wishes.name, wishes.kind, wishes.patience);
    let of_lease = |failure: Failure| failure.of_lease(name.as_str());
    let asked = opening::Asked {
        place: &place,
        name: &name,
        patience,
        timing: &timing,
    };
    let opened = opening::open(asked, candidacy, voice);
    let Opened { store, waiting } = match signals.unless_ended(opened).await {
        Ok(opened) => opened.map_err(of_lease)?,
        Err(signal) => return Ok(signals.ending(of_signal(signal.as_raw()))),
    };
    // Never closed: the last one to close an SQLite file moves its log into it, which costs two flushes of
    // the disk after the job has ended, for nothing. The log is as safe, and the next to open it goes on with
    // it.
    std::mem::forget(store.clone());
    let priority = wishes.queue.priority();
    let builder = Election::builder(&name, store.clone())
        .timing(timing)
        .note(arguments.note);
    let election = kind.build(builder, arguments.trace.as_deref(), &candidate);
    let election = election.map_err(of_lease)?;
    let credentials = if arguments.share_credentials {
        Credentials::Shared
    } else {
        Credentials::Withheld
    };
    introduce(&mut job, &election, &place, credentials);
    board.opened(election.candidate().clone(), store.clone());
    told.begin(kind, &board, &election, place, voice)
        .map_err(of_lease)?;
    // One attempt has no place in the queue: it would hold up who came after.
    let in_queue_by = priority.filter(|_| patience != Patience::OneAttempt);
    let queue = in_queue_by.map(|priority| in_queue(store.clone(), &election, priority).map_err(of_lease));
    let queue = queue.transpose()?;
    let chronicle = (!arguments.no_history).then(|| Chronicle::new(store.clone(), &election));
    let cooldown = Cooldown::new(&arguments.care);
    let mut turn = Turn {
        election: &election,
        before: Some(waiting),
        queue: queue.as_ref(),
        looks_for_life: signs::are_needed(&store, patience),
        store,
        priority,
        hooks: Hooks::new(arguments.care.hooks(), voice),
        chronicle,
        spans: told.spans(),
        yields: arguments.preempt,
        events: election.events(),
        board: &board,
        job: &job,
        signals,
        voice,
        patience,
        linger: arguments.linger,
        conflict_code: arguments.conflict_exit_code,
    };
    manager::ready();
    let outcome = match take_turns(&mut turn, wishes.again, cooldown).await {
        Outcome::Ends(outcome) => outcome,
        // It would be renewed for as long as this process lives, and released when it is dropped.
        Outcome::Keeps(failure) => {
            turn.hooks.ended().await;
            std::mem::forget(election);
            return Err(failure);
        }
    };
    manager::stopping();
    let (hooks, mut signals) = (turn.hooks, turn.signals);
    leave(election, queue, &timing, &mut signals).await;
    hooks.ended().await;
    outcome.map(|code| signals.ending(code))
}

/// Before anything is held: it can find what the work starts, no signal ends this process unheard, nobody who
/// reads no messages holds it up, and it knows who of those below it is none of the work.
fn take_charge(voice: Voice) -> Result<Signals, Failure> {
    if !shows_own_processes() {
        return Err(Failure::new(
            Code::Configuration,
            "/proc does not show the processes of this PID namespace, so that what the command starts would not be found and \
             ended; mount one of this namespace (mount -t proc proc /proc, or unshare --mount-proc)",
        ));
    }
    let signals = Signals::take_in()?;
    voice.aside()?;
    adopt_orphans();
    spare_children();
    Ok(signals)
}

/// Says how to find out whether the command is well.
fn look_after(job: &mut Job, care: &CareArguments) -> Result<(), Failure> {
    if let Some(health) = care.health() {
        job.ask(health);
    }
    match care.heartbeat() {
        Some(heartbeat) => job.expect(heartbeat),
        None => Ok(()),
    }
}

/// How the turns of a process end.
enum Outcome {
    /// With this.
    Ends(Result<u8, Failure>),
    /// With a term that is not given back.
    Keeps(Failure),
}

/// Takes one turn after another, as long as there is to be another.
async fn take_turns(turn: &mut Turn<'_>, again: Again, mut cooldown: Cooldown) -> Outcome {
    loop {
        let shown = turn.job.shown();
        let taken = turn.take().await;
        // One that came while the term was ending anyway has changed nothing about how it ended; no other
        // begins.
        let taken = match turn.signals.end() {
            Some(signal) => taken.and_then(|taken| taken.ended_by(again, signal)),
            None => taken,
        };
        let pause = match taken {
            Ok(Taken::Done(code) | Taken::Signalled(code)) => return Outcome::Ends(Ok(code)),
            Ok(Taken::Finished(code, ran)) => match cooldown.after_end(code, ran) {
                Next::End => return Outcome::Ends(Ok(code)),
                Next::Again(out) => {
                    turn.stay_out(&format!("{shown} ended with code {code}"), out)
                        .await
                }
            },
            Ok(Taken::Unwell(ran)) if again == Again::Keep || cooldown.restarts() => {
                let out = cooldown.after_failure(ran);
                turn.stay_out(&format!("{shown} was not well"), out).await
            }
            Ok(Taken::Unwell(_)) => return Outcome::Ends(Ok(Code::Lost.number())),
            Ok(Taken::NotStarted(failure, ran)) if is_tried_again(&failure, again, &cooldown) => {
                turn.say_not_started(&failure);
                let out = cooldown.after_failure(ran);
                turn.stay_out(&format!("{shown} could not be started"), out).await
            }
            Ok(Taken::Lost | Taken::HandedOver) if again == Again::Once => {
                return Outcome::Ends(Ok(Code::Lost.number()));
            }
            Ok(Taken::Lost) => Ok(()),
            // Whoever asked wants another to lead: it gets a renewal interval's start.
            Ok(Taken::HandedOver) => {
                let start = tokio::time::sleep(turn.election.timing().renew_every());
                let started = turn.signals.unless_ended(start).await;
                started.map_err(|signal| of_signal(signal.as_raw()))
            }
            Ok(Taken::Kept(failure)) => return Outcome::Keeps(failure),
            Ok(Taken::NotStarted(failure, _)) | Err(failure) => return Outcome::Ends(Err(failure)),
        };
        if let Err(code) = pause {
            return Outcome::Ends(Ok(code));
        }
    }
}

/// Whether the command, which could not be started for this, is to have another turn. One that was not found,
/// or cannot be executed, is as one that has ended with that code: a file that is being replaced is there
/// again soon, and a person who has made a mistake has asked for restarts. What this host lacks, processes or
/// memory for one, says nothing of the command, and passes.
fn is_tried_again(failure: &Failure, again: Again, cooldown: &Cooldown) -> bool {
    let is_of_command = [Code::NotFound, Code::NotExecutable]
        .map(Code::number)
        .contains(&failure.code);
    cooldown.restarts() || again == Again::Keep && !is_of_command
}

/// Ends what may be held unknown to this process; it expires by itself if the store does not answer.
async fn leave(election: Election, queue: Option<LockManager>, timing: &Timing, signals: &mut Signals) {
    let patience = (timing.request_timeout() * LEAVING_REQUESTS).min(LEAVING_TIME_MAX);
    if let Some(queue) = queue {
        let _left_to_expire = signals.wait_at_the_end(patience, queue.close()).await;
    }
    let _left_to_expire = signals.wait_at_the_end(patience, election.close()).await;
}

/// What waits in the queue of an election's lease, under the same name.
fn in_queue(store: SharedStore, election: &Election, priority: Priority) -> Result<LockManager, Failure> {
    let ttl = election.timing().ttl().duration();
    let timing = LockTimingOptions::new(ttl).check()?;
    let queue = LockManager::builder(store)
        .candidate(election.candidate().id.as_str())
        .timing(timing)
        .priority(priority)
        .without_metrics()
        .build()?;
    Ok(queue)
}

/// Tells the command of this candidate and of the store, and its warden how to give the lease back.
fn introduce(job: &mut Job, election: &Election, place: &Place, credentials: Credentials) {
    let candidate = election.candidate();
    job.tell("TENURE_CANDIDATE", candidate.id.as_str());
    job.tell("TENURE_STORE", place.for_command(credentials));
    job.claim(
        place.for_command(Credentials::Shared),
        candidate.incarnation.bits(),
    );
}

/// The file of a new trace.
///
/// # Errors
/// It is there already, or cannot be made. Nothing was started.
fn created(path: &Path) -> Result<File, Failure> {
    tenure::trace::create(path).map_err(|error| {
        let way_out = if error.kind() == ErrorKind::AlreadyExists {
            "a trace is never overwritten; name a new file, such as one with $$ in its name"
        } else {
            "name a file in a folder that you may write to"
        };
        let shown = unless_url(&path.to_string_lossy());
        Failure::new(
            Code::Configuration,
            format!("--trace \"{shown}\": {error}; {way_out}"),
        )
    })
}
