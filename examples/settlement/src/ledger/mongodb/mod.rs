//! The ledger in a MongoDB database; needs a replica set, as transactions do.

mod look;
mod sessions;

use super::{Committed, Fencing, Ledger, LedgerError, Row, Writer, must_be_its_file, resource};
use crate::payments::{Batch, Checksum, movements};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use mongodb::error::{Error, ErrorKind, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{Acknowledgment, ClientOptions, ReadConcern, WriteConcern};
use mongodb::{Client, ClientSession, Database};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;
use tenure::contract::Answer;
use tenure::mongodb::{EnterError, MongoFence};
use tenure::{Fence, FencingToken, Leases};

/// A ledger, and its fence, in one database.
pub struct MongoLedger {
    database: Database,
    fence: MongoFence,
    fencing: Fencing,
    /// The session of the current term.
    session: Option<(FencingToken, ClientSession)>,
    /// The notes of the sessions that it has ended.
    ended: Vec<Bson>,
}

impl MongoLedger {
    /// Connects, and makes the collections where they are missing.
    pub async fn open(url: &str, fencing: Fencing) -> Result<Self, LedgerError> {
        let mut options = ClientOptions::parse(url).await?;
        options.server_selection_timeout = Some(SELECTION_MAX);
        // What a majority has in its journals survives the loss of the primary. Transactions inherit both.
        let majority = WriteConcern::builder().w(Acknowledgment::Majority).journal(true);
        options.write_concern = Some(majority.build());
        options.read_concern = Some(ReadConcern::majority());
        let client = Client::with_options(options)?;
        let database = client
            .default_database()
            .unwrap_or_else(|| client.database("settlement"));
        for name in [SETTLED, ACCOUNT, BATCH] {
            made(database.create_collection(name).await)?;
        }
        let fresh = doc! { "$setOnInsert": { "settled": 0_i64 } };
        let checkpoint = database.collection::<Document>(CHECKPOINT);
        made(checkpoint.update_one(job(), fresh).upsert(true).await)?;
        Ok(Self {
            fence: MongoFence::new(&database, Leases::Elsewhere),
            database,
            fencing,
            session: None,
            ended: Vec::new(),
        })
    }

    /// Runs one transaction of the term to its end, whatever that is.
    ///
    /// When it fails, nobody knows whether it was committed. The next transaction of the same session tells:
    /// the server numbers them, and never commits an earlier one after a later one has begun.
    async fn transact(&mut self, work: Work<'_>, writer: &Writer) -> Result<u64, LedgerError> {
        let Some((_, session)) = &mut self.session else {
            return Err(LedgerError::Trouble("the term was not prepared".to_owned()));
        };
        let transaction = async {
            session.start_transaction().await?;
            match self.fencing {
                Fencing::On => self.fence.enter(session, resource(), &writer.term).await?,
                Fencing::Off => {}
            }
            let settled = match work {
                Work::Begin(file) => begin(&self.database, session, file).await?,
                Work::Settle(batch) => write(&self.database, session, batch, writer).await?,
            };
            commit(session).await?;
            Ok(settled)
        };
        let outcome = within(TRANSACTION_MAX, transaction).await;
        if outcome.is_err() {
            // What it has written would stay locked until the server's own limit, a minute. It fails where
            // nothing is open any more.
            let abort = async { Ok(session.abort_transaction().await?) };
            drop(within(SELECTION_MAX, abort).await);
        }
        outcome
    }
}

/// What a transaction does.
enum Work<'a> {
    Begin(Checksum),
    Settle(Batch<'a>),
}

/// Reads the checkpoint, and notes which file it is of.
async fn begin(database: &Database, session: &mut ClientSession, file: Checksum) -> Result<u64, LedgerError> {
    let collection = database.collection::<Document>(CHECKPOINT);
    let checkpoint = collection.find_one(job()).session(&mut *session).await?;
    let settles = checkpoint.as_ref().and_then(|found| found.get_str("file").ok());
    must_be_its_file(settles, file)?;
    if settles.is_none() {
        let noted = doc! { "$set": { "file": file.to_string() } };
        collection.update_one(job(), noted).session(session).await?;
    }
    look::settled(checkpoint)
}

/// Writes a batch, and answers with the checkpoint after it.
async fn write(
    database: &Database,
    session: &mut ClientSession,
    batch: Batch<'_>,
    writer: &Writer,
) -> Result<u64, LedgerError> {
    let token = writer.term.token.signed();
    let rows = batch.payments.iter().map(|payment| {
        rawdoc! {
            "payment": signed(payment.id),
            "debtor": i64::from(payment.debtor),
            "creditor": i64::from(payment.creditor),
            "cents": payment.cents,
            "token": token,
        }
    });
    database
        .collection::<RawDocumentBuf>(SETTLED)
        .insert_many(rows)
        .session(&mut *session)
        .await?;

    // One command for all accounts: one round trip instead of a thousand.
    let bookings = movements(batch.payments).into_iter().map(|(account, cents)| {
        doc! { "q": { "_id": i64::from(account) }, "u": { "$inc": { "cents": cents } }, "upsert": true }
    });
    let bookings = doc! { "update": ACCOUNT, "updates": bookings.collect::<Vec<_>>() };
    let booked = database.run_command(bookings).session(&mut *session).await?;
    if let Some(refused) = booked.get("writeErrors") {
        // A command reports these beside its success, not as its failure.
        return Err(LedgerError::Trouble(format!(
            "the ledger: accounts were not booked: {refused}"
        )));
    }

    let committed = doc! {
        "start": signed(batch.start),
        "payments": signed(batch.payments.len() as u64),
        "token": token,
        "instance": &writer.instance,
    };
    database
        .collection::<Document>(BATCH)
        .insert_one(committed)
        .session(&mut *session)
        .await?;
    let moved = doc! { "$set": { "settled": signed(batch.end()) } };
    database
        .collection::<Document>(CHECKPOINT)
        .update_one(job(), moved)
        .session(session)
        .await?;
    Ok(batch.end())
}

/// Commits, and asks again where the answer was lost.
async fn commit(session: &mut ClientSession) -> Result<(), LedgerError> {
    for _attempt in 1..COMMITS_MAX {
        match session.commit_transaction().await {
            Err(error) if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) => {}
            outcome => return Ok(outcome?),
        }
    }
    Ok(session.commit_transaction().await?)
}

