use crate::gate::Gate;
use std::fmt;
use std::sync::Arc;
use tenure_core::{ResourceName, Term};

/// One write that was admitted: hold it until the write has had its effect.
///
/// As long as it exists, no claim of a later term returns. A leaked one makes claims time out for ever.
#[must_use = "the write is protected only while this is held"]
pub struct Admission {
    gate: Arc<Gate>,
    term: Term,
}

impl Admission {
    pub(crate) fn new(gate: Arc<Gate>, term: Term) -> Self {
        Self { gate, term }
    }

    /// The protected resource.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        &self.gate.resource
    }

    /// The term that was admitted.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.term
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.gate.leave(self.term.token);
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("resource", &self.gate.resource)
            .field("term", &self.term)
            .finish()
    }
}
