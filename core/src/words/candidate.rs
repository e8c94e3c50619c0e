use super::CandidateId;
use std::fmt;
use std::str::FromStr;

/// A number that is new at every start of a process: the real owner of a lease.
///
/// The id of a candidate is a label that two processes may share by mistake (a cloned image, a copied
/// configuration). The incarnation is not: 128 random bits, drawn once at start, never stored for reuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// The incarnation with these bits. The caller draws them from the operating system's random source.
    #[must_use]
    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Incarnation {
    /// 32 hexadecimal digits, the form that records keep.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}

impl FromStr for Incarnation {
    type Err = &'static str;

    /// Reads exactly the 32 hexadecimal digits that `Display` writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "an incarnation is 32 lower-case hexadecimal digits";
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(hexadecimal) {
            return Err(wrong);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| wrong)
    }
}

/// A process that may hold leases: a stable label, and the incarnation that tells it from every other
/// process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Candidate {
    /// The label people read: a host name, a pod name. Not trusted to be unique.
    pub id: CandidateId,
    /// The real owner, new at every start.
    pub incarnation: Incarnation,
}

impl fmt::Display for Candidate {
    /// The label and the first eight digits of the incarnation: enough to tell two starts apart in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let incarnation = self.incarnation.to_string();
        write!(f, "{}#{}", self.id, &incarnation[..8])
    }
}
