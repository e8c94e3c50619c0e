//! Reading marks.

use super::mark::{Count, MarkValue, no_mark, subject};
use crate::keys::{Part, shown};
use crate::site::{Site, transact};
use crate::wire::kv::{KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest};
use crate::wire::path;
use std::collections::BTreeMap;
use tenure_core::{
    Cursor, FencingToken, LeaseName, ListedMark, MARKS_MAX, Mark, MarkPage, ResourceName, StoreError,
};
use tenure_remote::Deed;

/// What is known of a resource, all of one revision.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The revision that wrote the mark; 0 if there is none.
    pub(super) written: i64,
    pub(super) mark: Option<MarkValue>,
    count: Count,
    /// The token of the lease that was asked about, where its record is here.
    pub(super) granted: Option<FencingToken>,
    /// The revision of all this.
    pub(super) revision: i64,
}

impl Found {
    pub(super) fn lease(&self) -> Option<&LeaseName> {
        self.mark.as_ref().and_then(|mark| mark.lease.as_ref())
    }

    pub(super) fn token(&self) -> Option<FencingToken> {
        self.mark.as_ref().map(|mark| mark.token)
    }

    pub(super) fn shown(self, resource: &ResourceName) -> Option<Mark> {
        let (refused, last_refused) = (self.count.refused, self.count.last);
        self.mark.map(|mark| Mark {
            resource: resource.clone(),
            bumped: mark.claimant().is_none(),
            lease: mark.lease,
            token: mark.token,
            refused,
            last_refused,
        })
    }
}

impl Site {
    /// The mark, and what `lease` has granted if its record is under the same prefix.
    pub(super) async fn look(
        &self,
        resource: &ResourceName,
        lease: Option<&LeaseName>,
    ) -> Result<Found, StoreError> {
        let key = self.keys.mark(resource);
        let mut success = vec![
            RequestOp::range(key.clone(), Vec::new()),
            RequestOp::range(self.keys.refusals(resource), Vec::new()),
        ];
        if let Some(lease) = lease {
            success.push(RequestOp::range(self.keys.part(lease, Part::Record), Vec::new()));
        }
        let request = TxnRequest {
            success,
            ..TxnRequest::default()
        };
        let answer = transact(&self.requests, &request).await;
        let answer = answer.map_err(|failure| failure.error(Deed::Read, &subject(resource), &self.place))?;
        let mut rows = answer.responses.into_iter().map(|response| response.keys());
        let mut next = || {
            rows.next()
                .and_then(|rows: Vec<KeyValue>| rows.into_iter().next())
        };
        let (mark, count, record) = (next(), next(), next());
        Ok(Found {
            written: mark.as_ref().map_or(0, |row| row.mod_revision),
            mark: mark
                .map(|row| MarkValue::decode(&row.key, resource.as_str(), &row.value))
                .transpose()?,
            count: count.map_or_else(Count::default, |row| Count::decode(&row.value)),
            granted: record.and_then(|row| FencingToken::from_signed(row.mod_revision).ok()),
            revision: answer.header.map_or(0, |header| header.revision),
        })
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&Cursor>) -> Result<MarkPage, StoreError> {
        let (key, range_end) = self.keys.marks(after);
        let request = RangeRequest {
            key,
            range_end,
            limit: i64::try_from(MARKS_MAX + 1).unwrap_or(i64::MAX),
            count_only: false,
        };
        let rows = self.listed(&request).await?;
        let counts = self.counts(&rows).await?;
        let mut marks = Vec::new();
        for row in rows {
            let name = self.keys.marked(&row.key);
            let count = counts.get(name).copied().unwrap_or_default();
            let listed = ListedMark::from_read(|| shown(name), listed_mark(name, &row, count))?;
            marks.push((Cursor::behind(name), listed));
        }
        Ok(MarkPage::beginning(marks))
    }

    /// The counts of refusals beside these marks, by their resources as they stand there. One request for all
    /// of them: one for each would take a page of round trips.
    async fn counts(&self, marks: &[KeyValue]) -> Result<BTreeMap<Vec<u8>, Count>, StoreError> {
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else {
            return Ok(BTreeMap::new());
        };
        let (first, last) = (self.keys.marked(&first.key), self.keys.marked(&last.key));
        let (key, range_end) = self.keys.refusals_from_to(first, last);
        let request = RangeRequest {
            key,
            range_end,
            ..RangeRequest::default()
        };
        let rows = self.listed(&request).await?.into_iter();
        let counts = rows.map(|row| (self.keys.counted(&row.key).to_vec(), Count::decode(&row.value)));
        Ok(counts.collect())
    }

    async fn listed(&self, request: &RangeRequest) -> Result<Vec<KeyValue>, StoreError> {
        let answer: Result<RangeResponse, _> = self.requests.unary(path::RANGE, request).await;
        let answer = answer.map_err(|failure| failure.error(Deed::Read, "the fence", &self.place))?;
        Ok(answer.kvs)
    }

    /// The count of refusals, and the revision that wrote it; 0 if there is none.
    pub(super) async fn count(&self, resource: &ResourceName) -> Result<(i64, Count), StoreError> {
        let request = RangeRequest {
            key: self.keys.refusals(resource),
            ..RangeRequest::default()
        };
        let answer: Result<RangeResponse, _> = self.requests.unary(path::RANGE, &request).await;
        let answer = answer.map_err(|failure| failure.error(Deed::Read, &subject(resource), &self.place))?;
        let row = answer.kvs.into_iter().next();
        Ok(row.map_or((0, Count::default()), |row| {
            (row.mod_revision, Count::decode(&row.value))
        }))
    }
}

fn listed_mark(name: &[u8], row: &KeyValue, count: Count) -> Result<Mark, StoreError> {
    let text = String::from_utf8_lossy(name);
    let mark = MarkValue::decode(&row.key, &text, &row.value)?;
    let resource = std::str::from_utf8(name)
        .ok()
        .and_then(|name| ResourceName::new(name).ok())
        .ok_or_else(|| no_mark(&row.key, &text, "no resource has this key"))?;
    Ok(Mark {
        resource,
        bumped: mark.claimant().is_none(),
        lease: mark.lease,
        token: mark.token,
        refused: count.refused,
        last_refused: count.last,
    })
}
