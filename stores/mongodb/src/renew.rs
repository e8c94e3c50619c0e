use crate::fault::{Deed, after_a_step, reported, timed_out};
use crate::pipeline::{attempt_number, change_if, extension, held, is_term, merge_if, ttl_ms};
use crate::record::{Record, decode, fits, projection, readable};
use crate::site::{Site, subject, write_concern};
use mongodb::ClientSession;
use mongodb::action::Find;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, bson, doc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Certainty, Fault, Renew, Renewed, StoreError, Ttl, Wish};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Most leases that one statement extends. The server reads a statement's text for a tenth of a millisecond and more,
/// whatever it does then, so a statement for each lease kept it busy; but each record is looked for among all of its
/// statement's terms.
const STATEMENT_LEASES_MAX: usize = 64;

/// How many leases of a batch are looked at once more at the same time. Most batches lose none.
const READS_AT_ONCE: usize = 8;

/// A renewal may take a third of its ttl. It is judged by the clock at which it arrived, so where somebody keeps
/// the record locked, this is how long after its end a lease may be revived.
const PARTS_OF_TTL: u32 = 3;

/// A renewal may take so long whatever the ttl: less would end those of a busy server, which nobody keeps waiting.
const RENEWAL_TIME_LEAST: Duration = Duration::from_secs(1);

