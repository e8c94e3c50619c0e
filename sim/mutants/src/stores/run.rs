use super::build::build;
use super::judge::{complaint, judge};
use super::plant::StoreCopy;
use super::{StoreRow, check_store_rows, store_rows, trial};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What to try, and for how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreOptions {
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// The planted bugs. Default: all of [`store_rows`].
    pub rows: &'static [StoreRow],
    /// Only rows of this store.
    pub store: Option<String>,
    /// Only rows whose name contains one of these texts; all, if there are none.
    pub only: Vec<String>,
    /// Longest time for the tests of one row. Default: 300 s.
    pub limit: Duration,
}

impl Default for StoreOptions {
    /// Every row of the workspace that this program was built in.
    fn default() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self {
            workspace: root.canonicalize().unwrap_or(root),
            rows: store_rows(),
            store: None,
            only: Vec::new(),
            limit: Duration::from_secs(300),
        }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug)]
pub enum StoreProgress<'a> {
    /// The copy without a bug is being built.
    Building,
    /// The copy is being tested without a bug.
    TestingWithoutBugs {
        /// The store.
        store: &'static str,
        /// How many tests.
        tests: usize,
    },
    /// A row is being tried.
    Trying {
        /// The row.
        row: &'static StoreRow,
        /// How many rows are done, of how many.
        done: [usize; 2],
    },
    /// A row is done.
    Done(&'a StoreVerdict),
}

/// What became of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreVerdict {
    /// The row.
    pub row: &'static StoreRow,
    /// What became of it.
    pub outcome: StoreOutcome,
}

/// What became of a wrong statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreOutcome {
    /// Tests noticed it.
    Caught {
        /// Which; never empty.
        by: Vec<String>,
        /// How long all tests took that the row names.
        seconds: Duration,
    },
    /// Every test passed.
    Survived,
    /// The store or its tests do not compile: that says nothing.
    DoesNotCompile {
        /// The compiler's first words.
        words: String,
    },
    /// The tests took too long: that says nothing.
    TimeUp,
    /// The tests ended in another way: that says nothing.
    Failed {
        /// How.
        why: String,
    },
}

/// Plants one bug after the other, and has the tests of its store look for it.
///
/// # Errors
/// A row that is out of date or names no test; a copy that does not build, or does not pass the tests without a bug.
pub fn run_stores(
    options: &StoreOptions,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<Vec<StoreVerdict>, Vec<Error>> {
    let asked = asked(options)?;
    let read = |file: &str| std::fs::read_to_string(options.workspace.join(file)).ok();
    check_store_rows(options.rows, read)?;
    let campaign = Campaign {
        copy: StoreCopy::new(&options.workspace, options.rows).map_err(|error| vec![error])?,
        installed: installed(&options.workspace),
        limit: options.limit,
    };
    progress(StoreProgress::Building);
    let tests = campaign.tests_of(&asked)?;
    campaign
        .pass_without_bugs(&asked, &tests, progress)
        .map_err(|error| vec![error])?;
    let verdicts = campaign.try_all(&asked, &tests, progress);
    let verdicts = verdicts.map_err(|error| vec![error])?;
    campaign.copy.clean().map_err(|error| vec![error])?;
    Ok(verdicts)
}

fn asked(options: &StoreOptions) -> Result<Vec<&'static StoreRow>, Vec<Error>> {
    let of_store = |row: &&'static StoreRow| options.store.as_deref().is_none_or(|store| row.store == store);
    let rows: Vec<&'static StoreRow> = options.rows.iter().filter(of_store).collect();
    let unknown = |text: &String| Error::UnknownRow(text.clone());
    if rows.is_empty() {
        return Err(options.store.iter().map(unknown).collect());
    }
    let is_none = |only: &&String| !rows.iter().any(|row| row.name.contains(only.as_str()));
    let errors: Vec<Error> = options.only.iter().filter(is_none).map(unknown).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let is_asked = |row: &&'static StoreRow| {
        options.only.is_empty() || options.only.iter().any(|only| row.name.contains(only.as_str()))
    };
    Ok(rows.into_iter().filter(is_asked).collect())
}

/// The target folder in which the servers of tests are installed: that of whoever runs this.
fn installed(workspace: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => workspace.join(folder),
        None => workspace.join("target"),
    }
}

struct Campaign {
    copy: StoreCopy,
    installed: PathBuf,
    limit: Duration,
}

