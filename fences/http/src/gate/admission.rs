//! What a request has once it was let in, and when it is over.

use super::seat::Seat;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use tenure_core::{FencingToken, ResourceName, Term};

/// A request is inside: until the last clone of this is dropped, no later term gets in.
///
/// The layer holds one while the inner service works, and puts a clone into the request's extensions. A
/// handler whose effect goes on after its response (a spawned task, a streamed body that writes) must move a
/// clone there. Do not keep one for longer than the effect: a later term waits for it, and is turned away
/// after [`Gate::wait_at_most`](crate::Gate::wait_at_most).
///
/// Of two layers around one handler, the inner one's is in the extensions, and it owns the outer one's.
#[derive(Clone)]
pub struct Admission {
    inside: Arc<Inside>,
    _outer: Option<Arc<Admission>>,
}

struct Inside {
    seat: Arc<Seat>,
    term: Term,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.seat.leave(self.term.token);
    }
}

impl Admission {
    pub(super) fn new(seat: Arc<Seat>, term: Term) -> Self {
        Self {
            inside: Arc::new(Inside { seat, term }),
            _outer: None,
        }
    }

    /// This one, which keeps also what an outer layer has admitted inside.
    pub(crate) fn within(self, outer: Option<Self>) -> Self {
        Self {
            _outer: outer.map(Arc::new),
            ..self
        }
    }

    /// The term that was admitted: for the fence of a database that the handler writes to.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.inside.term
    }

    /// The resource it was admitted to.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        self.inside.seat.resource()
    }

    /// Whether a later term has claimed the resource, and now waits for this request to end.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        self.succession().has_come()
    }

    /// Returns when a later term has claimed the resource. A long handler may watch it, to end early.
    pub async fn superseded(&self) -> Superseded {
        self.succession().comes().await
    }

    /// The same, for whoever must not keep a later term waiting.
    pub(crate) fn succession(&self) -> Succession {
        Succession {
            seat: Arc::clone(&self.inside.seat),
            token: self.inside.term.token,
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("resource", self.resource())
            .field("term", self.term())
            .finish()
    }
}

/// A later term has claimed the resource that a request was admitted to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superseded {
    /// The resource.
    pub resource: ResourceName,
    /// The token that was admitted.
    pub token: FencingToken,
    /// The mark that the later term has set.
    pub mark: FencingToken,
}

impl fmt::Display for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            token,
            mark,
        } = self;
        write!(
            f,
            "token {token} was admitted to \"{resource}\", which term {mark} has claimed since; end this work"
        )
    }
}

impl std::error::Error for Superseded {}

/// Tells that a later term has claimed, and holds nobody up.
#[derive(Clone)]
pub(crate) struct Succession {
    seat: Arc<Seat>,
    token: FencingToken,
}

impl Succession {
    pub(crate) fn has_come(&self) -> bool {
        self.now().is_some()
    }

    pub(crate) fn now(&self) -> Option<Superseded> {
        let mark = self.seat.mark().filter(|mark| *mark > self.token)?;
        Some(Superseded {
            resource: self.seat.resource().clone(),
            token: self.token,
            mark,
        })
    }

    pub(crate) async fn comes(&self) -> Superseded {
        loop {
            let mut change = pin!(self.seat.changed());
            change.as_mut().enable();
            if let Some(superseded) = self.now() {
                return superseded;
            }
            change.await;
        }
    }
}
