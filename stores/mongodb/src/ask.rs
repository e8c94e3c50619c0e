use crate::fault::Deed;
use crate::pipeline::{change_if, held};
use crate::record::lasts_no_longer;
use crate::site::{Site, subject};
use mongodb::bson::{bson, doc};
use tenure_core::{Ask, Asked, StoreError};

impl Site {
    /// Leaves the wish in the record of the very term, if it is held. Asking twice writes once.
    pub(crate) async fn ask(&self, request: &Ask) -> Result<Asked, StoreError> {
        self.in_time(Deed::Write, &subject(&request.name), self.leave_wish(request))
            .await
    }

    async fn leave_wish(&self, request: &Ask) -> Result<Asked, StoreError> {
        let condition = bson!({ "$and": [
            { "$eq": ["$generation", request.token.signed()] },
            held(),
            lasts_no_longer(),
            { "$eq": ["$stepDownAsked", null] },
        ] });
        let changes = doc! { "stepDownAsked": { "generation": "$generation", "at": "$$NOW" } };
        let pipeline = change_if(condition, changes);
        let record = match self.change(&request.name, pipeline, self.time_max).await? {
            Some(shown) => Some(shown.record),
            // Gone, or not to be understood; the latter is an error.
            None => self.read(&request.name).await?,
        };
        let noted = record.is_some_and(|record| {
            record.is_held() && record.lease.token == request.token && record.lease.asked_to_step_down
        });
        Ok(if noted { Asked::Noted } else { Asked::NotHeld })
    }
}
