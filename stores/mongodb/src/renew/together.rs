//! Many leases by one command.

use super::{Verdict, extended, is_mine};
use crate::fault::{Deed, after_a_step, reported};
use crate::pipeline::{attempt_number, extension, held, merge_if, ttl_ms};
use crate::record::{decode, fits, projection, readable};
use crate::site::{Site, subject, write_concern};
use mongodb::ClientSession;
use mongodb::action::Find;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, bson, doc};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{Certainty, Fault, Renew, Renewed, StoreError, Ttl, Wish};

/// Most leases that one statement extends. The server reads a statement's text for a tenth of a millisecond
/// and more, whatever it does then, so a statement for each lease kept it busy; but each record is looked for
/// among all of its statement's terms.
pub(super) const STATEMENT_LEASES_MAX: usize = 64;

/// What one command has led to.
pub(super) struct Answers {
    pub(super) verdicts: Vec<Verdict>,
    /// The places of those that it did not come to: the server broke it off, or the statement that they are
    /// in.
    pub(super) unreached: Vec<usize>,
}

impl Answers {
    pub(super) fn final_ones(verdicts: Vec<Verdict>) -> Self {
        let unreached = Vec::new();
        Self { verdicts, unreached }
    }
}

impl Site {
    /// One `update` with a statement for some dozens of leases each, then one read of the same names, and of
    /// the whole records where they were not extended.
    ///
    /// The counts of an update do not tell which record was changed, so each extension stamps the record
    /// with this batch's id, and the read looks for it. It may be read later than it was written, never
    /// earlier: the session makes it wait for the write.
    ///
    /// The server breaks off an update that takes longer than `time_max`, and tells nothing of the statements
    /// that it has made by then: the read does.
    pub(super) async fn renew_together(
        &self,
        requests: &[Renew],
        time_max: Duration,
    ) -> Result<Answers, StoreError> {
        let what = format!("renewal of {} leases", requests.len());
        let batch = ObjectId::new();
        let mut session = self
            .within(Deed::Write, &what, self.client.start_session().into_future())
            .await?;
        let updated = self
            .update_several(&mut session, requests, batch, time_max, &what)
            .await;
        let refused = match updated {
            Err(error) if error.fault == Fault::TimedOut => {
                (0..requests.len()).map(|place| (place, error.clone())).collect()
            }
            updated => updated?,
        };
        self.judge_several(&mut session, requests, refused, batch, &what)
            .await
            .map_err(after_a_step)
    }

    /// What comes after the `update`, which may not have come to what it has `refused`.
    async fn judge_several(
        &self,
        session: &mut ClientSession,
        requests: &[Renew],
        refused: BTreeMap<usize, StoreError>,
        batch: ObjectId,
        what: &str,
    ) -> Result<Answers, StoreError> {
        let mut places = Places::new();
        for (place, request) in requests.iter().enumerate() {
            places.entry(request.name.as_str()).or_default().push(place);
        }
        let mut verdicts: Vec<Option<Verdict>> = vec![None; requests.len()];
        // Judged as they come: a document takes several times the room of its verdict, and many batches are
        // under way.
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
        let mut verdicts: Vec<Verdict> = verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(gone))
            .collect();
        // Whatever is another's by now needs not be asked for again.
        let mut unreached = Vec::new();
        for (place, error) in refused {
            if verdicts[place].is_err() {
                verdicts[place] = Err(error);
                unreached.push(place);
            }
        }
        Ok(Answers { verdicts, unreached })
    }

    /// Sends a statement for some dozens of leases each; answers with the refused requests, by their place in
    /// the batch.
    async fn update_several(
        &self,
        session: &mut ClientSession,
        requests: &[Renew],
        batch: ObjectId,
        time_max: Duration,
        what: &str,
    ) -> Result<BTreeMap<usize, StoreError>, StoreError> {
        let groups = groups(requests, STATEMENT_LEASES_MAX);
        let statement = |group: &Vec<usize>| {
            let requests: Vec<&Renew> = group.iter().map(|index| &requests[*index]).collect();
            Bson::from(self.statement(&requests, batch))
        };
        let statements: Vec<Bson> = groups.iter().map(statement).collect();
        let concern = mongodb::bson::serialize_to_bson(&write_concern(self.time_max))
            .expect("a write concern has no part that BSON lacks");
        let command = doc! {
            "update": self.leases.name(),
            "updates": statements,
            "ordered": false,
            "writeConcern": concern,
            // None is no bound.
            "maxTimeMS": i64::try_from(time_max.as_millis()).unwrap_or(i64::MAX).max(1),
        };
        let request = self.database.run_command(command).session(session);
        let answer = self.within(Deed::Write, what, request.into_future()).await?;
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

    fn verdict(&self, request: &Renew, document: &Document, batch: ObjectId) -> Verdict {
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

/// The verdict on a record that has the batch's stamp, so that it was understood when it was extended; `None`
/// if it is not, or not any more, of this very term.
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
