//! What the fence refuses besides stale tokens, and how refusals are counted.
use crate::common::child::{in_role, role};
use crate::common::{Asker, PATIENCE, Scratch, grant};
use rusqlite::{Connection, TransactionBehavior};
use std::time::{Duration, Instant};
use tenure_core::{
    Bump, Claimed, Fence, FenceError, FencingToken, Horizon, LeaseName, LeaseStore, Leases, MarkPage,
    ResourceName, Term,
};
use tenure_sqlite::SqliteFence;
use tenure_testkit::{Warnings, eventually_async};

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    assert_eq!(role, "a program that changes its directory");
    std::env::set_current_dir(file.parent().unwrap()).unwrap();
    let fence = SqliteFence::new("leases.db", Leases::Here).unwrap();
    std::env::set_current_dir("elsewhere").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let refused = runtime
        .unwrap()
        .block_on(fence.claim(&ledger(), &term("nightly", 5)));
    println!("it was told {:?}", refused.unwrap_err());
}

fn ledger() -> ResourceName {
    ResourceName::new("it's a \"ledger\"").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).unwrap(), token(number))
}

fn fence(scratch: &Scratch) -> SqliteFence {
    SqliteFence::install(&scratch.raw()).unwrap();
    SqliteFence::new(scratch.file(), Leases::Here).unwrap()
}

/// Somebody has removed the table.
#[tokio::test]
async fn refusals_that_cannot_be_noted_are_told_of_and_tried_ever_more_seldom() {
    let warnings = Warnings::listen();
    let scratch = Scratch::new();
    let fence = fence(&scratch);
    scratch.sql("DROP TABLE tenure_fence");
    fence.count_refusal(&FenceError::Stale {
        resource: ledger(),
        token: token(5),
        mark: token(9),
    });
    let file = scratch.file().display().to_string();
    let failures = || {
        let lines = warnings.about(&file);
        lines
            .iter()
            .filter(|line| line.contains("could not be noted"))
            .count()
    };
    let told = async || (failures() > 0).then_some(());
    eventually_async(PATIENCE, "it is told of", told).await;
    let began = Instant::now();
    // For as many tries as seconds, where each is a second after the one before.
    while began.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let failures = failures();
    assert!((1..=3).contains(&failures), "{:#?}", warnings.about(&file));
    SqliteFence::install(&scratch.raw()).unwrap();
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    drop(fence);
    let mark = SqliteFence::new(scratch.file(), Leases::Here)
        .unwrap()
        .mark(&ledger())
        .await
        .unwrap();
    assert_eq!(mark.unwrap().refused, 1, "it stayed counted");
}

fn enter(connection: &mut Connection, fence: &SqliteFence, term: &Term) -> Result<(), FenceError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    fence.enter(&transaction, &ledger(), term)
}

#[tokio::test]
async fn a_token_of_another_lease_is_refused_whatever_its_number() {
    let scratch = Scratch::new();
    let fence = fence(&scratch);
    fence.claim(&ledger(), &term("nightly", 7)).await.unwrap();
    let mut connection = scratch.raw();
    for number in [6, 7, 8] {
        let other = term("hourly", number);
        for refused in [
            fence.claim(&ledger(), &other).await.unwrap_err(),
            fence.check(&ledger(), &other).await.unwrap_err(),
            enter(&mut connection, &fence, &other).unwrap_err(),
        ] {
            assert!(
                matches!(&refused, FenceError::Foreign { owner, .. } if owner.as_str() == "nightly"),
                "{refused}"
            );
        }
    }
    enter(&mut connection, &fence, &term("nightly", 7)).unwrap();
}

