use std::fmt;
use std::path::{Path, PathBuf};

/// Why planted bugs could not be tried. None of these says anything about the product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The words of a row are not found exactly once in its file: the source has moved on.
    OutOfDate {
        /// The row.
        row: &'static str,
        /// The file.
        file: &'static str,
        /// How often they were found.
        found: usize,
    },
    /// Two rows want to rewrite parts of one another's words.
    Overlap {
        /// The two rows.
        rows: [&'static str; 2],
        /// The file.
        file: &'static str,
    },
    /// Two rows share their words, one as an expression and one as statements.
    ShapesDiffer {
        /// The two rows.
        rows: [&'static str; 2],
        /// The file.
        file: &'static str,
    },
    /// Two rows have one name.
    SameName(&'static str),
    /// A row names a file that belongs to no copied crate.
    NoCrate {
        /// The row.
        row: &'static str,
        /// The file.
        file: &'static str,
    },
    /// No test of the part has a name that begins as the row says.
    NoTest {
        /// The row.
        row: &'static str,
        /// How the name was to begin.
        begins: &'static str,
    },
    /// No row has this name.
    UnknownRow(String),
    /// A manifest is not what the copy can be cut from.
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file could not be read or written, or a program not started.
    System {
        /// The file or program.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The copy does not compile; the last lines of the compiler's messages.
    DoesNotCompile(String),
    /// The core's own tests fail in the copy though no bug is switched on; what they said.
    TestsFailWithoutBugs(String),
    /// A checker did not find the copy clean though no bug was switched on: no verdict would mean anything.
    NotCleanWithoutBugs {
        /// What the checker said.
        said: String,
    },
}

impl Error {
    pub(crate) fn system(path: &Path, error: &std::io::Error) -> Self {
        Self::System {
            path: path.to_owned(),
            why: error.to_string(),
        }
    }

    pub(crate) fn manifest(path: &Path, why: impl Into<String>) -> Self {
        Self::Manifest {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfDate { row, file, found: 0 } => {
                write!(f, "row out of date: {row}: snippet not found in {file}")
            }
            Self::OutOfDate { row, file, found } => write!(
                f,
                "row out of date: {row}: snippet found {found} times in {file}; lengthen it until it is unique"
            ),
            Self::Overlap { rows: [a, b], file } => write!(
                f,
                "rows \"{a}\" and \"{b}\" overlap in {file}; give them the same snippet or separate ones"
            ),
            Self::ShapesDiffer { rows: [a, b], file } => write!(
                f,
                "rows \"{a}\" and \"{b}\" share a snippet in {file}, one as an expression and one as statements"
            ),
            Self::SameName(name) => write!(f, "two rows are called \"{name}\"; rename one"),
            Self::NoCrate { row, file } => write!(
                f,
                "row \"{row}\": {file} is in no library crate that the simulator is built from"
            ),
            Self::NoTest { row, begins } => {
                write!(
                    f,
                    "row \"{row}\": no test of the part has a name that begins with {begins}"
                )
            }
            Self::UnknownRow(name) => write!(
                f,
                "no planted bug is called \"{name}\"; sim/mutants/TABLE.md and PARTS.md list them"
            ),
            Self::Manifest { path, why } => write!(f, "{}: {why}", path.display()),
            Self::System { path, why } => write!(f, "{}: {why}", path.display()),
            Self::DoesNotCompile(messages) => {
                write!(f, "the copy with the planted bugs does not compile:\n{messages}")
            }
            Self::TestsFailWithoutBugs(said) => {
                write!(
                    f,
                    "without any planted bug the core's tests fail in the copy:\n{said}"
                )
            }
            Self::NotCleanWithoutBugs { said } => write!(
                f,
                "without any planted bug the copy is not clean ({said}): mend that first, no verdict would count"
            ),
        }
    }
}

impl std::error::Error for Error {}
