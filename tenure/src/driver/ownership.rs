//! Whether a lease is another application's: asked before it is taken, for whoever takes it has it from then
//! on.

use super::jitter::jitter;
use super::place::Place;
use super::{Driver, NotWon};
use crate::clock;
use tenure_core::{
    CandidateId, Event, Fault, Grant, Input, LeaseName, Operation, Predecessor, Reply, StoreError,
};

impl Driver {
    /// Looks who held it last, and lets the campaign begin if that was one of this application.
    pub(super) fn look_first(&mut self, name: LeaseName) {
        // Withdrawn and begun anew meanwhile: the answer to the first look will do.
        if self.looking.insert(name.clone()) {
            self.plan.meter.sent(&Operation::Look(name.clone()));
            let time_max = self.plan.timing.request_timeout();
            self.requests.look(name, time_max);
        }
    }

    pub(super) fn looked(&mut self, name: LeaseName, reply: Option<Reply>) {
        self.looking.remove(&name);
        if !self.is_waited_for(&name) {
            return;
        }
        match reply {
            Some(Reply::Looked(Ok(Some(lease)))) if self.is_foreign(&lease.holder.id) => {
                self.first_attempts.done(&name);
                self.refuse(&name, || NotWon::OtherApplication(lease.holder.id.clone()));
            }
            Some(Reply::Looked(Ok(_))) => self.apply(Input::Command(self.campaign_for(name))),
            Some(Reply::Looked(Err(error))) => self.look_failed(name, error),
            Some(Reply::Acquired(_) | Reply::Renewed(_) | Reply::Released(_)) | None => {
                let message = format!("lease \"{name}\": no answer to a look");
                self.look_failed(name, StoreError::not_applied(Fault::TimedOut, message));
            }
        }
        self.follow();
    }

    /// As an attempt that failed: only an error that a person must mend ends the campaign, and after others
    /// it is made again, ever more seldom.
    fn look_failed(&mut self, name: LeaseName, error: StoreError) {
        if error.fault.is_final() {
            return self.tell(Event::CampaignEnded { name, error });
        }
        let failures = self.places.get_mut(&name).map_or(0, Place::note_failed_look);
        let pauses = self.plan.timing.back_off(failures);
        let retry_in = *pauses.start() + jitter(*pauses.end() - *pauses.start());
        self.tell(Event::AttemptFailed {
            name: name.clone(),
            error,
            retry_in,
        });
        if self.is_waited_for(&name) {
            self.first_attempts.put_off(name.clone());
            self.pauses.insert((clock::now().after(retry_in), name));
        }
    }

    fn is_waited_for(&self, name: &LeaseName) -> bool {
        self.places.get(name).is_some_and(Place::is_waited_for)
    }

    pub(super) fn is_foreign(&self, id: &CandidateId) -> bool {
        self.plan.tag.as_ref().is_some_and(|tag| !tag.owns(id))
    }

    /// Another application may have taken it between the look and the attempt.
    pub(super) fn foreign_before<'a>(&self, grant: &'a Grant) -> Option<&'a Predecessor> {
        grant
            .predecessor
            .as_ref()
            .filter(|before| self.is_foreign(&before.candidate))
    }
}
