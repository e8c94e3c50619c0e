//! A number in PostgreSQL, protected in the writer's transaction or by triggers.

use super::kind::Kind;
use super::place::TRANSACTION_LIFETIME_S;
use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use std::sync::Mutex;
use tenure::contract::Answer;
use tenure::postgres::PostgresFence;
use tenure::{Leases, Term};
use tenure_testkit::Postgres;
use tokio_postgres::{Client, Error};

const TABLES: [&str; 2] = ["register", "history"];

/// Makes the tables, guarded where the triggers are the fence.
pub async fn make(kind: Kind, url: &str) {
    let statements = format!(
        "ALTER ROLE CURRENT_USER SET idle_in_transaction_session_timeout = '{TRANSACTION_LIFETIME_S}s';
         CREATE TABLE register (value bigint NOT NULL);
         INSERT INTO register VALUES (0);
         CREATE TABLE history (place bigserial PRIMARY KEY, token bigint NOT NULL, read bigint NOT NULL);
         CREATE TABLE bare (value bigint NOT NULL);
         INSERT INTO bare VALUES (0);
         CREATE TABLE bare_history (place bigserial PRIMARY KEY, token bigint NOT NULL, read bigint NOT NULL)"
    );
    Postgres::execute_at(url, &statements).await.unwrap();
    if kind == Kind::PostgresGuard {
        let fence = PostgresFence::connect(url, Leases::Here).await.unwrap();
        for table in TABLES {
            fence.guard(table, &resource()).await.unwrap();
        }
    }
}

pub struct PostgresRegister {
    kind: Kind,
    url: String,
    fence: PostgresFence,
    idle: Mutex<Vec<Client>>,
}

impl PostgresRegister {
    pub async fn open(kind: Kind, url: &str) -> Self {
        Self {
            kind,
            url: url.to_owned(),
            fence: PostgresFence::connect(url, Leases::Here).await.unwrap(),
            idle: Mutex::default(),
        }
    }

    async fn client(&self) -> Option<Client> {
        let idle = self.idle.lock().unwrap().pop();
        match idle {
            Some(client) => Some(client),
            None => Postgres::client(&self.url).await.ok(),
        }
    }

    async fn run(&self, client: &mut Client, term: &Term, read: i64) -> Result<(), Outcome> {
        let transaction = client.transaction().await.map_err(|_| Outcome::Undecided)?;
        let token = term.token.signed();
        if self.kind == Kind::PostgresGuard {
            let shows = format!("SELECT set_config('tenure.term', '{token} {}', true)", term.lease);
            self.judged(term, transaction.batch_execute(&shows).await).await?;
        } else {
            let entered = self.fence.enter(&transaction, &resource(), term).await;
            entered.map_err(|error| Outcome::of(&error))?;
        }
        // The row keeps the next writer waiting until this transaction ends: so places are in the order of
        // their effect.
        let update = format!("UPDATE register SET value = {}", read + 1);
        self.judged(term, transaction.batch_execute(&update).await)
            .await?;
        let note = format!("INSERT INTO history (token, read) VALUES ({token}, {read})");
        self.judged(term, transaction.batch_execute(&note).await).await?;
        self.judged(term, transaction.commit().await).await
    }

    /// Tells a refusal of the fence from everything else that a statement may fail of.
    async fn judged(&self, term: &Term, answer: Result<(), Error>) -> Result<(), Outcome> {
        let Err(error) = answer else {
            return Ok(());
        };
        match self.fence.refusal(term, &error).await {
            Some(_) => Err(Outcome::Refused),
            None => Err(Outcome::Undecided),
        }
    }
}

impl Register for PostgresRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            let client = self.client().await?;
            let row = client.query_one("SELECT value FROM register", &[]).await.ok()?;
            self.idle.lock().unwrap().push(client);
            row.try_get(0).ok()
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let Some(mut client) = self.client().await else {
                return Outcome::Undecided;
            };
            let outcome = self.run(&mut client, term, read).await;
            let outcome = outcome.err().unwrap_or(Outcome::Accepted);
            // The server may have ended it.
            if outcome != Outcome::Undecided {
                self.idle.lock().unwrap().push(client);
            }
            outcome
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            let mut client = self.client().await.unwrap();
            let transaction = client.transaction().await.unwrap();
            let update = format!("UPDATE bare SET value = {}", read + 1);
            transaction.batch_execute(&update).await.unwrap();
            let note = format!("INSERT INTO bare_history (token, read) VALUES (1, {read})");
            transaction.batch_execute(&note).await.unwrap();
            transaction.commit().await.unwrap();
            self.idle.lock().unwrap().push(client);
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let client = Postgres::client(&self.url).await.unwrap();
            let asked = "SELECT token, read FROM history ORDER BY place";
            let rows = client.query(asked, &[]).await.unwrap();
            let write = |row: &tokio_postgres::Row| (row.get::<_, i64>(0).unsigned_abs(), row.get(1));
            rows.iter().map(write).collect()
        })
    }
}
