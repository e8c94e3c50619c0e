//! Renewing and releasing: many leases in one statement, with a verdict for each.

use crate::fault::Deed;
use crate::kept::Often;
use crate::record::{Record, Told, is_there, read};
use crate::site::{Site, Typed, subject};
use tenure_core::{
    Attempt, Fault, FencingToken, Incarnation, Lease, LeaseName, Release, Released, Renew, Renewed,
    StoreError, Wish,
};
use tenure_remote::after_a_step;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The terms of a batch, column by column.
#[derive(Default)]
struct Terms<'a> {
    names: Vec<&'a str>,
    incarnations: Vec<String>,
    tokens: Vec<i64>,
    attempts: Vec<i64>,
}

impl<'a> Terms<'a> {
    fn add(&mut self, name: &'a LeaseName, incarnation: Incarnation, token: FencingToken, attempt: Attempt) {
        self.names.push(name.as_str());
        self.incarnations.push(incarnation.to_string());
        self.tokens.push(token.signed());
        self.attempts
            .push(i64::try_from(attempt.number()).expect("an attempt is at most 2^63 - 1"));
    }

    fn parameters(&self) -> [Typed<'_>; 4] {
        [
            (&self.names, Type::TEXT_ARRAY),
            (&self.incarnations, Type::TEXT_ARRAY),
            (&self.tokens, Type::INT8_ARRAY),
            (&self.attempts, Type::INT8_ARRAY),
        ]
    }

    /// Whether it is the term at this place that holds the lease.
    fn is_at(&self, place: usize, lease: &Lease) -> bool {
        self.tokens[place] == lease.token.signed()
            && self.incarnations[place] == lease.holder.incarnation.to_string()
    }

    /// Whether the lease is held, by the very term at this place.
    fn is_held_at(&self, place: usize, lease: &Lease) -> bool {
        let attempt = i64::try_from(lease.attempt.number()).ok();
        self.is_at(place, lease)
            && attempt == Some(self.attempts[place])
            && !lease.released
            && !lease.remaining.is_zero()
    }

    /// What a failure of the whole batch is about.
    fn subject(&self, deed: &str) -> String {
        match self.names.as_slice() {
            [only] => format!("lease \"{only}\""),
            several => format!("{deed} of {} leases", several.len()),
        }
    }
}

impl Site {
    /// Extends leases: one round trip, on the connection that nothing else uses.
    pub(crate) async fn renew(&self, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let mut terms = Terms::default();
        let mut ttls = Vec::with_capacity(requests.len());
        for request in requests {
            terms.add(&request.name, request.incarnation, request.token, request.attempt);
            ttls.push(i64::try_from(request.ttl.as_millis()).expect("a ttl is at most 24 h"));
        }
        let statement = format!("SELECT * FROM {}.renew($1, $2, $3, $4, $5)", self.schema());
        let [names, incarnations, tokens, attempts] = terms.parameters();
        let parameters = [names, incarnations, tokens, attempts, (&ttls, Type::INT8_ARRAY)];
        let subject = terms.subject("renewal");
        let rows = self
            .ask_on(&self.renewals, Deed::Write, &subject, &statement, &parameters)
            .await;
        let names: Vec<&LeaseName> = requests.iter().map(|request| &request.name).collect();
        self.answers(&terms, &names, rows, |verdict, record| match (verdict, record) {
            (Verdict::Done, Some(record)) => Some(Renewed::Extended {
                ttl: record.lease.ttl,
                wish: match record.lease.asked_to_step_down {
                    true => Wish::StepDown,
                    false => Wish::Nothing,
                },
            }),
            (Verdict::Done, None) => None,
            (Verdict::Not, record) => Some(Renewed::Lost(record.map(|record| Box::new(record.lease)))),
        })
    }

    /// Gives leases back: one round trip.
    pub(crate) async fn release(&self, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let mut terms = Terms::default();
        for request in requests {
            terms.add(&request.name, request.incarnation, request.token, request.attempt);
            self.unannounced.end(&request.name, request.token);
        }
        if let (true, [request]) = (self.quick, requests) {
            return vec![self.give_back(&request.name, &terms).await];
        }
        let statement = format!("SELECT * FROM {}.release($1, $2, $3, $4)", self.schema());
        let subject = terms.subject("release");
        let rows = self
            .ask(Deed::Write, &subject, &statement, &terms.parameters())
            .await;
        let names: Vec<&LeaseName> = requests.iter().map(|request| &request.name).collect();
        self.answers(&terms, &names, rows, released)
    }

