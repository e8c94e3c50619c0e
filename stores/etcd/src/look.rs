//! Reading leases.

use crate::fault::Failure;
use crate::found::{Found, Remains};
use crate::keys::shown;
use crate::lane::Lane;
use crate::record::unreadable;
use crate::side_by_side::side_by_side;
use crate::site::{PARTS_MAX, Site, raft_term, transact};
use crate::wire::kv::{KeyValue, RangeRequest, RangeResponse, TxnRequest};
use crate::wire::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::wire::path;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Cursor, Lease, LeaseName, LeasePage, Listed, Page, StoreError};
use tenure_remote::Deed;
use tokio::task::JoinSet;

/// How many sessions are asked for at once what remains of them. One after another, those of a queue in which
/// as many processes wait would take longer than its reader does.
const SESSIONS_AT_ONCE: usize = 64;

/// Most keys of a lease.
const KEYS_OF_LEASE_MAX: i64 = 4;

/// What was read of several leases at once: each, and the consensus's term in which it was read.
pub(crate) type Reading = (Vec<Result<Found, StoreError>>, u64);

/// The keys of one lease.
pub(crate) type Rows = Vec<KeyValue>;

impl Site {
    /// Reads one lease, from the latest state.
    pub(crate) async fn get(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        let found = self.read(&self.requests, name).await?;
        self.lease_now(name, &found).await
    }

    /// The keys of a lease, from the latest state.
    pub(crate) async fn read(&self, lane: &Lane, name: &LeaseName) -> Result<Found, StoreError> {
        let answer: Result<RangeResponse, _> = lane.unary(path::RANGE, &self.range(name)).await;
        let rows = answer
            .map_err(|failure| self.failed(&failure, Deed::Read, name))?
            .kvs;
        self.understand(name, &rows)
    }

    fn range(&self, name: &LeaseName) -> RangeRequest {
        let (key, range_end) = self.keys.of_lease(name);
        RangeRequest {
            key,
            range_end,
            ..RangeRequest::default()
        }
    }

    /// What the keys of a lease say; it is remembered.
    pub(crate) fn understand(&self, name: &LeaseName, rows: &[KeyValue]) -> Result<Found, StoreError> {
        let found = Found::read(&self.keys, name.as_str(), rows);
        match &found {
            Ok(found) => self.known.see(name, found),
            Err(_unreadable) => self.known.forget(name),
        }
        found
    }

    /// The keys of up to [`PARTS_MAX`] leases, each from a state that was the latest when this was asked, or
    /// a later one.
    pub(crate) async fn read_many(
        &self,
        lane: &Arc<Lane>,
        names: &[&LeaseName],
    ) -> Result<Reading, StoreError> {
        debug_assert!(names.len() <= PARTS_MAX);
        let read = match names {
            [_one] => self.read_each(lane, names).await,
            several => match self.read_together(lane, several).await {
                // Before 3.4.20 and 3.5.7 a server that is full refuses every transaction, also one that only
                // reads.
                Err(failure) if failure.is_full() => self.read_each(lane, several).await,
                read => read,
            },
        };
        let (rows, term) = read
            .map_err(|failure| failure.error(Deed::Read, &format!("{} leases", names.len()), &self.place))?;
        if rows.len() != names.len() {
            return Err(self.misunderstood());
        }
        let found = names
            .iter()
            .zip(rows)
            .map(|(name, rows)| self.understand(name, &rows));
        Ok((found.collect(), term))
    }

    /// In one transaction, and the consensus's term in which it was made.
    async fn read_together(&self, lane: &Lane, names: &[&LeaseName]) -> Result<(Vec<Rows>, u64), Failure> {
        let request = TxnRequest {
            success: names.iter().map(|name| self.reading(name)).collect(),
            ..TxnRequest::default()
        };
        let answer = transact(lane, &request).await?;
        let term = raft_term(answer.header);
        let rows = answer.responses.into_iter().map(|response| response.keys());
        Ok((rows.collect(), term))
    }

    /// Side by side, and the first of the consensus's terms in which they were answered.
    async fn read_each(&self, lane: &Arc<Lane>, names: &[&LeaseName]) -> Result<(Vec<Rows>, u64), Failure> {
        let mut reading = JoinSet::new();
        for (place, name) in names.iter().enumerate() {
            let (lane, request) = (Arc::clone(lane), self.range(name));
            reading.spawn(async move {
                let answer: Result<RangeResponse, _> = lane.unary(path::RANGE, &request).await;
                answer.map(|answer| (place, answer))
            });
        }
        let answers = reading.join_all().await.into_iter();
        let mut answers = answers.collect::<Result<Vec<_>, _>>()?;
        answers.sort_by_key(|(place, _)| *place);
        let terms = answers.iter().map(|(_, answer)| raft_term(answer.header));
        let term = terms.min().unwrap_or(0);
        Ok((answers.into_iter().map(|(_, answer)| answer.kvs).collect(), term))
    }

    /// A lease for its readers: what remains of it is asked of its session.
    pub(crate) async fn lease_now(
        &self,
        name: &LeaseName,
        found: &Found,
    ) -> Result<Option<Lease>, StoreError> {
        found.ends_by_itself(&self.keys, name)?;
        let remains = match &found.holder {
            Some(holder) if found.record.is_some() => {
                let remains = remains(&self.requests, holder.session).await;
                remains.map_err(|failure| self.failed(&failure, Deed::Read, name))?
            }
            Some(_) | None => Remains::default(),
        };
        Ok(found.lease(name, remains))
    }