impl Site {
    /// Extends leases: one alone in one round trip, several in two; more where some were not extended.
    pub(crate) async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        match requests {
            [] => Vec::new(),
            [only] => {
                let renewed = self.renew_one(only);
                vec![self.in_time(Deed::Write, &subject(&only.name), renewed).await]
            }
            several => {
                let what = format!("renewal of {} leases", several.len());
                let renewed = self.renew_several(several, &what);
                let end = Instant::now() + self.time_max;
                let verdicts = self.in_time(Deed::Write, &what, renewed).await;
                let mut verdicts = verdicts.unwrap_or_else(|error| vec![Err(error); several.len()]);
                self.confirm_lost(several, &mut verdicts, end).await;
                verdicts
            }
        }
    }

    async fn renew_one(&self, request: &Renew) -> Result<Renewed, StoreError> {
        let changes = extension(request.ttl, self.purge_after);
        let pipeline = change_if(is_held_term(request), changes);
        let time_max = self.renewal_time_max(request.ttl);
        match self.change(&request.name, pipeline, time_max).await? {
            // Of the same command, so by the same clock: held and ours means that it was extended.
            Some(record) if is_mine(request, &record) && record.is_held() => Ok(extended(&record)),
            // Or no record that can be understood was found: the read says which it is.
            Some(_) | None => self.read_lost(request).await,
        }
    }

    fn renewal_time_max(&self, ttl: Ttl) -> Duration {
        let part = ttl.duration() / PARTS_OF_TTL;
        self.time_max.min(part.max(RENEWAL_TIME_LEAST))
    }

    /// Looks once more at a lease that was not extended, so that nothing newer can exist: a primary that was deposed
    /// does not know, and a term that is told as lost ends.
    async fn read_lost(&self, request: &Renew) -> Result<Renewed, StoreError> {
        match self.read(&request.name).await? {
            Some(record) if is_mine(request, &record) && record.is_held() => Err(StoreError::unknown(
                Fault::Busy,
                format!(
                    "{} at {}: it was not extended by a server that was behind; ask again",
                    subject(&request.name),
                    self.place
                ),
            )),
            found => Ok(Renewed::Lost(found.map(|record| Box::new(record.lease)))),
        }
    }

    /// The same for those of a batch that seem to be lost, some at a time. What is not answered by then stays unknown.
    async fn confirm_lost(
        self: &Arc<Self>,
        requests: &[Renew],
        verdicts: &mut [Result<Renewed, StoreError>],
        end: Instant,
    ) {
        let permits = Arc::new(Semaphore::new(READS_AT_ONCE));
        let mut running = JoinSet::new();
        for (place, verdict) in verdicts.iter_mut().enumerate() {
            if !matches!(verdict, Ok(Renewed::Lost(_))) {
                continue;
            }
            let request = requests[place].clone();
            *verdict = Err(timed_out(
                Deed::Write,
                &subject(&request.name),
                &self.place,
                self.time_max,
            ));
            let (site, permits) = (Arc::clone(self), Arc::clone(&permits));
            running.spawn(async move {
                let _permit = permits.acquire().await;
                (place, site.read_lost(&request).await)
            });
        }
        let collecting = async {
            while let Some(finished) = running.join_next().await {
                if let Ok((place, verdict)) = finished {
                    verdicts[place] = verdict.map_err(after_a_step);
                }
            }
        };
        let _late = tokio::time::timeout_at(end, collecting).await;
    }

    /// One `update` with a statement for some dozens of leases each, then one read of the same names, and of the whole records
    /// where they were not extended.
    ///
    /// The counts of an update do not tell which record was changed, so each extension stamps the record
    /// with this batch's id, and the read looks for it. It may be read later than it was written, never
    /// earlier: the session makes it wait for the write.
    async fn renew_several(
        &self,
        requests: &[Renew],
        what: &str,
    ) -> Result<Vec<Result<Renewed, StoreError>>, StoreError> {
        let batch = ObjectId::new();
        let mut session = self
            .within(Deed::Write, what, self.client.start_session().into_future())
            .await?;
        let groups = groups(requests, STATEMENT_LEASES_MAX);
        let refused = self
            .update_several(&mut session, requests, &groups, batch, what)
            .await?;
        self.judge_several(&mut session, requests, refused, batch, what)
            .await
            .map_err(after_a_step)
    }

    /// What comes after the first `update`, of which `refused` was not extended.
    async fn judge_several(
        &self,
        session: &mut ClientSession,
        requests: &[Renew],
        mut refused: BTreeMap<usize, StoreError>,
        batch: ObjectId,
        what: &str,
    ) -> Result<Vec<Result<Renewed, StoreError>>, StoreError> {
        if !refused.is_empty() {
            // Of a statement that fails some records may not have been reached: each gets one of its own.
            let again: Vec<usize> = refused.keys().copied().collect();
            let groups = again.iter().map(|index| vec![*index]).collect::<Vec<_>>();
            refused = self
                .update_several(session, requests, &groups, batch, what)
                .await?;
        }
        let mut places = Places::new();
        for (place, request) in requests.iter().enumerate() {
            places.entry(request.name.as_str()).or_default().push(place);
        }
        let mut verdicts: Vec<Option<Result<Renewed, StoreError>>> = vec![None; requests.len()];
        // Judged as they come: a document takes several times the room of its verdict, and many batches are under way.
        let found = self
            .leases
            .find(doc! { "_id": { "$in": names(&places) }, "renewal": batch, "released": null })
            .projection(
                doc! { "incarnation": 1, "generation": 1, "attempt": 1, "ttlMs": 1, "stepDownAsked": 1 },
            );
        let take_in = |document: Document| {
            for place in places_of(&places, &document) {
                verdicts[*place] = extended_now(&requests[*place], &document).map(Ok);
            }
        };
        self.read_several(session, found, requests.len(), what, take_in)
            .await?;
        places.retain(|_, places| places.iter().any(|place| verdicts[*place].is_none()));
        if !places.is_empty() {
            let found = self
                .leases
                .find(doc! { "_id": { "$in": names(&places) } })
                .projection(projection());
            let take_in = |document: Document| {
                for place in places_of(&places, &document) {
                    verdicts[*place] = Some(self.verdict(&requests[*place], &document, batch));
                }
            };
            self.read_several(session, found, places.len(), what, take_in)
                .await?;
        }
        let gone = || Ok(Renewed::Lost(None));
        let mut verdicts: Vec<_> = verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(gone))
            .collect();
        for (place, error) in refused {
            verdicts[place] = Err(error);
        }
        Ok(verdicts)
    }

    /// Sends a statement for each group; answers with the refused requests, by their place in the batch.
    async fn update_several(
        &self,
        session: &mut ClientSession,
        requests: &[Renew],
        groups: &[Vec<usize>],
        batch: ObjectId,
        what: &str,
    ) -> Result<BTreeMap<usize, StoreError>, StoreError> {
        let statement = |group: &Vec<usize>| {
            let requests: Vec<&Renew> = group.iter().map(|index| &requests[*index]).collect();
            Bson::from(self.statement(&requests, batch))
        };
        let statements: Vec<Bson> = groups.iter().map(statement).collect();
        let concern = mongodb::bson::serialize_to_bson(&write_concern(self.time_max))
            .expect("a write concern has no part that BSON lacks");
        let shortest = requests.iter().map(|request| request.ttl).min();
        let time_max = self.renewal_time_max(shortest.expect("no batch is empty"));
        let command = doc! {
            "update": self.leases.name(),
            "updates": statements,
            "ordered": false,
            "writeConcern": concern,
            "maxTimeMS": i64::try_from(time_max.as_millis()).unwrap_or(i64::MAX),
        };
        let request = self.database.run_command(command).session(session);
        let answer = self
            .within_time(time_max, Deed::Write, what, request.into_future())
            .await?;
        if let Ok(unconfirmed) = answer.get_document("writeConcernError") {
            return Err(reported(unconfirmed, Certainty::Unknown, what, &self.place));
        }
        let mut refused = BTreeMap::new();
        for error in answer
            .get_array("writeErrors")
            .into_iter()
            .flatten()
            .filter_map(Bson::as_document)
        {
            let place = error
                .get_i32("index")
                .ok()
                .and_then(|index| usize::try_from(index).ok());
            let Some(group) = place.and_then(|place| groups.get(place)) else {
                return Err(reported(error, Certainty::Unknown, what, &self.place));
            };
            for index in group {
                let subject = subject(&requests[*index].name);
                let error = reported(error, Certainty::Unknown, &subject, &self.place);
                refused.insert(*index, error);
            }
        }
        Ok(refused)
    }

    /// Extends the records of these terms, which are of one incarnation and one ttl.
    fn statement(&self, requests: &[&Renew], batch: ObjectId) -> Document {
        let first = requests.first().expect("no group is empty");
        let names: Vec<&str> = requests.iter().map(|request| request.name.as_str()).collect();
        let mut filter = readable();
        filter.insert("_id", doc! { "$in": &names });
        let terms: Vec<Bson> = requests
            .iter()
            .map(|request| {
                bson!([
                    request.name.as_str(),
                    request.token.signed(),
                    attempt_number(request.attempt),
                ])
            })
            .collect();
        let condition = bson!({ "$and": [
            { "$eq": ["$incarnation", first.incarnation.to_string()] },
            // A literal as a whole: a list of expressions is built anew for every record.
            { "$in": [["$_id", "$generation", "$attempt"], { "$literal": terms }] },
            held(),
        ] });
        let mut changes = extension(first.ttl, self.purge_after);
        changes.insert("renewal", batch);
        doc! { "q": filter, "u": merge_if(bson!({ "$and": [condition, fits()] }), changes), "multi": true }
    }

    async fn read_several(
        &self,
        session: &mut ClientSession,
        found: Find<'_, Document>,
        most: usize,
        what: &str,
        mut take_in: impl FnMut(Document),
    ) -> Result<(), StoreError> {
        let request = found
            .batch_size(u32::try_from(most).unwrap_or(u32::MAX))
            .max_time(self.time_max);
        let read = async {
            let mut cursor = request.session(&mut *session).await?;
            while let Some(document) = cursor.next(session).await.transpose()? {
                take_in(document);
            }
            Ok(())
        };
        // The write was made: what the read fails to tell is whether it matched.
        self.within(Deed::Write, what, read).await
    }

    fn verdict(&self, request: &Renew, document: &Document, batch: ObjectId) -> Result<Renewed, StoreError> {
        let record = decode(document, &self.namespace)?;
        if !is_mine(request, &record) || record.lease.released {
            return Ok(Renewed::Lost(Some(Box::new(record.lease))));
        }
        if record.renewal == Some(batch) {
            return Ok(extended(&record));
        }
        if record.is_held() {
            return Err(StoreError::unknown(
                Fault::Busy,
                format!(
                    "{} at {}: another renewal of the same term came between; ask again",
                    subject(&request.name),
                    self.place
                ),
            ));
        }
        Ok(Renewed::Lost(Some(Box::new(record.lease))))
    }
}

