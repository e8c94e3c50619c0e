use super::Part;

/// Something wrong, in one file of one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartRow {
    /// The part.
    pub part: &'static Part,
    /// What is wrong, in whole words; unique within the part.
    pub name: &'static str,
    /// The guarantee of `GUARANTEES.md` that it breaks.
    pub guarantee: &'static str,
    /// The file, from the part's folder, with slashes. `../` leads to a crate beside it, which it shares with
    /// other parts.
    pub file: &'static str,
    /// What stands there, and what stands there with the bug; never empty. Each is found exactly once; any
    /// white space matches any other.
    pub edits: &'static [[&'static str; 2]],
    /// How the names of the tests begin of which one must notice it; never empty.
    pub noticed_by: &'static [&'static str],
}

impl PartRow {
    /// The file, from the root of the workspace.
    #[must_use]
    pub fn path(&self) -> String {
        let (mut folder, mut file) = (self.part.folder, self.file);
        while let Some(beside) = file.strip_prefix("../") {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            file = beside;
        }
        match folder {
            "" => file.to_owned(),
            folder => format!("{folder}/{file}"),
        }
    }
}