/// Waits so long for the driver and no longer: for a frozen server, it alone waits for ever.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, LedgerError>>,
) -> Result<T, LedgerError> {
    let late = |_| LedgerError::Trouble(format!("the ledger: no answer within {limit:?}"));
    tokio::time::timeout(limit, work).await.map_err(late)?
}

impl Ledger for MongoLedger {
    fn fence(&self) -> &dyn Fence {
        &self.fence
    }

    fn prepare<'a>(&'a mut self, writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>> {
        Box::pin(within(SELECTION_MAX, async {
            let token = writer.term.token;
            if self.session.as_ref().is_none_or(|(noted, _)| *noted != token) {
                self.session = Some((token, sessions::begin(&self.database, token).await?));
            }
            self.ended = sessions::end_earlier(&self.database, token).await?;
            Ok(())
        }))
    }

    fn checkpoint<'a>(
        &'a mut self,
        file: Checksum,
        writer: &'a Writer,
    ) -> Answer<'a, Result<u64, LedgerError>> {
        Box::pin(async move {
            let settled = self.transact(Work::Begin(file), writer).await?;
            // This term has claimed: no earlier one begins anything any more.
            let notes = std::mem::take(&mut self.ended);
            within(SELECTION_MAX, sessions::forget(&self.database, &notes)).await?;
            Ok(settled)
        })
    }

    fn settle<'a>(&'a mut self, batch: Batch<'a>, writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>> {
        Box::pin(async move { self.transact(Work::Settle(batch), writer).await.map(drop) })
    }

    fn progress(&self) -> Answer<'_, Result<u64, LedgerError>> {
        Box::pin(async {
            let checkpoint = self.database.collection::<Document>(CHECKPOINT);
            look::settled(checkpoint.find_one(job()).await?)
        })
    }

    fn each_row<'a>(&'a self, show: &'a mut (dyn FnMut(Row) + Send)) -> Answer<'a, Result<(), LedgerError>> {
        Box::pin(look::each_row(&self.database, show))
    }

    fn balances(&self) -> Answer<'_, Result<BTreeMap<u32, i64>, LedgerError>> {
        Box::pin(look::balances(&self.database))
    }

    fn batches(&self) -> Answer<'_, Result<Vec<Committed>, LedgerError>> {
        Box::pin(look::batches(&self.database))
    }
}

