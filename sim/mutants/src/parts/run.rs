use super::build::{Built, build};
use super::judge::{complaint, judge};
use super::plant::PartCopy;
use super::{Part, PartRow, check_part_rows, part_rows, trial};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What to try, and for how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartOptions {
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// The planted bugs. Default: all of [`part_rows`].
    pub rows: &'static [PartRow],
    /// Only rows of the part of this name.
    pub part: Option<String>,
    /// Only rows whose name contains one of these texts; all, if there are none.
    pub only: Vec<String>,
    /// Longest time for the tests of one row. Default: 300 s.
    pub limit: Duration,
}

impl Default for PartOptions {
    /// Every row of the workspace that this program was built in.
    fn default() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self {
            workspace: root.canonicalize().unwrap_or(root),
            rows: part_rows(),
            part: None,
            only: Vec::new(),
            limit: Duration::from_secs(300),
        }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug)]
pub enum PartProgress<'a> {
    /// The copy without a bug is being built.
    Building,
    /// The copy is being tested without a bug.
    TestingWithoutBugs {
        /// The part.
        part: &'static Part,
        /// How many tests.
        tests: usize,
    },
    /// A row is being tried.
    Trying {
        /// The row.
        row: &'static PartRow,
        /// How many rows are done, of how many.
        done: [usize; 2],
    },
    /// A row is done.
    Done(&'a PartVerdict),
}

/// What became of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartVerdict {
    /// The row.
    pub row: &'static PartRow,
    /// What became of it.
    pub outcome: PartOutcome,
}

/// What became of a planted bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartOutcome {
    /// Tests noticed it.
    Caught {
        /// Which; never empty.
        by: Vec<String>,
        /// How long all tests took that the row names.
        seconds: Duration,
    },
    /// Every test passed.
    Survived,
    /// The part or its tests do not compile: that says nothing.
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

/// Plants one bug after the other, and has the tests of its part look for it.
///
/// # Errors
/// A row that is out of date or names no test; a copy that does not build, or does not pass the tests without
/// a bug.
pub fn run_parts(
    options: &PartOptions,
    progress: &mut dyn FnMut(PartProgress<'_>),
) -> Result<Vec<PartVerdict>, Vec<Error>> {
    let asked = asked(options)?;
    let read = |file: &str| std::fs::read_to_string(options.workspace.join(file)).ok();
    check_part_rows(options.rows, read)?;
    let campaign = Campaign {
        copy: PartCopy::new(&options.workspace, options.rows).map_err(|error| vec![error])?,
        installed: installed(&options.workspace),
        limit: options.limit,
    };
    progress(PartProgress::Building);
    let tests = campaign.tests_of(&asked)?;
    campaign
        .pass_without_bugs(&asked, &tests, progress)
        .map_err(|error| vec![error])?;
    let verdicts = campaign.try_all(&asked, &tests, progress);
    let verdicts = verdicts.map_err(|error| vec![error])?;
    campaign.copy.clean().map_err(|error| vec![error])?;
    Ok(verdicts)
}

fn asked(options: &PartOptions) -> Result<Vec<&'static PartRow>, Vec<Error>> {
    let of_part = |row: &&'static PartRow| options.part.as_deref().is_none_or(|part| row.part.name == part);
    let rows: Vec<&'static PartRow> = options.rows.iter().filter(of_part).collect();
    let unknown = |text: &String| Error::UnknownRow(text.clone());
    if rows.is_empty() {
        return Err(options.part.iter().map(unknown).collect());
    }
    let is_none = |only: &&String| !rows.iter().any(|row| row.name.contains(only.as_str()));
    let errors: Vec<Error> = options.only.iter().filter(is_none).map(unknown).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let is_asked = |row: &&'static PartRow| {
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
    copy: PartCopy,
    installed: PathBuf,
    limit: Duration,
}

/// The tests that look for something: for each program of their part, in the order of the programs, those of
/// it.
type Tests = Vec<Vec<String>>;