    /// Gives the only lease of a batch back.
    async fn give_back(&self, name: &LeaseName, terms: &Terms<'_>) -> Result<Released, StoreError> {
        let statement = format!(
            "SELECT {}.give_back($1, $2, $3, $4), pg_catalog.pg_backend_pid()",
            self.schema()
        );
        let subject = subject(name);
        let parameters: [Typed<'_>; 4] = [
            (&terms.names[0], Type::TEXT),
            (&terms.incarnations[0], Type::TEXT),
            (&terms.tokens[0], Type::INT8),
            (&terms.attempts[0], Type::INT8),
        ];
        let rows = self
            .ask_often(Often::GiveBack, &subject, &statement, &parameters)
            .await?;
        let Some(row) = rows.first() else {
            return Err(self.without_verdict(&subject));
        };
        let told = Told::read(row).ok_or_else(|| self.crossed(&subject))?;
        let judged = self.verdict(name, told.verdict(), told.name(), || told.record(&self.table()))?;
        self.answer(terms, 0, name, judged, released)
    }

    /// One answer per request, in their order. What is done must have been done to the term that was asked
    /// for.
    fn answers<T>(
        &self,
        terms: &Terms<'_>,
        names: &[&LeaseName],
        rows: Result<Vec<Row>, StoreError>,
        answer: impl Fn(Verdict, Option<Record>) -> Option<T>,
    ) -> Vec<Result<T, StoreError>> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return names.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut answers: Vec<_> = names.iter().map(|_| None).collect();
        for row in &rows {
            if !is_there(row, 2) {
                continue;
            }
            let place = row.try_get::<_, i64>(0).ok();
            let place = place.and_then(|place| usize::try_from(place - 1).ok());
            let Some(place) = place.filter(|place| *place < names.len()) else {
                continue;
            };
            let record = || read(row, 2, &self.table());
            let told_of = row.try_get::<_, Option<&str>>(2).ok().flatten();
            let judged = self.verdict(names[place], row.try_get(1).unwrap_or_default(), told_of, record);
            let answer = judged.and_then(|judged| self.answer(terms, place, names[place], judged, &answer));
            answers[place] = Some(answer);
        }
        let answers = answers.into_iter().zip(names);
        answers
            .map(|(answer, name)| answer.unwrap_or_else(|| Err(self.without_verdict(&subject(name)))))
            .collect()
    }

    /// The answer to the request at this place, if it is one to that.
    fn answer<T>(
        &self,
        terms: &Terms<'_>,
        place: usize,
        name: &LeaseName,
        (verdict, record): (Verdict, Option<Record>),
        answer: impl Fn(Verdict, Option<Record>) -> Option<T>,
    ) -> Result<T, StoreError> {
        let is_anothers = |record: &Record| {
            record.lease.name != *name
                || match verdict {
                    Verdict::Done => !terms.is_at(place, &record.lease),
                    // That it has lost its lease is said to somebody else, of whom it is true.
                    Verdict::Not => terms.is_held_at(place, &record.lease),
                }
        };
        if record.as_ref().is_some_and(is_anothers) {
            return Err(self.crossed(&subject(name)));
        }
        answer(verdict, record).ok_or_else(|| self.without_verdict(&subject(name)))
    }

    fn verdict(
        &self,
        name: &LeaseName,
        verdict: &str,
        told_of: Option<&str>,
        record: impl Fn() -> Result<Record, StoreError>,
    ) -> Result<(Verdict, Option<Record>), StoreError> {
        match verdict {
            "extended" | "vacated" => Ok((Verdict::Done, Some(record().map_err(after_a_step)?))),
            "lost" => Ok((Verdict::Not, Some(record()?))),
            // A set-up from before this names no lease that is gone.
            "gone" if told_of.is_some_and(|told_of| told_of != name.as_str()) => {
                Err(self.crossed(&subject(name)))
            }
            "gone" => Ok((Verdict::Not, None)),
            "busy" => Err(StoreError::not_applied(
                Fault::Busy,
                format!(
                    "{} at {}: another transaction keeps the row locked; look in pg_locks for it, or ask again",
                    subject(name),
                    self.place
                ),
            )),
            _ => Err(self.without_verdict(&subject(name))),
        }
    }
}

/// What a release is answered.
fn released(verdict: Verdict, record: Option<Record>) -> Option<Released> {
    match (verdict, record) {
        (Verdict::Done, Some(_)) => Some(Released::Vacated),
        (Verdict::Done, None) => None,
        (Verdict::Not, record) => Some(Released::NotYours(record.map(|record| Box::new(record.lease)))),
    }
}

/// What became of one request of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It was done.
    Done,
    /// It was not: the record is another term's, or gone.
    Not,
}
