//! Asking a holder to step down.

use crate::acquire::wish;
use crate::keys::Part;
use crate::site::{ROUNDS_MAX, Site, transact};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::{Ask, Asked, StoreError};
use tenure_remote::Deed;

impl Site {
    /// Leaves a wish beside the holder's key, on the same session: it goes with the term.
    pub(crate) async fn ask(&self, request: &Ask) -> Result<Asked, StoreError> {
        let name = &request.name;
        for _round in 0..ROUNDS_MAX {
            let found = self.read(&self.requests, name).await?;
            let (Some(written), Some(holder)) = (&found.record, &found.holder) else {
                return Ok(Asked::NotHeld);
            };
            if written.token != request.token {
                return Ok(Asked::NotHeld);
            }
            if found.asked {
                return Ok(Asked::Noted);
            }
            let key = |part| self.keys.part(name, part);
            let transaction = TxnRequest {
                compare: vec![
                    Compare::written_at(&key(Part::Record), found.record_revision),
                    Compare::written_at(&key(Part::Holder), found.holder_revision),
                ],
                success: vec![RequestOp::put(
                    key(Part::Wish),
                    wish(request.token),
                    holder.session,
                )],
                failure: Vec::new(),
            };
            match transact(&self.requests, &transaction).await {
                Ok(answer) if answer.succeeded => {
                    self.known.forget(name);
                    return Ok(Asked::Noted);
                }
                Ok(_changed) => {}
                // The holder's session ended this moment: the next look finds its key gone.
                Err(failure) if failure.is_session_gone() => {}
                Err(failure) => return Err(self.failed(&failure, Deed::Write, name)),
            }
        }
        Err(self.restless(name))
    }
}
