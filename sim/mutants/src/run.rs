use crate::{Checked, Checker, Error, Row, build, check, copy, rows, test};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a checker looks at the copy without a bug, at least.
const CLEAN_MIN: Duration = Duration::from_secs(10);

/// What to try, and for how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// The planted bugs. Default: all of [`rows`].
    pub rows: &'static [Row],
    /// Only rows whose name contains this text.
    pub only: Option<String>,
    /// Longest time for one checker on one row. Default: 60 s.
    pub limit: Duration,
    /// What the copy must pass for any row to count. Default: the usual.
    pub form: Form,
    /// How many rows are tried at a time. Each takes one core. Default: as many as there are cores.
    pub workers: NonZero<usize>,
}

/// What a copy with no bug switched on must pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Both checkers.
    Usual,
    /// The core's own tests, too: planting has changed nothing else.
    Long,
}

impl Default for Options {
    /// Every row of the workspace that this program was built in, 60 s each, one on each core.
    fn default() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self {
            workspace: root.canonicalize().unwrap_or(root),
            rows: rows(),
            only: None,
            limit: Duration::from_secs(60),
            form: Form::Usual,
            workers: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
        }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The copy is being built, with this many bugs planted; in the long form it is tested, too.
    Building {
        /// All rows, whatever was asked for: there is one copy.
        planted: usize,
    },
    /// The copy is being checked with no bug switched on.
    CheckingWithoutBugs(Checker),
    /// A row is being tried.
    Trying {
        /// The row.
        row: &'static Row,
        /// By whom.
        by: Checker,
        /// How many rows are done, of how many.
        done: [usize; 2],
    },
    /// A row is done.
    Done(&'a Verdict),
}

/// What became of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The row.
    pub row: &'static Row,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a planted bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A checker found a violation.
    Caught {
        /// Which.
        by: Checker,
        /// How long it took, from the start of its process.
        seconds: Duration,
        /// The invariant that was violated.
        invariant: String,
        /// What it said about it.
        detail: String,
    },
    /// Neither checker noticed: an equivalent bug, or a blind spot.
    Survived,
    /// Neither noticed, and one of them ended in another way than by looking: no verdict.
    Failed {
        /// Which.
        by: Checker,
        /// How.
        why: String,
    },
}

/// Plants every bug in one copy, builds it once, and lets the checkers look for each asked-for bug.
///
/// # Errors
/// See [`Error`]; all that are found before the build, at once. A bug that is not caught is no error here but
/// a [`Verdict`].
pub fn run(options: &Options, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Vec<Verdict>, Vec<Error>> {
    let only = options.only.as_deref().unwrap_or_default();
    let asked: Vec<(usize, &'static Row)> = (1..)
        .zip(options.rows)
        .filter(|(_, row)| row.name.contains(only))
        .collect();
    if asked.is_empty() {
        return Err(vec![Error::UnknownRow(only.to_owned())]);
    }
    progress(Progress::Building {
        planted: options.rows.len(),
    });
    let copy = copy(&options.workspace, options.rows)?;
    let program = build(&copy).map_err(|error| vec![error])?;
    if options.form == Form::Long {
        test(&copy).map_err(|error| vec![error])?;
    }
    let try_for = |limit, checker, number| check(&program, &copy.root, checker, number, limit);
    let try_once = |checker, number| try_for(options.limit, checker, number);
    let verdicts = try_all(&asked, &try_once, options.workers, progress).map_err(|error| vec![error])?;
    let try_clean = |checker| try_for(clean_time(checker, &verdicts).min(options.limit), checker, 0);
    clean_without_bugs(&try_clean, progress).map_err(|error| vec![error])?;
    Ok(verdicts)
}

/// What a worker tells.
enum News {
    Trying(&'static Row, Checker),
    Done(usize, Result<Verdict, Error>),
}

/// Several rows at a time; the verdicts in the order of the rows.
fn try_all(
    asked: &[(usize, &'static Row)],
    try_once: Try<'_>,
    workers: NonZero<usize>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Verdict>, Error> {
    let next = AtomicUsize::new(0);
    let (sender, news) = mpsc::channel();
    let mut verdicts: Vec<Option<Verdict>> = vec![None; asked.len()];
    thread::scope(|scope| {
        for _ in 0..workers.get().min(asked.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((place, (number, row))) = take(next, asked) {
                    let trying = &mut |by| drop(sender.send(News::Trying(row, by)));
                    let outcome = judge(number, row, try_once, trying);
                    let verdict = outcome.map(|outcome| Verdict { row, outcome });
                    if sender.send(News::Done(place, verdict)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut done = 0;
        for heard in news {
            match heard {
                News::Trying(row, by) => {
                    let done = [done, asked.len()];
                    progress(Progress::Trying { row, by, done });
                }
                News::Done(place, verdict) => {
                    let verdict = verdict?;
                    progress(Progress::Done(&verdict));
                    verdicts[place] = Some(verdict);
                    done += 1;
                }
            }
        }
        Ok(verdicts.into_iter().flatten().collect())
    })
}

/// The next row that nobody has tried.
fn take<'a>(
    next: &AtomicUsize,
    asked: &'a [(usize, &'static Row)],
) -> Option<(usize, (usize, &'static Row))> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    asked.get(place).map(|asked: &'a _| (place, *asked))
}

type Try<'a> = &'a (dyn Fn(Checker, usize) -> Result<(Checked, Duration), Error> + Sync);

/// How long a checker must look at the copy without a bug: a little longer than its slowest catch. Both look
/// at the same things in the same order.
fn clean_time(checker: Checker, verdicts: &[Verdict]) -> Duration {
    let catches = verdicts.iter().map(|verdict| match &verdict.outcome {
        Outcome::Caught { by, seconds, .. } if *by == checker => *seconds,
        _ => Duration::ZERO,
    });
    CLEAN_MIN.max(catches.max().unwrap_or_default() * 5 / 4)
}

/// A checker that cries without a bug would catch every one: both look at once, and neither may find
/// anything.
fn clean_without_bugs(
    try_clean: &(dyn Fn(Checker) -> Result<(Checked, Duration), Error> + Sync),
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Error> {
    thread::scope(|scope| {
        let tried = [Checker::Model, Checker::Simulator].map(|checker| {
            progress(Progress::CheckingWithoutBugs(checker));
            (checker, scope.spawn(move || try_clean(checker)))
        });
        for (checker, tried) in tried {
            let checked = tried.join().unwrap_or_else(|panic| resume_unwind(panic));
            let said = match checked?.0 {
                Checked::Clean | Checked::TimeUp => continue,
                Checked::Violation { invariant, detail } => format!("{checker}: {invariant}: {detail}"),
                Checked::Failed { why } => format!("{checker}: {why}"),
            };
            return Err(Error::NotCleanWithoutBugs { said });
        }
        Ok(())
    })
}

fn judge(
    number: usize,
    row: &Row,
    try_once: Try<'_>,
    trying: &mut dyn FnMut(Checker),
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::Survived;
    for by in row.first.and_the_other() {
        trying(by);
        match try_once(by, number)? {
            (Checked::Violation { invariant, detail }, seconds) => {
                return Ok(Outcome::Caught {
                    by,
                    seconds,
                    invariant,
                    detail,
                });
            }
            (Checked::Failed { why }, _) => outcome = Outcome::Failed { by, why },
            (Checked::Clean | Checked::TimeUp, _) => {}
        }
    }
    Ok(outcome)
}
