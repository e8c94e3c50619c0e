//! A number in MariaDB, protected in the writer's transaction or by triggers.

use super::kind::Kind;
use super::place::TRANSACTION_LIFETIME_S;
use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Transaction, TxOpts};
use std::sync::Mutex;
use tenure::contract::Answer;
use tenure::mysql::MysqlFence;
use tenure::{Leases, Term};
use tenure_testkit::Mariadb;

const TABLES: [&str; 2] = ["register", "history"];

/// Makes the tables, guarded where the triggers are the fence.
pub async fn make(kind: Kind, url: &str) {
    for statement in [
        &*format!("SET GLOBAL idle_transaction_timeout = {TRANSACTION_LIFETIME_S}"),
        "CREATE TABLE register (value BIGINT NOT NULL) ENGINE = InnoDB",
        "INSERT INTO register VALUES (0)",
        "CREATE TABLE history (place BIGINT PRIMARY KEY AUTO_INCREMENT, token BIGINT NOT NULL, seen BIGINT NOT NULL) \
         ENGINE = InnoDB",
        "CREATE TABLE bare (value BIGINT NOT NULL) ENGINE = InnoDB",
        "INSERT INTO bare VALUES (0)",
        "CREATE TABLE bare_history (place BIGINT PRIMARY KEY AUTO_INCREMENT, token BIGINT NOT NULL, seen BIGINT NOT NULL) \
         ENGINE = InnoDB",
    ] {
        Mariadb::execute_at(url, statement).await.unwrap();
    }
    if kind == Kind::MysqlGuard {
        let fence = MysqlFence::connect(url, Leases::Here).await.unwrap();
        for table in TABLES {
            fence.guard(table, &resource()).await.unwrap();
        }
    }
}

pub struct MysqlRegister {
    kind: Kind,
    url: String,
    fence: MysqlFence,
    idle: Mutex<Vec<Conn>>,
}

impl MysqlRegister {
    pub async fn open(kind: Kind, url: &str) -> Self {
        Self {
            kind,
            url: url.to_owned(),
            fence: MysqlFence::connect(url, Leases::Here).await.unwrap(),
            idle: Mutex::default(),
        }
    }

    async fn conn(&self) -> Option<Conn> {
        let idle = self.idle.lock().unwrap().pop();
        match idle {
            Some(conn) => Some(conn),
            None => Mariadb::client(&self.url).await.ok(),
        }
    }

    async fn run(&self, conn: &mut Conn, term: &Term, read: i64) -> Result<(), Outcome> {
        let transaction = conn.start_transaction(TxOpts::default()).await;
        let mut transaction = transaction.map_err(|_| Outcome::Undecided)?;
        match self.write_in(&mut transaction, term, read).await {
            // Nobody has entered there.
            Ok(()) if self.kind == Kind::MysqlGuard => {
                transaction.commit().await.map_err(|_| Outcome::Undecided)
            }
            Ok(()) => {
                let committed = self.fence.commit(transaction, &resource()).await;
                committed.map_err(|_| Outcome::Undecided)
            }
            Err(outcome) => match transaction.rollback().await {
                Ok(()) => Err(outcome),
                Err(_) => Err(Outcome::Undecided),
            },
        }
    }

    async fn write_in(
        &self,
        transaction: &mut Transaction<'_>,
        term: &Term,
        read: i64,
    ) -> Result<(), Outcome> {
        let token = term.token.signed();
        if self.kind == Kind::MysqlGuard {
            let shows = format!("SET @tenure_term = '{token} {}'", term.lease);
            self.judged(term, transaction.query_drop(shows).await).await?;
        } else {
            let entered = self.fence.enter(transaction, &resource(), term).await;
            entered.map_err(|error| Outcome::of(&error))?;
        }
        // The row keeps the next writer waiting until this transaction ends: so places are in the order of
        // their effect.
        let update = format!("UPDATE register SET value = {}", read + 1);
        self.judged(term, transaction.query_drop(update).await).await?;
        let note = format!("INSERT INTO history (token, seen) VALUES ({token}, {read})");
        self.judged(term, transaction.query_drop(note).await).await
    }

    /// Tells a refusal of the fence from everything else that a statement may fail of.
    async fn judged(&self, term: &Term, answer: Result<(), Error>) -> Result<(), Outcome> {
        let Err(error) = answer else {
            return Ok(());
        };
        match self.fence.refusal(&resource(), term, &error).await {
            Ok(Some(_)) => Err(Outcome::Refused),
            Ok(None) | Err(_) => Err(Outcome::Undecided),
        }
    }
}

impl Register for MysqlRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            let mut conn = self.conn().await?;
            let value = conn.query_first("SELECT value FROM register").await.ok()?;
            self.idle.lock().unwrap().push(conn);
            value
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let Some(mut conn) = self.conn().await else {
                return Outcome::Undecided;
            };
            let outcome = self.run(&mut conn, term, read).await;
            let outcome = outcome.err().unwrap_or(Outcome::Accepted);
            // The server may have ended it.
            if outcome != Outcome::Undecided {
                self.idle.lock().unwrap().push(conn);
            }
            outcome
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            let mut conn = self.conn().await.unwrap();
            let mut transaction = conn.start_transaction(TxOpts::default()).await.unwrap();
            let update = format!("UPDATE bare SET value = {}", read + 1);
            transaction.query_drop(update).await.unwrap();
            let note = format!("INSERT INTO bare_history (token, seen) VALUES (1, {read})");
            transaction.query_drop(note).await.unwrap();
            transaction.commit().await.unwrap();
            self.idle.lock().unwrap().push(conn);
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let mut conn = Mariadb::client(&self.url).await.unwrap();
            conn.query("SELECT token, seen FROM history ORDER BY place")
                .await
                .unwrap()
        })
    }
}
