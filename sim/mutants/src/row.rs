use std::fmt;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// What is wrong, in whole words; unique.
    pub name: &'static str,
    /// The rows of the failure catalogue that it stands for.
    pub catalogue: &'static [u8],
    /// The guarantee of `GUARANTEES.md` that it breaks.
    pub guarantee: &'static str,
    /// Why it is a bug, and to whom it happened, if that is known.
    pub why: &'static str,
    /// Who is asked first.
    pub first: Checker,
    /// What is rewritten; never empty.
    pub edits: &'static [Edit],
}

impl Row {
    /// Where it is planted: most are in what ships, and the others in what stands for the stores and their
    /// fences there.
    #[must_use]
    pub fn place(&self) -> Place {
        match self.edits.first().map(|edit| edit.file) {
            Some(file) if file.starts_with("conformance/src/model/") => Place::ModelStore,
            Some(file) if file.starts_with("sim/src/register/") => Place::ModelFence,
            _ => Place::Core,
        }
    }
}

/// Where a bug is planted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// In the core, which ships.
    Core,
    /// In the store that stands for the real ones.
    ModelStore,
    /// In the fence that stands for the real ones.
    ModelFence,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::ModelStore => "model store",
            Self::ModelFence => "model fence",
        })
    }
}

/// One replacement in one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The file, from the root of the workspace, with slashes.
    pub file: &'static str,
    /// What stands there. It occurs exactly once; any white space matches any other.
    pub original: &'static str,
    /// What stands there with the bug.
    pub planted: &'static str,
    /// What kind of code both are.
    pub shape: Shape,
}

/// How a snippet is put into an `if`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// An expression: both values have one type.
    Expression,
    /// One or more whole statements, with their semicolons: what they declare is not seen outside.
    Statement,
}

impl Edit {
    /// Replaces an expression.
    #[must_use]
    pub const fn expression(file: &'static str, original: &'static str, planted: &'static str) -> Self {
        Self {
            file,
            original,
            planted,
            shape: Shape::Expression,
        }
    }

    /// Replaces statements.
    #[must_use]
    pub const fn statement(file: &'static str, original: &'static str, planted: &'static str) -> Self {
        Self {
            file,
            original,
            planted,
            shape: Shape::Statement,
        }
    }
}

/// Who looks for a violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Checker {
    /// `tenure-sim sim`: many random runs in virtual time.
    Simulator,
    /// `tenure-sim model`: every state that can be reached, breadth first.
    Model,
}

impl Checker {
    /// Both, this one first.
    #[must_use]
    pub fn and_the_other(self) -> [Self; 2] {
        match self {
            Self::Simulator => [Self::Simulator, Self::Model],
            Self::Model => [Self::Model, Self::Simulator],
        }
    }
}

impl fmt::Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulator => "simulator",
            Self::Model => "model",
        })
    }
}