    /// Reads a page, in the order of the names.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        page.check()?;
        let subject = "the list of leases";
        let (rows, next) = self.rows(page, subject).await?;
        let found = rows
            .iter()
            .map(|(name, rows)| (name.as_str(), self.found(name, rows)));
        let found: Vec<_> = found.collect();
        let readable = found.iter().filter_map(|(_, found)| found.as_ref().ok());
        let readable = readable.filter(|(_, found)| found.record.is_some());
        let sessions = readable.filter_map(|(_, found)| found.holder.as_ref().map(|holder| holder.session));
        let remains = self.remains_of(sessions.collect()).await;
        let remains = remains.map_err(|failure| failure.error(Deed::Read, subject, &self.place))?;
        let listed = found.into_iter().filter_map(|(key, found)| match found {
            Ok((name, found)) => {
                let session = found.holder.as_ref().map(|holder| holder.session);
                let remains = session.and_then(|session| remains.get(&session));
                // Without a record: what an operator has removed that of.
                let lease = found.lease(&name, remains.copied().unwrap_or_default());
                lease.map(Listed::Lease)
            }
            Err(error) => Some(Listed::Unreadable {
                key: shown(key.as_bytes()),
                error,
            }),
        });
        Ok(LeasePage {
            leases: listed.collect(),
            next,
        })
    }

    /// What remains of each of these sessions.
    async fn remains_of(&self, sessions: BTreeSet<i64>) -> Result<BTreeMap<i64, Remains>, Failure> {
        let asking = sessions.into_iter().map(|session| {
            let lane = Arc::clone(&self.requests);
            async move { remains(&lane, session).await.map(|remains| (session, remains)) }
        });
        let asked = side_by_side(asking, SESSIONS_AT_ONCE).await;
        asked.into_iter().collect()
    }

    /// The keys of a page's leases by their names, and where the next page begins.
    pub(crate) async fn rows(
        &self,
        page: &Page,
        subject: &str,
    ) -> Result<(BTreeMap<String, Rows>, Option<Cursor>), StoreError> {
        let (key, range_end) = self.keys.of_leases(&page.prefix, page.after.as_ref());
        let request = RangeRequest {
            key,
            range_end,
            // One lease more than is wanted: the keys of the last may be cut off.
            limit: i64::from(page.limit + 1) * KEYS_OF_LEASE_MAX,
            count_only: false,
        };
        let failed = |failure: Failure| failure.error(Deed::Read, subject, &self.place);
        let answer: RangeResponse = self.requests.unary(path::RANGE, &request).await.map_err(failed)?;
        let seen_up_to = answer.kvs.last().map(|row| self.keys.behind(&row.key));
        let mut by_name: BTreeMap<String, Rows> = BTreeMap::new();
        for row in answer.kvs {
            // Keys of another layout are passed over.
            if let Some((name, _)) = self.keys.read(&row.key) {
                by_name.entry(name.to_owned()).or_default().push(row);
            }
        }
        let mut more = answer.more;
        if answer.more && by_name.len() > 1 {
            by_name.pop_last();
        } else if answer.more
            && let Some(mut only) = by_name.first_entry()
            && let Ok(name) = LeaseName::new(only.key())
        {
            // Another program's keys stand between its own.
            let answer: Result<RangeResponse, _> = self.requests.unary(path::RANGE, &self.range(&name)).await;
            only.insert(answer.map_err(failed)?.kvs);
        }
        if let Some(beyond) = by_name.keys().nth(usize::from(page.limit)).cloned() {
            by_name.split_off(&beyond);
            more = true;
        }
        let last = by_name.keys().next_back().map(Cursor::behind);
        Ok((by_name, last.or(seen_up_to).filter(|_| more)))
    }

    fn found(&self, name: &str, rows: &[KeyValue]) -> Result<(LeaseName, Found), StoreError> {
        let found = Found::read(&self.keys, name, rows)?;
        let named = LeaseName::new(name).map_err(|error| {
            unreadable(rows.first().map_or(&[], |row| &row.key), name, &error.to_string())
        })?;
        found.ends_by_itself(&self.keys, &named)?;
        Ok((named, found))
    }
}

/// What remains of a session. The server tells whole seconds that have not begun; the one that has is added,
/// so that who waits for it does not come too early.
async fn remains(lane: &Lane, session: i64) -> Result<Remains, Failure> {
    let request = LeaseTimeToLiveRequest {
        id: session,
        keys: false,
    };
    let told: LeaseTimeToLiveResponse = lane.unary(path::LEASE_TIME_TO_LIVE, &request).await?;
    let seconds = |number: i64| Duration::from_secs(u64::try_from(number).unwrap_or(0));
    let granted = seconds(told.granted_ttl);
    let remaining = match told.ttl {
        ..0 => Duration::ZERO,
        whole => (seconds(whole) + Duration::from_secs(1)).min(granted),
    };
    Ok(Remains {
        remaining,
        renewed_ago: granted.saturating_sub(remaining),
    })
}
