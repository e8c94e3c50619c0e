//! For programs that look after the leases of others, as the command `tenure` does.

pub use crate::history::{History, NotedTerm, PastTerm, TERMS_KEPT, TermEnd};
pub use crate::identity::{candidate, default_candidate_id};
pub use crate::lock::Standby;
#[cfg(feature = "metrics")]
pub use crate::metrics::candidacy::Candidacy;
pub use crate::opening::{NotOpened, open_patiently};
pub use crate::registry::{SharedPurge, refuse_blank_ends};
