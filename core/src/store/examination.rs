/// How an examined point stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but weaker or slower than it could be.
    Warning,
    /// Leases are not safe, or cannot work, until it is mended.
    Bad,
}

/// One point of an examination of a store (`tenure doctor`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// What was examined, in two or three words: `durability`, `clock`, `ttl index`.
    pub subject: String,
    /// How it stands.
    pub verdict: Verdict,
    /// What was found, with the numbers.
    pub detail: String,
    /// What to do about it, as a command where there is one.
    pub repair: Option<String>,
}