impl Campaign {
    /// The tests that each of these rows names, of the copy without a bug.
    fn tests_of(&self, asked: &[&'static StoreRow]) -> Result<Vec<Vec<String>>, Vec<Error>> {
        let built = build(&self.copy).map_err(|error| vec![error])?;
        let programs = built.map_err(|words| vec![Error::DoesNotCompile(words)])?;
        let mut all = BTreeMap::new();
        for row in asked {
            if !all.contains_key(row.store) {
                let folder = self.copy.root.join(row.folder());
                let listed = trial::list(&programs[row.store], &folder).map_err(|error| vec![error])?;
                all.insert(row.store, listed);
            }
        }
        let (mut tests, mut errors) = (Vec::new(), Vec::new());
        for row in asked {
            for begins in row.noticed_by {
                if !all[row.store].iter().any(|test| test.starts_with(begins)) {
                    errors.push(Error::NoTest {
                        row: row.name,
                        begins,
                    });
                }
            }
            let is_named = |test: &&String| row.noticed_by.iter().any(|begins| test.starts_with(begins));
            tests.push(all[row.store].iter().filter(is_named).cloned().collect());
        }
        if errors.is_empty() { Ok(tests) } else { Err(errors) }
    }

    /// Tests that cry without a bug would catch every one.
    fn pass_without_bugs(
        &self,
        asked: &[&'static StoreRow],
        tests: &[Vec<String>],
        progress: &mut dyn FnMut(StoreProgress<'_>),
    ) -> Result<(), Error> {
        let mut of_store: BTreeMap<&'static str, BTreeSet<&String>> = BTreeMap::new();
        for (row, tests) in asked.iter().zip(tests) {
            of_store.entry(row.store).or_default().extend(tests);
        }
        let programs = build(&self.copy)?.map_err(Error::DoesNotCompile)?;
        for (store, tests) in of_store {
            let tests: Vec<String> = tests.into_iter().cloned().collect();
            progress(StoreProgress::TestingWithoutBugs {
                store,
                tests: tests.len(),
            });
            let ran = self.run(store, &programs[store], &tests)?;
            if let Some(said) = complaint(&ran) {
                let said = format!("{store}: {said}");
                return Err(Error::NotCleanWithoutBugs { said });
            }
        }
        Ok(())
    }

    /// One row after the other. While the tests of one wait for their servers, the next is built.
    fn try_all(
        &self,
        asked: &[&'static StoreRow],
        tests: &[Vec<String>],
        progress: &mut dyn FnMut(StoreProgress<'_>),
    ) -> Result<Vec<StoreVerdict>, Error> {
        let mut verdicts = Vec::with_capacity(asked.len());
        thread::scope(|scope| {
            let (sender, built) = mpsc::sync_channel(0);
            scope.spawn(move || {
                for (place, row) in asked.iter().enumerate() {
                    if sender.send(self.build_row(place, row)).is_err() {
                        return;
                    }
                }
            });
            for ((row, tests), built) in asked.iter().copied().zip(tests).zip(built) {
                progress(StoreProgress::Trying {
                    row,
                    done: [verdicts.len(), asked.len()],
                });
                let outcome = match built? {
                    Err(words) => StoreOutcome::DoesNotCompile { words },
                    Ok(program) => {
                        let ran = self.run(row.store, &program, tests)?;
                        fs::remove_file(&program).map_err(|error| Error::system(&program, &error))?;
                        judge(&ran)
                    }
                };
                let verdict = StoreVerdict { row, outcome };
                progress(StoreProgress::Done(&verdict));
                verdicts.push(verdict);
            }
            Ok(verdicts)
        })
    }

    /// The program of the tests with this bug, put aside as the next is built in its place; the compiler's words if there is none.
    fn build_row(&self, place: usize, row: &'static StoreRow) -> Result<Result<PathBuf, String>, Error> {
        self.copy.plant(row)?;
        let programs = match build(&self.copy)? {
            Ok(programs) => programs,
            Err(words) => return Ok(Err(words)),
        };
        let aside = self.copy.target.join(format!("{}-{place}", row.store));
        fs::copy(&programs[row.store], &aside).map_err(|error| Error::system(&aside, &error))?;
        Ok(Ok(aside))
    }

    fn run(&self, store: &str, program: &Path, tests: &[String]) -> Result<trial::Ran, Error> {
        let folder = self.copy.root.join("stores").join(store);
        trial::run(program, &folder, &self.installed, tests, self.limit)
    }
}
