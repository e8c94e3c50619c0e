//! Setting a database up, for its owner.

use crate::SYSTEM;
use crate::connect::{CONNECT_TIME_MAX, bounded, site};
use crate::fault::{store_error, timed_out};
use crate::later::Lacking;
use crate::procedures::Likeness;
use crate::schema::{Step, script, steps};
use crate::store::MysqlStore;
use crate::url::StoreUrl;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, ServerError};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::{Deed, OwnThread, line};

/// How long a set-up may take: it may wait for who uses the tables.
const SETUP_TIME_MAX: Duration = Duration::from_secs(30);

impl MysqlStore {
    /// Makes the tables and procedures of leases and fences in the database of `url`, where they are missing,
    /// and replaces procedures that an earlier Tenure has made and that were mended since. Repeatable; tables
    /// stay, and get the column that came later, and on MySQL their rules as they are now. For the owner of
    /// database and procedures: who runs candidates needs less.
    ///
    /// For new rules MySQL copies the table, and nothing is renewed meanwhile: some seconds for each 100,000
    /// names that were ever used. Remove those of no use before.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`Fault::Forbidden`](tenure_core::Fault::Forbidden) for who may not
    /// create them; [`Fault::Unsupported`](tenure_core::Fault::Unsupported), with the way out, where there is
    /// a procedure to replace in MySQL, which cannot. What was made before it failed stays, and is found by
    /// the next set-up.
    pub async fn init(url: &str) -> Result<(), StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        thread.run(set_up(url)).await?
    }

    /// The statements that [`init`](Self::init) runs in an empty database, for who wants to read them, or to
    /// have them run by somebody else with the command-line client. They make what is missing and replace
    /// nothing.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read.
    pub fn init_statements(url: &str) -> Result<String, StoreError> {
        StoreUrl::parse(url)?;
        Ok(script())
    }
}

async fn set_up(url: StoreUrl) -> Result<(), StoreError> {
    let place = url.place();
    let mut site = site(url);
    drop(bounded(place.clone(), site.recognise()).await?);
    let (there, lacking) = (site.compared().await?, site.what_tables_lack().await?);
    let mut conn = site.dial.open("the set-up").await?;
    let running = async {
        for step in steps() {
            match step {
                Step::Make(statement) => {
                    match there.iter().find(|(procedure, _)| procedure.create == statement) {
                        // Also to find out that it is there, the server waits for whoever uses it.
                        Some((_, Likeness::Same | Likeness::Hidden)) => {}
                        Some((procedure, Likeness::Other)) => conn.query_drop(procedure.replace()).await?,
                        Some((_, Likeness::Unseen)) | None => conn.query_drop(statement).await?,
                    }
                }
                Step::Mend(mend) => {
                    if let Some(statement) = mend.statement(&lacking) {
                        match conn.query_drop(statement).await {
                            // Another set-up at once was quicker: MySQL has no words for "unless it is
                            // there".
                            Err(Error::Server(answer)) if answer.code == COLUMN_IS_THERE => {}
                            done => done?,
                        }
                    }
                }
            }
        }
        conn.disconnect().await
    };
    let late = |_| {
        let allowed = SETUP_TIME_MAX + CONNECT_TIME_MAX;
        timed_out(Deed::Write, "the set-up", &place, allowed)
    };
    let done = tokio::time::timeout(SETUP_TIME_MAX, running)
        .await
        .map_err(late)
        .and_then(|done| {
            done.map_err(|error| {
                let other = there.iter().filter(|(_, likeness)| *likeness == Likeness::Other);
                let other: Vec<&str> = other.map(|(procedure, _)| procedure.name.as_str()).collect();
                match error {
                    Error::Server(answer) if answer.code == SYNTAX && !other.is_empty() => {
                        cannot_replace(&other, &place)
                    }
                    Error::Server(answer) if answer.code == UNKNOWN_COLUMN => in_the_way(&answer, &place),
                    error => store_error(&error, Deed::Write, "the set-up", &place),
                }
            })
        });
    done.map_err(|error| match copies(&lacking) {
        true => while_copying(error),
        false => error,
    })
}

/// Whether what is lacking is mended by a copy of a table.
fn copies(lacking: &[Lacking]) -> bool {
    lacking.iter().any(|lacking| matches!(lacking, Lacking::Rule(_)))
}

/// MySQL adds a rule by copying the table, and by no other algorithm. It goes on when nobody waits for it any
/// more; and where a transaction that has only read the table is open, it finds that out when it has copied
/// all.
fn while_copying(mut error: StoreError) -> StoreError {
    if matches!(error.fault, Fault::TimedOut | Fault::Busy) {
        error.message.push_str(
            "; it puts rules right, for which MySQL copies tenure_leases and tenure_fences, and nothing is renewed or claimed \
             meanwhile: look for it in SHOW PROCESSLIST, end transactions that use these tables (a dump is one), remove unused \
             names (`tenure gc`), then run it again",
        );
    }
    error
}

/// To drop a procedure and make it anew would end every campaign that calls it between: a missing one is a
/// set-up that only a person can mend.
fn cannot_replace(procedures: &[&str], place: &str) -> StoreError {
    let message = format!(
        "the set-up at {place}: an earlier Tenure has made {}, which MySQL cannot replace while they are used: stop the \
         candidates, DROP PROCEDURE each, run `tenure store init` again, and grant them again where they were granted by name",
        procedures.join(", ")
    );
    StoreError::not_applied(Fault::Unsupported, message)
}

/// What a set-up meets that has other columns is not Tenure's: what is said of it elsewhere, to run the
/// set-up, would lead here again.
fn in_the_way(answer: &ServerError, place: &str) -> StoreError {
    let message = format!(
        "the set-up at {place}: {} ({}); another program has a table of that name there: give the leases a database of their own",
        line(&answer.message),
        answer.code
    );
    StoreError::not_applied(Fault::Unsupported, message)
}

/// What a server answers to a column that a table has not.
const UNKNOWN_COLUMN: u16 = 1054;

/// What a server answers to a column that is added twice.
const COLUMN_IS_THERE: u16 = 1060;

/// What MySQL answers to `CREATE OR REPLACE PROCEDURE`.
const SYNTAX: u16 = 1064;

#[cfg(test)]
mod tests {
    use super::{copies, while_copying};
    use crate::later::Lacking;
    use tenure_core::{Fault, StoreError};

    #[test]
    fn set_up_that_waits_says_that_it_copies_tables_where_it_does() {
        assert!(copies(&[Lacking::Column, Lacking::Rule("tenure_leases_name")]));
        assert!(!copies(&[Lacking::Column]));
        for (fault, is_said) in [
            (Fault::TimedOut, true),
            (Fault::Busy, true),
            (Fault::Forbidden, false),
        ] {
            let told = while_copying(StoreError::unknown(fault, "the set-up"));
            assert_eq!(told.message.contains("copies tenure_leases"), is_said, "{told}");
        }
    }
}
