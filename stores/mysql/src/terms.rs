//! Renewing and releasing: many leases in one statement, with a verdict for each.

use crate::record::{Record, read};
use crate::row::{number, text};
use crate::schema::call;
use crate::short::Short;
use crate::site::{Site, subject};
use mysql_async::Row;
use std::fmt::Write as _;
use tenure_core::{
    Attempt, Fault, FencingToken, Incarnation, LeaseName, Release, Released, Renew, Renewed, StoreError, Ttl,
    Wish,
};
use tenure_remote::{Deed, after_a_step};

/// The terms of a batch, as the text of a JSON array; of letters and digits that no literal needs to escape.
struct Terms(String);

impl Terms {
    fn new() -> Self {
        Self("'[".to_owned())
    }

    fn add(
        &mut self,
        name: &LeaseName,
        incarnation: Incarnation,
        token: FencingToken,
        attempt: Attempt,
        ttl: Option<Ttl>,
    ) {
        let first = self.0.len() == 2;
        self.0.push_str(if first { "[\"" } else { ",[\"" });
        for byte in name.as_str().bytes() {
            let _infallible = write!(self.0, "{byte:02x}");
        }
        let _infallible = write!(
            self.0,
            "\",\"{incarnation}\",{},{}",
            token.signed(),
            attempt.number()
        );
        if let Some(ttl) = ttl {
            let _infallible = write!(self.0, ",{}", ttl.as_millis());
        }
        self.0.push(']');
    }

    fn literal(mut self) -> String {
        self.0.push_str("]'");
        self.0
    }
}

/// What a failure of a whole batch is about.
fn batch_subject(names: &[&LeaseName], deed: &str) -> String {
    match names {
        [only] => subject(only),
        several => format!("{deed} of {} leases", several.len()),
    }
}

impl Site {
    /// Extends leases: one round trip, on connections that nothing else uses.
    pub(crate) async fn renew(&self, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let mut terms = Terms::new();
        for one in requests {
            terms.add(&one.name, one.incarnation, one.token, one.attempt, Some(one.ttl));
        }
        let names: Vec<&LeaseName> = requests.iter().map(|request| &request.name).collect();
        let (statement, subject) = (
            call("renew", &[terms.literal()]),
            batch_subject(&names, "renewal"),
        );
        let rows = self
            .ask_on(&self.renewals, Deed::Write, &subject, &statement)
            .await;
        self.answers(&names, rows, |verdict, record| match (verdict, record) {
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
        let mut terms = Terms::new();
        for one in requests {
            terms.add(&one.name, one.incarnation, one.token, one.attempt, None);
        }
        let names: Vec<&LeaseName> = requests.iter().map(|request| &request.name).collect();
        let (statement, subject) = (
            call("release", &[terms.literal()]),
            batch_subject(&names, "release"),
        );
        let rows = match requests {
            [only] => {
                let short = self.unsettled.begin(&only.name).then(|| Short::vacate(only));
                match self.ask_shortly(&subject, short.as_ref(), &statement).await {
                    Ok(answer) if answer.shortly => {
                        self.unsettled.settle(&only.name);
                        return vec![Ok(Released::Vacated)];
                    }
                    answer => answer.map(|answer| answer.rows),
                }
            }
            _ => self.ask(Deed::Write, &subject, &statement).await,
        };
        let answers = self.answers(&names, rows, |verdict, record| match (verdict, record) {
            (Verdict::Done, Some(_)) => Some(Released::Vacated),
            (Verdict::Done, None) => None,
            (Verdict::Not, record) => Some(Released::NotYours(record.map(|record| Box::new(record.lease)))),
        });
        for (name, answer) in names.iter().zip(&answers) {
            if matches!(answer, Ok(Released::Vacated)) {
                self.unsettled.settle(name);
            }
        }
        answers
    }

    /// One answer per request, in their order.
    fn answers<T>(
        &self,
        names: &[&LeaseName],
        rows: Result<Vec<Row>, StoreError>,
        answer: impl Fn(Verdict, Option<Record>) -> Option<T>,
    ) -> Vec<Result<T, StoreError>> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return names.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut answers: Vec<_> = names
            .iter()
            .map(|name| Err(self.without_verdict(&subject(name))))
            .collect();
        for row in &rows {
            let place = number(row, 0).and_then(|place| usize::try_from(place - 1).ok());
            let Some(place) = place.filter(|place| *place < names.len()) else {
                continue;
            };
            answers[place] = self.verdict(names[place], row).and_then(|(verdict, record)| {
                answer(verdict, record).ok_or_else(|| self.without_verdict(&subject(names[place])))
            });
        }
        answers
    }

    fn verdict(&self, name: &LeaseName, row: &Row) -> Result<(Verdict, Option<Record>), StoreError> {
        let record = || read(row, 2, &self.table()).map(Some);
        match text(row, 1) {
            // The server has done it.
            Some("extended" | "vacated") => Ok((Verdict::Done, record().map_err(after_a_step)?)),
            Some("lost") => Ok((Verdict::Not, record()?)),
            Some("gone") => Ok((Verdict::Not, None)),
            Some("busy") => Err(StoreError::not_applied(
                Fault::Busy,
                format!(
                    "{} at {}: another transaction keeps the row locked; look in information_schema.innodb_trx for it, or \
                     ask again",
                    subject(name),
                    self.place()
                ),
            )),
            Some(_) | None => Err(self.without_verdict(&subject(name))),
        }
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
