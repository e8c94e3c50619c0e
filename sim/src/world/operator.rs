//! What people do from outside: ask a leader to step down, release its lease by force; and what is told of a
//! run.

use super::World;
use crate::faults::FaultKind;
use tenure_core::{Acquired, Event, Released, Renewed, Reply};

impl World<'_> {
    /// An operator asks the holder to step down.
    pub(super) fn ask_to_step_down(&mut self, index: usize) {
        if self.network.is_down(self.now) {
            return;
        }
        let name = self.names[index].clone();
        if self.store.ask(index, self.now) {
            self.struck(FaultKind::AskedToStepDown);
            self.tell(|| format!("an operator asks the holder of {name} to step down"));
            self.tell_watches();
        }
    }

    /// An operator releases the lease under its holder.
    pub(super) fn force_release(&mut self, index: usize) {
        if self.network.is_down(self.now) {
            return;
        }
        let name = self.names[index].clone();
        if let Some(token) = self.store.force_release(index, self.now) {
            self.struck(FaultKind::ForcedRelease);
            self.tell(|| format!("an operator releases token {token} of {name} by force"));
            if self.assumptions.all_hold()
                && self
                    .processes
                    .iter()
                    .any(|p| p.seats[index].believed.token == token)
            {
                self.outcome.fence_only_terms += 1;
            }
            self.leases[index].forced.rotate_right(1);
            self.leases[index].forced[0] = token;
            self.leases[index].exclusivity.vacated(token);
            self.record_changed(index);
            self.tell_watches();
        }
    }

    /// An operator who reads a record of the past acts on it: nothing may come of that.
    pub(super) fn act_on_the_past(&mut self, index: usize) {
        let before = self.leases[index].truth;
        if self.network.is_down(self.now) || !self.store.ask_from_the_past(index, self.now) {
            return;
        }
        self.struck(FaultKind::StaleRead);
        self.record_changed(index);
        let after = self.leases[index].truth;
        let clock_ms = self.store.clock_ms(self.now);
        self.judge(crate::invariants::no_change_without_cause(
            before, after, clock_ms,
        ));
        self.tell_watches();
    }

    pub(super) fn narrate_event(&mut self, slot: u8, event: &Event) {
        let line = |what: &str| format!("c{slot} {what}");
        self.tell(|| match event {
            Event::Acquired { name, grant, .. } => line(&format!("leads {name} with token {}", grant.token)),
            Event::Ended { name, token, cause } => line(&format!("ends token {token} of {name}: {cause:?}")),
            Event::Renewed { token, .. } => line(&format!("renewed token {token}")),
            Event::RenewalFailed { token, error, .. } => {
                line(&format!("could not renew token {token}: {error}"))
            }
            Event::Standby { lease, .. } => line(&format!(
                "stands by for {}, token {}",
                lease.holder.id, lease.token
            )),
            Event::AttemptFailed { error, .. } => line(&format!("failed to acquire: {error}")),
            Event::CampaignEnded { error, .. } => line(&format!("ends its campaign: {error}")),
            Event::Withdrawn { name } => line(&format!("has withdrawn from {name}")),
            Event::Doubted { token, .. } => line(&format!("doubts token {token}")),
            Event::Reassured { token, .. } => line(&format!("is reassured of token {token}")),
            Event::Stuck { token, .. } => line(&format!("is stuck with token {token}")),
            Event::AskedToStepDown { token, .. } => line(&format!("is asked to end token {token}")),
            Event::ReleaseFailed { token, error, .. } => {
                line(&format!("could not release token {token}: {error}"))
            }
            Event::Departed { token, departure, .. } => {
                line(&format!("departed from token {token}: {departure:?}"))
            }
        });
    }
}

/// A reply in a few words.
pub(super) fn short(reply: &Reply) -> String {
    match reply {
        Reply::Acquired(Ok(Acquired::Granted(grant))) => {
            format!(
                "token {} granted{}",
                grant.token,
                if grant.again { " again" } else { "" }
            )
        }
        Reply::Acquired(Ok(Acquired::Held(lease))) => {
            format!(
                "held by {} with token {} for {:?}",
                lease.holder.id, lease.token, lease.remaining
            )
        }
        Reply::Acquired(Ok(Acquired::Superseded)) => "superseded".to_owned(),
        Reply::Renewed(results) => each(results, |renewed| match renewed {
            Renewed::Extended { ttl, .. } => format!("extended by {ttl}"),
            Renewed::Lost(_) => "lost".to_owned(),
        }),
        Reply::Released(results) => each(results, |released| match released {
            Released::Vacated => "vacated".to_owned(),
            Released::NotYours(_) => "not yours".to_owned(),
        }),
        Reply::Looked(Ok(lease)) => format!(
            "the record has token {:?}",
            lease.as_ref().map(|lease| lease.token)
        ),
        Reply::Acquired(Err(error)) | Reply::Looked(Err(error)) => error.to_string(),
    }
}

fn each<T>(results: &[Result<T, tenure_core::StoreError>], told: impl Fn(&T) -> String) -> String {
    let told = results.iter().map(|result| match result {
        Ok(answer) => told(answer),
        Err(error) => error.to_string(),
    });
    told.collect::<Vec<_>>().join(", ")
}