impl Campaign {
    /// The tests that each of these rows names, of the copy without a bug.
    fn tests_of(&self, asked: &[&'static PartRow]) -> Result<Vec<Tests>, Vec<Error>> {
        let mut all = BTreeMap::<&'static Part, Tests>::new();
        for row in asked {
            if !all.contains_key(row.part) {
                let listed = self.tests_of_part(row.part).map_err(|error| vec![error])?;
                all.insert(row.part, listed);
            }
        }
        let (mut tests, mut errors) = (Vec::new(), Vec::new());
        for row in asked {
            let programs = &all[row.part];
            for begins in row.noticed_by {
                if !programs.iter().flatten().any(|test| test.starts_with(begins)) {
                    errors.push(Error::NoTest {
                        row: row.name,
                        begins,
                    });
                }
            }
            let is_named = |test: &&String| row.noticed_by.iter().any(|begins| test.starts_with(begins));
            let named = programs
                .iter()
                .map(|tests| tests.iter().filter(is_named).cloned().collect());
            tests.push(named.collect());
        }
        if errors.is_empty() { Ok(tests) } else { Err(errors) }
    }

    /// All tests of a part.
    fn tests_of_part(&self, part: &Part) -> Result<Tests, Error> {
        let programs = build(&self.copy, part)?.map_err(Error::DoesNotCompile)?;
        let folder = self.copy.root.join(part.folder);
        let listed = programs.iter().map(|program| trial::list(program, &folder));
        listed.collect()
    }

    /// Tests that cry without a bug would catch every one.
    fn pass_without_bugs(
        &self,
        asked: &[&'static PartRow],
        tests: &[Tests],
        progress: &mut dyn FnMut(PartProgress<'_>),
    ) -> Result<(), Error> {
        let mut of_parts = BTreeMap::<&'static Part, Vec<BTreeSet<&String>>>::new();
        for (row, tests) in asked.iter().zip(tests) {
            let of_part = of_parts.entry(row.part).or_default();
            of_part.resize_with(tests.len(), BTreeSet::new);
            for (all, tests) in of_part.iter_mut().zip(tests) {
                all.extend(tests);
            }
        }
        for (part, tests) in of_parts {
            let programs = build(&self.copy, part)?.map_err(Error::DoesNotCompile)?;
            let tests: Tests = tests
                .into_iter()
                .map(|tests| tests.into_iter().cloned().collect())
                .collect();
            progress(PartProgress::TestingWithoutBugs {
                part,
                tests: tests.iter().map(Vec::len).sum(),
            });
            if let Some(said) = complaint(&self.run(part, &programs, &tests)?) {
                let said = format!("{}: {said}", part.name);
                return Err(Error::NotCleanWithoutBugs { said });
            }
        }
        Ok(())
    }

    /// One row after the other. While the tests of one wait for their servers, the next is built.
    fn try_all(
        &self,
        asked: &[&'static PartRow],
        tests: &[Tests],
        progress: &mut dyn FnMut(PartProgress<'_>),
    ) -> Result<Vec<PartVerdict>, Error> {
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
                progress(PartProgress::Trying {
                    row,
                    done: [verdicts.len(), asked.len()],
                });
                let outcome = match built? {
                    Err(words) => PartOutcome::DoesNotCompile { words },
                    Ok(programs) => {
                        let ran = self.run(row.part, &programs, tests)?;
                        for program in programs {
                            fs::remove_file(&program).map_err(|error| Error::system(&program, &error))?;
                        }
                        judge(&ran)
                    }
                };
                let verdict = PartVerdict { row, outcome };
                progress(PartProgress::Done(&verdict));
                verdicts.push(verdict);
            }
            Ok(verdicts)
        })
    }

    /// The programs of the tests with this bug, put aside as the next are built in their place; the
    /// compiler's words if there are none.
    fn build_row(&self, place: usize, row: &'static PartRow) -> Result<Built, Error> {
        self.copy.plant(row)?;
        let programs = match build(&self.copy, row.part)? {
            Ok(programs) => programs,
            Err(words) => return Ok(Err(words)),
        };
        let aside = programs.iter().enumerate().map(|(number, program)| {
            let name = format!("{}-{place}-{number}", row.part.name);
            let aside = self.copy.target.join(name);
            fs::copy(program, &aside).map_err(|error| Error::system(&aside, &error))?;
            Ok(aside)
        });
        aside.collect::<Result<_, _>>().map(Ok)
    }

    fn run(&self, part: &Part, programs: &[PathBuf], tests: &Tests) -> Result<trial::Ran, Error> {
        let folder = self.copy.root.join(part.folder);
        let of_programs: Vec<(&Path, &[String])> = programs
            .iter()
            .map(PathBuf::as_path)
            .zip(tests.iter().map(Vec::as_slice))
            .collect();
        trial::run(&of_programs, &folder, &self.installed, self.limit)
    }
}
