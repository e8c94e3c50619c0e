use crate::fault::Deed;
use crate::record::{decode, is_confirmed, term_before, unreadable};
use crate::reply::{Fields, misunderstood};
use crate::script::{Arguments, GET};
use crate::site::{Site, subject};
use tenure_core::{Lease, LeaseName, StoreError};

/// A record as one server has it.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) lease: Lease,
    /// It is a term, and not what a candidate has asked for in one member of a quorum and not yet got.
    pub(crate) confirmed: bool,
    /// The term before such a candidacy.
    before: Option<Box<Lease>>,
}

impl Sighting {
    /// Reads a record.
    ///
    /// # Errors
    /// As [`decode`].
    pub(crate) fn read(
        key: &str,
        name: &str,
        fields: Option<&Fields>,
        now_ms: u64,
    ) -> Result<Self, StoreError> {
        let lease = decode(key, name, fields, now_ms)?;
        Ok(Self {
            confirmed: is_confirmed(fields),
            before: term_before(key, &lease, fields, now_ms)?.map(Box::new),
            lease,
        })
    }

    /// The last term that this server knows: a candidacy hides none.
    pub(crate) fn term(&self) -> Option<&Lease> {
        match self.confirmed {
            true => Some(&self.lease),
            false => self.before.as_deref(),
        }
    }
}

impl Site {
    /// Reads one record, from the server that may write it.
    pub(crate) async fn get(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        Ok(self.sighting(name).await?.map(|sighting| sighting.lease))
    }

    /// The same, and whether it is a term.
    pub(crate) async fn sighting(&self, name: &LeaseName) -> Result<Option<Sighting>, StoreError> {
        let key = self.keys.record(name);
        let arguments = Arguments::on([self.keys.index(), key.clone()]);
        let mut reply = self.run(&GET, &arguments, Deed::Read, &subject(name)).await?;
        let (state, now_ms) = (reply.word()?, reply.number()?);
        match state.as_str() {
            "none" => Ok(None),
            "held" | "vacant" | "expired" => {
                let fields = reply.fields()?;
                Sighting::read(&key, name.as_str(), fields.as_ref(), now_ms).map(Some)
            }
            "unreadable" => Err(self.cannot_read(&key, name.as_str(), reply.fields()?.as_ref(), now_ms)),
            _ => Err(misunderstood()),
        }
    }

    /// Why a script left a record alone.
    pub(crate) fn cannot_read(
        &self,
        key: &str,
        name: &str,
        fields: Option<&Fields>,
        now_ms: u64,
    ) -> StoreError {
        match decode(key, name, fields, now_ms) {
            Err(error) => error,
            // The script is stricter than the reader: a mistake of this crate's, and nothing was changed.
            Ok(_) => unreadable(key, name, "a field is not as this version writes it"),
        }
    }
}
