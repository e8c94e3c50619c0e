//! A number in MongoDB, protected in the writer's transaction or in its document.

use super::kind::Kind;
use super::place::TRANSACTION_LIFETIME_S;
use super::register::{NotClaimed, Outcome, Register, Superseded, Write, claim, resource};
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, ClientOptions, WriteConcern};
use mongodb::{Client, Collection};
use std::collections::BTreeMap;
use std::sync::Mutex;
use tenure::contract::Answer;
use tenure::mongodb::{EnterError, FencedCollection, MongoFence};
use tenure::{FencingToken, Leases, Term};

/// Asks every member, since any may become the primary.
pub async fn end_frozen_transactions_soon(uri: &str) {
    let client = Client::with_uri_str(uri).await.unwrap();
    let limit = doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": TRANSACTION_LIFETIME_S };
    client.database("admin").run_command(limit).await.unwrap();
}

pub struct MongoRegister {
    kind: Kind,
    client: Client,
    register: Collection<Document>,
    history: Collection<Document>,
    fence: MongoFence,
    /// The collection as each term has it.
    fenced: Mutex<BTreeMap<FencingToken, FencedCollection<Document>>>,
}

impl MongoRegister {
    pub async fn open(kind: Kind, uri: &str) -> Self {
        let client = client(uri).await;
        let database = client.database(&format!("bench_{kind:?}"));
        let register = database.collection::<Document>("register");
        let fresh = doc! { "$setOnInsert": { "value": 0_i64, "history": [] } };
        register
            .update_one(doc! { "_id": 1 }, fresh)
            .upsert(true)
            .await
            .unwrap();
        // Exists already for whoever comes second.
        let _exists = database.create_collection("history").await;
        Self {
            kind,
            fence: MongoFence::new(&database, Leases::Elsewhere),
            history: database.collection("history"),
            register,
            client,
            fenced: Mutex::default(),
        }
    }

    async fn fenced(&self, term: &Term) -> Result<FencedCollection<Document>, EnterError> {
        if let Some(fenced) = self.fenced.lock().unwrap().get(&term.token) {
            return Ok(fenced.clone());
        }
        let fenced = self.fence.documents(&resource(), term, &self.register).await?;
        self.fenced.lock().unwrap().insert(term.token, fenced.clone());
        Ok(fenced)
    }

    async fn read_one(&self, term: &Term) -> Result<Option<i64>, EnterError> {
        let found = match self.kind {
            Kind::MongoDocument => self.fenced(term).await?.claim_one(doc! { "_id": 1 }).await?,
            _ => self.register.find_one(doc! { "_id": 1 }).await?,
        };
        Ok(found.and_then(|found| found.get_i64("value").ok()))
    }

    async fn write_document(&self, term: &Term, read: i64) -> Result<(), EnterError> {
        let update = doc! {
            "$set": { "value": read + 1 },
            "$push": { "history": { "token": term.token.signed(), "read": read } },
        };
        let updated = self
            .fenced(term)
            .await?
            .update_one(doc! { "_id": 1 }, update)
            .await?;
        assert_eq!(updated.matched_count, 1, "the document is there");
        Ok(())
    }

    async fn write_in_transaction(&self, term: &Term, read: i64) -> Result<(), EnterError> {
        let mut session = self.client.start_session().await?;
        session.start_transaction().await?;
        let written = async {
            self.fence.enter(&mut session, &resource(), term).await?;
            self.register
                .update_one(doc! { "_id": 1 }, doc! { "$set": { "value": read + 1 } })
                .session(&mut session)
                .await?;
            let note = doc! { "token": term.token.signed(), "read": read };
            self.history.insert_one(note).session(&mut session).await?;
            Ok(())
        };
        if let Err(error) = written.await {
            let _aborted_already = session.abort_transaction().await;
            return Err(error);
        }
        Ok(session.commit_transaction().await?)
    }
}

impl Register for MongoRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async { self.read_one(term).await.ok().flatten() })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let written = match self.kind {
                Kind::MongoDocument => self.write_document(term, read).await,
                _ => self.write_in_transaction(term, read).await,
            };
            match written {
                Ok(()) => Outcome::Accepted,
                Err(EnterError::Driver(_)) => Outcome::Undecided,
                Err(EnterError::Refused(error)) => Outcome::of(&error),
            }
        })
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let read = |write: &Document| {
                let token = write.get_i64("token").unwrap().unsigned_abs();
                (token, write.get_i64("read").unwrap())
            };
            if self.kind == Kind::MongoDocument {
                let found = self.register.find_one(doc! { "_id": 1 }).await.unwrap().unwrap();
                let history = found.get_array("history").unwrap();
                return history
                    .iter()
                    .map(|write| read(write.as_document().unwrap()))
                    .collect();
            }
            // Each has read another number, unless an update was lost: then two stand side by side.
            let mut found = self
                .history
                .find(doc! {})
                .sort(doc! { "read": 1, "token": 1 })
                .await
                .unwrap();
            let mut history = Vec::new();
            while found.advance().await.unwrap() {
                history.push(read(&found.deserialize_current().unwrap()));
            }
            history
        })
    }

    fn superseded(&self) -> Superseded {
        match self.kind {
            // The claim of the resource refuses nobody yet: the claim of the document does, which reads it.
            Kind::MongoDocument => Superseded::ByRead,
            _ => Superseded::ByClaim,
        }
    }
}

/// With the concerns that keep what was accepted through a fail-over.
pub async fn client(uri: &str) -> Client {
    let mut options = ClientOptions::parse(uri).await.unwrap();
    options.write_concern = Some(
        WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .build(),
    );
    Client::with_options(options).unwrap()
}
