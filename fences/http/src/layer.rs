//! The layer: what is checked before the inner service sees a request.

use crate::gate::{Admission, Gate, Superseded};
use crate::header::FencingHeader;
use crate::protection::{Need, Protection};
use crate::refusal::Refusal;
use crate::service::Fenced;
use crate::tally::{Counters, Tally};
use http::request::Parts;
use std::fmt;
use std::sync::Arc;
use tenure_core::NameError;
use tower_layer::Layer;
use tracing::debug;

type Protects = dyn Fn(&Parts) -> Result<Protection, NameError> + Send + Sync;
type Needs = dyn Fn(&Parts) -> Need + Send + Sync;

/// Lets a request pass to the inner service only if its `Fencing-Token` is admitted by a [`Gate`].
///
/// Everything else is answered here, with a problem of RFC 9457: see [`Refusal`].
///
/// Put it outside of whatever changes state, and inside of whatever authenticates: a token is no credential,
/// and whoever may send one can end the current term's work with a higher one. Clones share the gate and the
/// tally.
#[derive(Clone)]
pub struct FenceLayer {
    rules: Arc<Rules>,
}

pub(crate) struct Rules {
    gate: Arc<Gate>,
    protects: Arc<Protects>,
    needs: Arc<Needs>,
    counters: Arc<Counters>,
}

impl FenceLayer {
    /// One resource for every request.
    pub fn new(gate: impl Into<Arc<Gate>>, protection: Protection) -> Self {
        Self::by(gate, move |_| Ok(protection.clone()))
    }

    /// The resource and its lease by the request.
    ///
    /// Name it by what the handler will change, not by how the request spells it: `/a`, `/a/` and `/%61` may
    /// be one state, and must be one resource then. With an error the request is refused (400).
    pub fn by(
        gate: impl Into<Arc<Gate>>,
        protection: impl Fn(&Parts) -> Result<Protection, NameError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            rules: Arc::new(Rules {
                gate: gate.into(),
                protects: Arc::new(protection),
                needs: Arc::new(|parts| Need::of(&parts.method)),
                counters: Arc::default(),
            }),
        }
    }

    /// Which requests need a token. Default: [`Need::of`] their method.
    ///
    /// A request without a token that changes the resource all the same is outside the fence.
    #[must_use]
    pub fn requiring(self, needs: impl Fn(&Parts) -> Need + Send + Sync + 'static) -> Self {
        Self {
            rules: Arc::new(Rules {
                gate: Arc::clone(&self.rules.gate),
                protects: Arc::clone(&self.rules.protects),
                needs: Arc::new(needs),
                counters: Arc::clone(&self.rules.counters),
            }),
        }
    }

    /// How many requests passed and were refused since the layer was made.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.rules.counters.tally()
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Fenced<S>;
    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced::new(inner, Arc::clone(&self.rules))
    }
}

impl fmt::Debug for FenceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer")
            .field("tally", &self.tally())
            .finish_non_exhaustive()
    }
}

impl Rules {
    /// `None`: it passes without a token.
    pub(crate) async fn judge(&self, parts: &Parts) -> Result<Option<Admission>, Refusal> {
        let verdict = self.check(parts).await;
        match &verdict {
            Ok(Some(_)) => self.counters.admitted(),
            Ok(None) => self.counters.without_token(),
            Err(refusal) => {
                self.counters.refused(refusal);
                debug!(status = refusal.status().as_u16(), method = %parts.method, "{refusal}");
            }
        }
        verdict
    }

    /// An admitted request failed because its body was cut short.
    pub(crate) fn cut_short(&self, superseded: &Superseded) -> Refusal {
        let refusal = Refusal::Superseded(superseded.clone());
        self.counters.refused(&refusal);
        self.gate.note_superseded(superseded);
        debug!("{refusal}");
        refusal
    }

    async fn check(&self, parts: &Parts) -> Result<Option<Admission>, Refusal> {
        let presented = FencingHeader::find(&parts.headers).map_err(Refusal::Malformed)?;
        if presented.is_none() && (self.needs)(parts) == Need::Optional {
            return Ok(None);
        }
        let Protection { resource, lease } = (self.protects)(parts).map_err(Refusal::NoResource)?;
        match presented {
            None => Err(Refusal::Missing { resource, lease }),
            Some(FencingHeader(term)) if term.lease != lease => {
                self.gate.note_foreign(&resource, &term, &lease);
                Err(Refusal::Foreign {
                    resource,
                    token: term.token,
                    lease: term.lease,
                    owner: lease,
                })
            }
            Some(FencingHeader(term)) => self.gate.admit(&resource, &term).await.map(Some),
        }
    }
}
