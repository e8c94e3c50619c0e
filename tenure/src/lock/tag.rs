use tenure_core::{CandidateId, NameError};

/// Which application a record belongs to: the first part of its holder's id, `billing` in
/// `billing/host-4711`.
///
/// Two applications that use the same name by mistake would wait for each other, and nobody would know why.
/// Managers with tags refuse each other's records instead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OwnerTag(CandidateId);

impl OwnerTag {
    /// A tag with this text: as a [`CandidateId`], and without a slash.
    ///
    /// # Errors
    /// [`NameError`]; nothing was started.
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let id = CandidateId::new(text)?;
        if id.as_str().contains('/') {
            return Err(NameError {
                what: "owner tag",
                shown: id
                    .as_str()
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect(),
                fault: tenure_core::NameFault::Slash,
            });
        }
        Ok(Self(id))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether a candidate with this id belongs to the application.
    #[must_use]
    pub fn owns(&self, id: &CandidateId) -> bool {
        id.as_str()
            .strip_prefix(self.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// The id of a candidate of this application.
    ///
    /// # Errors
    /// [`NameError`]: the two together are too long.
    pub(super) fn mark(&self, id: &CandidateId) -> Result<CandidateId, NameError> {
        CandidateId::new(format!("{}/{id}", self.as_str()))
    }
}
