//! One server that is a member of a quorum: what it held alone, the others would give away.

use crate::fault::Deed;
use crate::keys::Keys;
use crate::link::Link;
use crate::membership::{FIELD_COMPLETE, FIELD_ROSTER, Kept};
use crate::one_store::Greeting;
use crate::site::Site;
use crate::url::invalid;
use redis::Cmd;
use std::sync::Arc;
use tenure_core::{Finding, StoreError};
use tenure_remote::findings::bad;

const WAY_OUT: &str = "lead by all of its members (redis+quorum://); or, if there is no such quorum any more, remove the key of this \
                       server that ends with \":quorum\"";

/// The quorum that a server is a member of.
#[derive(Clone, Debug)]
pub(crate) struct Quorate {
    /// The hosts of its members, for people.
    hosts: Arc<str>,
    /// All of them know that: one may lead there.
    complete: bool,
}

/// The hosts of the members that a server keeps.
pub(crate) fn hosts(members: &str) -> String {
    let kept = Kept::read(None, Some(members), None);
    kept.ok()
        .and_then(|kept| kept.hosts())
        .unwrap_or_else(|| members.escape_debug().to_string())
}

/// Asks a server for them, and whether all of them keep the same.
pub(crate) fn look(keys: &Keys) -> Cmd {
    let mut look = redis::cmd("HMGET");
    look.arg(keys.membership()).arg(FIELD_ROSTER).arg(FIELD_COMPLETE);
    look
}

impl Quorate {
    /// Of a server that was just dialled. Of none where the user may not ask, or the key is another
    /// program's.
    pub(crate) fn told(greeting: &Greeting) -> Option<Self> {
        let (members, complete) = greeting.quorum.as_ref().ok()?;
        let kept = Kept::read(None, members.as_deref(), complete.as_deref()).ok()?;
        Some(Self {
            hosts: kept.hosts()?.into(),
            complete: kept.complete(),
        })
    }
}

impl Site {
    /// Before what only all members may do together.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid): the server is one of them; and if it does not answer.
    /// Not applied.
    pub(crate) async fn is_alone(&self, link: &Link) -> Result<(), StoreError> {
        match self.quorate(link).await? {
            Some(quorate) if quorate.complete => Err(self.of_a_quorum(&quorate.hosts)),
            _ => Ok(()),
        }
    }

    /// The same, of the requests' connection and in bounded time.
    pub(crate) async fn is_alone_in_time(&self) -> Result<(), StoreError> {
        self.in_time(Deed::Read, "connecting", self.is_alone(&self.requests))
            .await
    }

    async fn quorate(&self, link: &Link) -> Result<Option<Quorate>, StoreError> {
        if self.target.admission.is_some() {
            return Ok(None);
        }
        Ok(link.open().await?.connection.quorate)
    }

    pub(crate) fn of_a_quorum(&self, hosts: &str) -> StoreError {
        invalid(&format!(
            "{} is a member of the quorum {hosts}, and whoever leads by it alone leads beside whoever leads by that; {WAY_OUT}",
            self.place
        ))
    }

    /// Nothing where the server is no member.
    pub(crate) async fn examine_quorum(&self) -> Option<Finding> {
        let Quorate { hosts, .. } = self.quorate(&self.requests).await.ok()??;
        let detail = format!(
            "a member of the quorum {hosts}: whoever leads by it alone leads beside whoever leads by that"
        );
        Some(bad("topology", detail, WAY_OUT))
    }
}
