//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{Asker, Scratch, grant};
use rusqlite::{Connection, TransactionBehavior};
use tenure_conformance::marks::what_leases_have_left_behind_says_nothing;
use tenure_core::{
    Bump, Claimed, Fence, FenceError, FencingToken, LeaseName, Leases, ListedMark, Mark, MarkPage,
    ResourceName, Term,
};
use tenure_sqlite::{FencedTable, SqliteFence};

/// The table as it was made before a bumped mark had a place for its lease.
const EARLIER_TABLE: &str = "
CREATE TABLE tenure_fence (
    resource        TEXT    NOT NULL PRIMARY KEY,
    lease           TEXT    NOT NULL,
    token           INTEGER NOT NULL,
    claimed_at      TEXT    NOT NULL,
    refused         INTEGER NOT NULL DEFAULT 0,
    last_refused    INTEGER,
    last_refused_at TEXT
) STRICT, WITHOUT ROWID;";

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).unwrap(), FencingToken::new(number).unwrap())
}

fn enter(connection: &mut Connection, fence: &SqliteFence, term: &Term) -> Result<(), FenceError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    fence.enter(&transaction, &ledger(), term)
}

/// A guarded table, and a mark that term 7 of "nightly" had claimed before it was bumped.
async fn bumped_after_a_claim(table: &str) -> (Scratch, SqliteFence, Mark) {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    connection.execute_batch(table).unwrap();
    SqliteFence::install(&connection).unwrap();
    connection
        .execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)")
        .unwrap();
    FencedTable::new("account", &ledger())
        .install(&connection)
        .unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    fence.claim(&ledger(), &term("nightly", 7)).await.unwrap();
    connection
        .execute("INSERT INTO account VALUES (7, 7)", [])
        .unwrap();
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    (scratch, fence, mark)
}

#[tokio::test]
async fn a_mark_that_was_bumped_after_a_claim_admits_nobody_until_a_later_term_claims() {
    for table in ["", EARLIER_TABLE] {
        let (scratch, fence, mark) = bumped_after_a_claim(table).await;
        let number = mark.token.number();
        let mut connection = scratch.raw();
        let refused = fence
            .check(&ledger(), &term("nightly", number))
            .await
            .unwrap_err();
        assert!(matches!(refused, FenceError::Unclaimed { .. }), "{refused}");
        let refused = enter(&mut connection, &fence, &term("nightly", number)).unwrap_err();
        assert!(matches!(refused, FenceError::Unclaimed { .. }), "{refused}");
        for statement in [
            format!("INSERT INTO account VALUES (8, {number})"),
            format!("UPDATE account SET fence = {number}"),
            format!("UPDATE account SET fence = -{number}"),
        ] {
            connection.execute(&statement, []).expect_err(&statement);
        }
        // It may be the very next token that its lease grants.
        let claimed = fence.claim(&ledger(), &term("nightly", number)).await;
        let from = Some(mark.token);
        assert_eq!(claimed, Ok(Claimed::Raised { from }));
        enter(&mut connection, &fence, &term("nightly", number)).unwrap();
        let inserted = connection.execute(&format!("INSERT INTO account VALUES (8, {number})"), []);
        assert_eq!(inserted, Ok(1));
    }
}

#[tokio::test]
async fn a_bumped_mark_still_belongs_to_its_lease() {
    for table in ["", EARLIER_TABLE] {
        let (_scratch, fence, mark) = bumped_after_a_claim(table).await;
        assert_eq!(mark.lease, Some(LeaseName::new("nightly").unwrap()));
        assert_eq!(fence.mark(&ledger()).await.unwrap(), Some(mark.clone()));
        let foreign = term("hourly", mark.token.number() + 1);
        let refusals = [
            fence.claim(&ledger(), &foreign).await.map(|_| ()),
            fence.check(&ledger(), &foreign).await,
        ];
        for refused in refusals {
            assert!(matches!(refused, Err(FenceError::Foreign { .. })), "{refused:?}");
        }
        // Bumped again, also to another lease.
        let mut bump = Bump {
            resource: ledger(),
            above: None,
            lease: None,
        };
        let again = fence.bump(&bump).await.unwrap();
        assert_eq!(again.lease, mark.lease);
        bump.lease = Some(foreign.lease.clone());
        let moved = fence.bump(&bump).await.unwrap();
        let mut listed = fence.marks(None).await.unwrap();
        // Refusals are noted behind whoever was refused, and those of before may be since.
        for listed in &mut listed.marks {
            if let ListedMark::Mark(mark) = listed {
                (mark.refused, mark.last_refused) = (moved.refused, moved.last_refused);
            }
        }
        assert_eq!(listed, MarkPage::last([moved.clone()]));
        let claimed = fence
            .claim(&ledger(), &term("hourly", moved.token.number()))
            .await;
        assert_eq!(
            claimed,
            Ok(Claimed::Raised {
                from: Some(moved.token)
            })
        );
    }
}

#[tokio::test]
async fn what_leases_have_left_behind_in_sqlite_says_nothing() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let granted = grant(&store, &Asker::new("a"), "nightly").await.token;
    SqliteFence::install(&scratch.raw()).unwrap();
    let here = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    let elsewhere = SqliteFence::new(scratch.file(), Leases::Elsewhere).unwrap();
    let left = term("nightly", granted.number());
    what_leases_have_left_behind_says_nothing(&here, &elsewhere, &left).await;
}
