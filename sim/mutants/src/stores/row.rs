/// A wrong statement, in one file of one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreRow {
    /// The store, as its folder below `stores` is called.
    pub store: &'static str,
    /// What is wrong, in whole words; unique within the store.
    pub name: &'static str,
    /// The guarantee of `GUARANTEES.md` that it breaks.
    pub guarantee: &'static str,
    /// The file, from the store's folder, with slashes.
    pub file: &'static str,
    /// What stands there, and what stands there with the bug; never empty. Each is found exactly once; any white space matches any
    /// other.
    pub edits: &'static [[&'static str; 2]],
    /// How the names of the tests begin of which one must notice it; never empty.
    pub noticed_by: &'static [&'static str],
}

impl StoreRow {
    /// The store's folder, from the root of the workspace.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("stores/{}", self.store)
    }

    /// The file, from the root of the workspace.
    #[must_use]
    pub fn path(&self) -> String {
        format!("stores/{}/{}", self.store, self.file)
    }
}
