use crate::fault::Deed;
use crate::reply::misunderstood;
use crate::script::{ASK, Arguments};
use crate::site::{Site, subject};
use tenure_core::{Ask, Asked, StoreError};

impl Site {
    /// Leaves the wish in the record of the very term, if it is held. Asking twice writes once.
    pub(crate) async fn ask(&self, request: &Ask) -> Result<Asked, StoreError> {
        self.is_alone_in_time().await?;
        let key = self.keys.record(&request.name);
        let arguments = Arguments::on([self.keys.index(), key.clone()])
            .with(request.token)
            .with(self.keys.channel(&request.name));
        let mut reply = self
            .run(&ASK, &arguments, Deed::Write, &subject(&request.name))
            .await?;
        let (verdict, now_ms) = (reply.word()?, reply.number()?);
        match verdict.as_str() {
            "noted" => Ok(Asked::Noted),
            "not held" => Ok(Asked::NotHeld),
            "unreadable" => {
                Err(self.cannot_read(&key, request.name.as_str(), reply.fields()?.as_ref(), now_ms))
            }
            _ => Err(misunderstood()),
        }
    }
}
