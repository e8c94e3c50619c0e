//! The words everything else is written in: names, candidates, tokens, attempts, times.

mod attempt;
mod candidate;
mod moment;
mod name;
mod note;
mod priority;
mod term;
mod token;
mod ttl;

pub use attempt::Attempt;
pub use candidate::{Candidate, Incarnation};
pub use moment::Moment;
pub use name::{CandidateId, LeaseName, NameError, NameFault, ResourceName};
pub use note::{Note, NoteTooLong};
pub use priority::{Priority, PriorityError};
pub use term::Term;
pub use token::{FencingToken, TokenError};
pub use ttl::{Ttl, TtlError};