/// In the leases' own file the highest token is known; elsewhere the clock keeps out what would close the
/// resource.
#[tokio::test]
async fn a_token_from_the_future_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let fence = fence(&scratch);
    let asker = Asker::new("a");
    let granted = grant(&store, &asker, "nightly").await.token;
    let future = term("nightly", granted.number() + 1);
    let refused = fence.claim(&ledger(), &future).await.unwrap_err();
    assert!(
        matches!(&refused, FenceError::Future { horizon, .. } if *horizon == Horizon::Granted(granted)),
        "{refused}"
    );
    fence
        .claim(&ledger(), &Term::new(future.lease.clone(), granted))
        .await
        .unwrap();
    store
        .release(&[asker.release("nightly", granted)])
        .await
        .remove(0)
        .unwrap();
    let next = grant(&store, &asker.next_attempt(), "nightly").await.token;
    fence
        .claim(&ledger(), &Term::new(future.lease, next))
        .await
        .unwrap();
    // The store finds its own file in order, with the marks in it.
    drop(scratch.open());

    let elsewhere = Scratch::new();
    let fence = self::fence(&elsewhere);
    let refused = fence
        .claim(&ledger(), &term("nightly", 1 << 47))
        .await
        .unwrap_err();
    assert!(
        matches!(
            &refused,
            FenceError::Future {
                horizon: Horizon::Clock(_),
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    fence
        .claim(&ledger(), &term("nightly", next.number()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_bump_is_above_whatever_was_granted_and_the_next_term_claims() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let fence = fence(&scratch);
    let asker = Asker::new("a");
    let granted = grant(&store, &asker, "nightly").await.token;
    let current = term("nightly", granted.number());
    fence.claim(&ledger(), &current).await.unwrap();
    // As after a restore: the mark is older than the term.
    scratch.sql("UPDATE tenure_fence SET token = 5");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    assert!(mark.token > granted, "{mark:?}");
    assert_eq!(fence.mark(&ledger()).await.unwrap(), Some(mark.clone()));
    let refused = enter(&mut scratch.raw(), &fence, &current).unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    store
        .release(&[asker.release("nightly", granted)])
        .await
        .remove(0)
        .unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let next = grant(&store, &asker.next_attempt(), "nightly").await.token;
    let claimed = fence.claim(&ledger(), &term("nightly", next.number())).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(mark.token)
        })
    );
    let bump = Bump {
        resource: ledger(),
        above: Some(token(next.number() + 1_000_000)),
        lease: Some(LeaseName::new("hourly").unwrap()),
    };
    let mark = fence.bump(&bump).await.unwrap();
    assert_eq!(mark.token, token(next.number() + 1_000_001));
    assert_eq!(fence.marks(None).await, Ok(MarkPage::last([mark])));
}

#[tokio::test]
async fn a_bump_is_above_a_granted_token_that_is_ahead_of_the_clock() {
    for is_released in [0, 1] {
        let scratch = Scratch::new();
        let store = scratch.open();
        let fence = fence(&scratch);
        let granted = grant(&store, &Asker::new("a"), "nightly").await.token;
        fence
            .claim(&ledger(), &term("nightly", granted.number()))
            .await
            .unwrap();
        // As after the clock was set back.
        scratch.sql(&format!(
            "UPDATE lease SET token = 8000000000000, released = {is_released}"
        ));
        let bump = Bump {
            resource: ledger(),
            above: None,
            lease: None,
        };
        let mark = fence.bump(&bump).await.unwrap();
        assert_eq!(mark.token, token(8_000_000_000_001));
    }
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark_and_survive_the_rollback() {
    let scratch = Scratch::new();
    let fence = fence(&scratch);
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let mut connection = scratch.raw();
    for _ in 0..1_000 {
        enter(&mut connection, &fence, &term("nightly", 5)).unwrap_err();
    }
    fence.claim(&ledger(), &term("nightly", 3)).await.unwrap_err();
    drop(fence);
    let fence = self::fence(&scratch);
    let mark = fence.mark(&ledger()).await.unwrap().unwrap();
    assert_eq!((mark.refused, mark.last_refused), (1_001, Some(token(3))));
    enter(&mut connection, &fence, &term("nightly", 9)).unwrap();
}

/// In the directory that it goes to there is a file of the same name, with a fence, too.
#[tokio::test]
async fn refusals_are_counted_in_the_file_of_the_fence_wherever_the_program_goes() {
    let scratch = Scratch::new();
    let elsewhere = scratch.directory().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = Connection::open(elsewhere.join("leases.db")).unwrap();
    SqliteFence::install(&other).unwrap();
    let fences = [
        fence(&scratch),
        SqliteFence::new(elsewhere.join("leases.db"), Leases::Here).unwrap(),
    ];
    for fence in &fences {
        fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    }
    let role = "a program that changes its directory";
    let output = in_role(module_path!(), role, &scratch.file()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("it was told Stale"),
        "{said}"
    );
    let mut refused = Vec::new();
    for fence in &fences {
        refused.push(fence.mark(&ledger()).await.unwrap().unwrap().refused);
    }
    assert_eq!(refused, [1, 0]);
}

/// Whoever holds the file for longer than a note waits delays the count, and takes nothing from it.
#[tokio::test]
async fn refusals_that_could_not_be_noted_are_noted_later() {
    let scratch = Scratch::new();
    let fence = fence(&scratch);
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let writer = scratch.raw();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    fence.check(&ledger(), &term("nightly", 5)).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    writer.execute_batch("COMMIT").unwrap();
    let began = Instant::now();
    while fence.mark(&ledger()).await.unwrap().unwrap().refused != 1 {
        assert!(began.elapsed() < PATIENCE, "the refusal was lost");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A stale writer that tries without end writes about once a second, and the rightful one is never told
/// "busy".
#[tokio::test]
async fn a_stale_writer_costs_the_winner_nothing() {
    let scratch = Scratch::new();
    let fence = fence(&scratch);
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let onlooker = scratch.raw();
    let version = || {
        onlooker
            .query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let began = Instant::now();
    let (mut refused, mut writes, mut seen) = (0, 0, version());
    while began.elapsed() < Duration::from_millis(600) || refused <= 50 {
        fence.claim(&ledger(), &term("nightly", 5)).await.unwrap_err();
        refused += 1;
        let now = version();
        writes += u64::from(now != seen);
        seen = now;
    }
    assert!(
        writes <= 2 + began.elapsed().as_secs(),
        "{writes} writes for {refused} refusals"
    );
    let deadline = Instant::now() + PATIENCE;
    while fence.mark(&ledger()).await.unwrap().unwrap().refused < refused {
        assert!(Instant::now() < deadline, "the rest was never noted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