impl From<Error> for LedgerError {
    fn from(error: Error) -> Self {
        Self::Trouble(format!("the ledger: {}", error.kind))
    }
}

impl From<EnterError> for LedgerError {
    fn from(error: EnterError) -> Self {
        match error {
            EnterError::Refused(refusal) => refusal.into(),
            EnterError::Driver(error) => error.into(),
        }
    }
}

/// Two instances may make the same thing at once: one of them is told that it exists.
fn made<T>(outcome: Result<T, Error>) -> Result<(), LedgerError> {
    const NAMESPACE_EXISTS: i32 = 48;
    const DUPLICATE_KEY: i32 = 11_000;
    match outcome {
        Err(error) if exists(&error, NAMESPACE_EXISTS) || exists(&error, DUPLICATE_KEY) => Ok(()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn exists(error: &Error, wanted: i32) -> bool {
    match &*error.kind {
        ErrorKind::Command(refused) => refused.code == wanted,
        ErrorKind::Write(mongodb::error::WriteFailure::WriteError(refused)) => refused.code == wanted,
        _ => false,
    }
}

fn job() -> Document {
    doc! { "_id": "nightly" }
}

/// A count or a number of a payment, as BSON keeps it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("no file has 2^63 payments")
}

const SETTLED: &str = "settled";
const ACCOUNT: &str = "account";
const BATCH: &str = "batch";
const CHECKPOINT: &str = "checkpoint";

/// How long the driver looks for a primary: longer than an election takes.
const SELECTION_MAX: Duration = Duration::from_secs(5);

/// Longest transaction.
const TRANSACTION_MAX: Duration = Duration::from_secs(20);

/// How often one commit is sent.
const COMMITS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::{Fencing, Ledger, MongoLedger, Writer, resource};
    use crate::payments::Checksum;
    use mongodb::bson::{Document, doc};
    use tenure::{FencingToken, LeaseName, Term};
    use tenure_testkit::{ReplicaSet, Size};

    /// How many claims, each of which waits for seconds, come long before the server ends the transaction by
    /// itself.
    const CLAIMS_MAX: u32 = 6;

    fn writer(number: u64) -> Writer {
        let lease = LeaseName::new("nightly").expect("a name");
        let token = FencingToken::new(number).expect("a token");
        Writer {
            term: Term::new(lease, token),
            instance: format!("instance-{number}"),
        }
    }

    /// As of a predecessor that was frozen for a moment, and killed after that.
    #[tokio::test]
    async fn a_transaction_that_a_predecessor_begins_late_holds_no_claim_up_for_a_minute() {
        let set = ReplicaSet::start(Size::One).await.expect("a set");
        let [mut former, mut later] = [
            MongoLedger::open(&set.uri(), Fencing::On)
                .await
                .expect("a ledger"),
            MongoLedger::open(&set.uri(), Fencing::On)
                .await
                .expect("a ledger"),
        ];
        let [fifth, ninth] = [5, 9].map(writer);
        former.prepare(&fifth).await.expect("prepared");
        former
            .fence()
            .claim(resource(), &fifth.term)
            .await
            .expect("a claim");
        later.prepare(&ninth).await.expect("prepared");
        let (_, session) = former.session.as_mut().expect("prepared");
        session.start_transaction().await.expect("a transaction");
        let fence = former.fence.clone();
        fence
            .enter(session, resource(), &fifth.term)
            .await
            .expect("admitted");
        // Killed: it neither commits nor aborts.
        std::mem::forget(former);
        let mut claims = 0;
        while later.fence().claim(resource(), &ninth.term).await.is_err() {
            claims += 1;
            assert!(claims < CLAIMS_MAX, "the transaction was not ended");
            later.prepare(&ninth).await.expect("prepared");
        }
        let file = Checksum::START;
        later.checkpoint(file, &ninth).await.expect("a checkpoint");
        let noted = later.database.collection::<Document>("session");
        let earlier = noted.count_documents(doc! { "_id": { "$lt": 9_i64 } });
        assert_eq!(earlier.await.expect("a count"), 0);
        assert_eq!(noted.count_documents(doc! {}).await.expect("a count"), 1);
    }
}