/// The places of a batch's requests, by the names that they are about.
type Places<'a> = BTreeMap<&'a str, Vec<usize>>;

fn names<'a>(places: &Places<'a>) -> Vec<&'a str> {
    places.keys().copied().collect()
}

fn places_of<'a>(places: &'a Places<'_>, document: &Document) -> &'a [usize] {
    let name = document.get_str("_id").unwrap_or_default();
    places.get(name).map(Vec::as_slice).unwrap_or_default()
}

/// The verdict on a record that has the batch's stamp, so that it was understood when it was extended; `None` if it is not, or
/// not any more, of this very term.
fn extended_now(request: &Renew, document: &Document) -> Option<Renewed> {
    let is_mine = document.get_str("incarnation").ok()?.parse() == Ok(request.incarnation)
        && document.get_i64("generation").ok()? == request.token.signed()
        && document.get_i64("attempt").ok()? == attempt_number(request.attempt);
    let ttl_ms = u64::try_from(document.get_i64("ttlMs").ok()?).ok()?;
    let wish = match document.get("stepDownAsked")? {
        Bson::Null => Wish::Nothing,
        _asked => Wish::StepDown,
    };
    let ttl = Ttl::from_millis(ttl_ms).ok()?;
    is_mine.then_some(Renewed::Extended { ttl, wish })
}

/// The places of requests of one incarnation and one ttl, at most so many together.
fn groups(requests: &[Renew], most: usize) -> Vec<Vec<usize>> {
    let mut alike: BTreeMap<(String, i64), Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        let key = (request.incarnation.to_string(), ttl_ms(request.ttl));
        alike.entry(key).or_default().push(place);
    }
    alike
        .values()
        .flat_map(|places| places.chunks(most))
        .map(<[usize]>::to_vec)
        .collect()
}

/// The record is of the very term, and somebody, so its holder, holds it now.
fn is_held_term(request: &Renew) -> Bson {
    bson!({ "$and": [is_term(request.incarnation, request.token, request.attempt), held()] })
}

fn is_mine(request: &Renew, record: &Record) -> bool {
    record.is_term(request.incarnation, request.token, request.attempt)
}

fn extended(record: &Record) -> Renewed {
    Renewed::Extended {
        ttl: record.lease.ttl,
        wish: record.wish(),
    }
}
