//! Reading marks.

use super::mark::Kept;
use super::script::{LOOK, MARKS};
use super::{RedisFence, subject};
use crate::fault::Deed;
use crate::record::shown;
use crate::script::Arguments;
use tenure_core::{
    Cursor, Fault, FenceError, FencingToken, LeaseName, Leases, ListedMark, MARKS_MAX, Mark, MarkPage,
    REMOVE_MARK, ResourceName, StoreError, Term,
};

/// What is known of a resource, all of one moment.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kept: Kept,
    /// How often a term was refused.
    refused: u64,
    last_refused: Option<FencingToken>,
    /// The highest token in the record of the lease that was asked about.
    pub(super) granted: Option<FencingToken>,
    /// The server's clock.
    pub(super) now_ms: u64,
}

impl Found {
    pub(super) fn shown(self, resource: &ResourceName) -> Option<Mark> {
        let token = self.kept.token?;
        Some(Mark {
            resource: resource.clone(),
            bumped: self.kept.claimant().is_none(),
            lease: self.kept.lease,
            token,
            refused: self.refused,
            last_refused: self.last_refused,
        })
    }
}

impl RedisFence {
    /// The mark, from the server that may write it; and what `lease` has granted, where the leases are here.
    pub(super) async fn look(
        &self,
        resource: &ResourceName,
        lease: Option<&LeaseName>,
    ) -> Result<Found, FenceError> {
        let keys = &self.0.site().keys;
        let mut arguments = Arguments::on([keys.marks(), keys.mark(resource), keys.refusals(resource)]);
        if self.0.leases() == Leases::Here
            && let Some(lease) = lease
        {
            arguments.keys.push(keys.record(lease));
        }
        let mut reply = self.ask(&LOOK, arguments, Deed::Read, subject(resource)).await?;
        let (state, now_ms) = (reply.word()?, reply.number()?);
        let kept = [
            reply.bytes_if_any()?,
            reply.bytes_if_any()?,
            reply.bytes_if_any()?,
        ];
        Ok(Found {
            kept: self.understood(resource.as_str(), &state, kept)?,
            refused: reply.text()?.and_then(|count| count.parse().ok()).unwrap_or(0),
            last_refused: reply.text()?.and_then(|last| last.parse().ok()),
            granted: reply.text()?.and_then(|granted| granted.parse().ok()),
            now_ms,
        })
    }

    fn no_mark(&self, resource: &str, field: &str) -> StoreError {
        let key = shown(format!("{}{resource}", self.0.site().keys.mark_keys()).as_bytes());
        StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "fence \"{}\" at key \"{key}\": {field} is missing or wrong; it was left as it is; look at it with \
                 HGETALL, then mend it, or {REMOVE_MARK}",
                shown(resource.as_bytes())
            ),
        )
    }

    /// Reads a mark strictly: its lease, its token, and what it was bumped to.
    fn understood(
        &self,
        resource: &str,
        state: &str,
        fields: [Option<Vec<u8>>; 3],
    ) -> Result<Kept, StoreError> {
        if state == "none" {
            return Ok(Kept::default());
        }
        let wrong = |field| self.no_mark(resource, field);
        let [lease, token, bumped] = fields.map(|field| field.map(String::from_utf8));
        let token = token.transpose().map_err(|_| wrong("its token"))?;
        let lease = lease.transpose().map_err(|_| wrong("its lease"))?;
        let bumped = bumped.transpose().map_err(|_| wrong("its field bumped"))?;
        let token = token
            .and_then(|token| token.parse().ok())
            .ok_or_else(|| wrong("its token"))?;
        let lease = lease
            .map(LeaseName::new)
            .transpose()
            .map_err(|_| wrong("its lease"))?;
        let bumped = bumped.map(|bumped| bumped.parse());
        let bumped = bumped.transpose().map_err(|_| wrong("its field bumped"))?;
        match state {
            "mark" => Ok(Kept {
                lease,
                token: Some(token),
                bumped,
            }),
            _ => Err(wrong("a field")),
        }
    }

    /// Whether a term may enter by the mark that was found. A refusal is counted where there is a mark to
    /// count beside.
    pub(super) fn ruled(&self, resource: &ResourceName, term: &Term, kept: &Kept) -> Result<(), FenceError> {
        kept.entry(resource, term)
            .or_else(|error| self.0.refuse(kept.token.as_ref(), error))
    }

    /// A page of marks after `after`.
    pub(super) async fn page(&self, after: Option<&Cursor>) -> Result<MarkPage, FenceError> {
        let keys = &self.0.site().keys;
        let least = after.map_or_else(|| b"-".to_vec(), |after| [b"(", after.as_bytes()].concat());
        let mut arguments = Arguments::on([keys.marks()]);
        arguments.values.push_bytes(&least);
        let arguments = arguments
            .with(MARKS_MAX)
            .with(keys.mark_keys())
            .with(keys.refusal_keys());
        let mut reply = self
            .ask(&MARKS, arguments, Deed::Read, "the fence".to_owned())
            .await?;
        let (mut marks, mut names, mut last) = (Vec::new(), 0, None);
        while !reply.is_empty() {
            let mut part = reply.array()?;
            let (state, name) = (part.word()?, part.bytes()?);
            let fields = [part.bytes_if_any()?, part.bytes_if_any()?, part.bytes_if_any()?];
            let counted = [part.bytes_if_any()?, part.bytes_if_any()?];
            // A name without a mark: somebody has removed it.
            if state != "none" {
                let read = self.listed(&name, &state, fields, counted);
                marks.push(ListedMark::from_read(|| shown(&name), read)?);
            }
            (names, last) = (names + 1, Some(Cursor::behind(name)));
        }
        let next = last.filter(|_| names == MARKS_MAX);
        Ok(MarkPage { marks, next })
    }

    fn listed(
        &self,
        name: &[u8],
        state: &str,
        fields: [Option<Vec<u8>>; 3],
        counted: [Option<Vec<u8>>; 2],
    ) -> Result<Mark, StoreError> {
        let text = String::from_utf8_lossy(name);
        let kept = self.understood(&text, state, fields)?;
        let resource = std::str::from_utf8(name)
            .ok()
            .and_then(|name| ResourceName::new(name).ok());
        let (Some(resource), Some(token)) = (resource, kept.token) else {
            return Err(self.no_mark(&text, "its name"));
        };
        // For people: what is no number is shown as none.
        let [refused, last] = counted.map(|number| String::from_utf8(number?).ok());
        Ok(Mark {
            resource,
            bumped: kept.claimant().is_none(),
            lease: kept.lease,
            token,
            refused: refused.and_then(|count| count.parse().ok()).unwrap_or(0),
            last_refused: last.and_then(|last| last.parse().ok()),
        })
    }
}
