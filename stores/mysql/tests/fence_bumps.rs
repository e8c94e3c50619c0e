//! Marks that an operator has raised: they admit nobody until a term has claimed them.
use crate::common::{Scratch, name, replacing, request, seconds, take};
use crate::fence::{fenced, ledger, term, write};
use crate::setup::{rewriting, set_up_again};
use mysql_async::TxOpts;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_conformance::marks::what_leases_have_left_behind_says_nothing;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, Finding, LeaseStore, Leases, Mark, MarkPage,
    ResourceName, Term, Verdict, is_counted,
};
use tenure_mysql::{MysqlFence, MysqlStore};
use tenure_testkit::{FaultProxy, Mariadb, RequestFault};
use tokio::task::JoinHandle;

/// A number that a clock shows, and did long ago.
const OF_A_CLOCK: u64 = 1_600_000_000_000;

fn bump(resource: ResourceName) -> Bump {
    Bump {
        resource,
        above: None,
        lease: None,
    }
}

/// The mark after a bump, which a term of "nightly" had claimed before.
async fn bumped_after_a_claim(fence: &MysqlFence) -> Mark {
    fence
        .claim(&ledger(), &term("nightly", OF_A_CLOCK))
        .await
        .unwrap();
    fence.bump(&bump(ledger())).await.unwrap()
}

/// What is answered to statements of a program that knows nothing of Tenure, by the fence's own words.
async fn answered(
    scratch: &Scratch,
    fence: &MysqlFence,
    term: &Term,
    statements: &str,
) -> Result<(), FenceError> {
    let statements = statements
        .replace("{token}", &term.token.to_string())
        .replace("{lease}", term.lease.as_str())
        .replace("{resource}", &ledger().as_str().replace('\'', "''"));
    let mut client = scratch.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    let answered = transaction.query_drop(statements).await;
    transaction.rollback().await.unwrap();
    let Err(error) = answered else { return Ok(()) };
    let refused = fence.refusal(&ledger(), term, &error).await?;
    let refused = refused.expect("a refusal of the fence");
    assert!(
        error.to_string().contains(state(&refused)),
        "{error}, not {refused}"
    );
    Err(refused)
}

/// What programs of every language are told.
fn state(refused: &FenceError) -> &'static str {
    match refused {
        FenceError::Stale { .. } => "TN001",
        FenceError::Foreign { .. } => "TN002",
        _ => "TN003",
    }
}

/// A write of a guarded table in a session that shows the term.
const WRITE_SHOWING: &str = "SET @tenure_term = '{token} {lease}'; UPDATE account SET cents = 7";
const CALL_ENTER: &str = "CALL tenure_enter_1('{resource}', '{lease}', {token})";

#[tokio::test]
async fn the_number_of_a_bumped_mark_enters_mysql_only_after_it_has_claimed() {
    let (scratch, fence) = fenced().await;
    fence.guard("account", &ledger()).await.unwrap();
    let mark = bumped_after_a_claim(&fence).await;
    let very_next = Term::new(name("nightly"), mark.token);
    let mut client = scratch.client().await;
    let refusals = [
        fence.check(&ledger(), &very_next).await,
        write(&mut client, &fence, &very_next).await,
        answered(&scratch, &fence, &very_next, CALL_ENTER).await,
        answered(&scratch, &fence, &very_next, WRITE_SHOWING).await,
    ];
    for (way, refused) in refusals.iter().enumerate() {
        assert!(
            matches!(refused, Err(FenceError::Unclaimed { .. })),
            "way {way}: {refused:?}"
        );
    }
    // It may be the very next token that its lease grants.
    let from = Some(mark.token);
    let claimed = fence.claim(&ledger(), &very_next).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
    assert_eq!(fence.claim(&ledger(), &very_next).await, Ok(Claimed::Already));
    assert_eq!(fence.check(&ledger(), &very_next).await, Ok(()));
    write(&mut client, &fence, &very_next).await.unwrap();
    for statements in [CALL_ENTER, WRITE_SHOWING] {
        assert_eq!(
            answered(&scratch, &fence, &very_next, statements).await,
            Ok(()),
            "{statements}"
        );
    }
}

#[tokio::test]
async fn a_bumped_mark_in_mysql_still_belongs_to_its_lease_or_to_the_one_it_was_given() {
    let (scratch, fence) = fenced().await;
    let mark = bumped_after_a_claim(&fence).await;
    assert_eq!(mark.lease, Some(name("nightly")));
    let mut client = scratch.client().await;
    for number in [mark.token.number(), mark.token.number() + 1] {
        let foreign = term("hourly", number);
        let refusals = [
            fence.claim(&ledger(), &foreign).await.map(drop),
            fence.check(&ledger(), &foreign).await,
            write(&mut client, &fence, &foreign).await,
            answered(&scratch, &fence, &foreign, CALL_ENTER).await,
        ];
        for refused in refusals {
            assert!(matches!(refused, Err(FenceError::Foreign { .. })), "{refused:?}");
        }
    }
    let rebound = Bump {
        lease: Some(name("hourly")),
        ..bump(ledger())
    };
    let mark = fence.bump(&rebound).await.unwrap();
    assert_eq!(fence.marks(None).await, Ok(MarkPage::last([mark.clone()])));
    let claimed = fence
        .claim(&ledger(), &Term::new(name("hourly"), mark.token))
        .await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(mark.token)
        })
    );
    // One that nobody had claimed, and that was bound to no lease, is anybody's.
    let fresh = ResourceName::new("fresh").unwrap();
    let mark = fence.bump(&bump(fresh.clone())).await.unwrap();
    assert_eq!(mark.lease, None);
    let anybody = Term::new(name("anybody"), mark.token);
    let claimed = fence.claim(&fresh, &anybody).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    assert_eq!(fence.check(&fresh, &anybody).await, Ok(()));
    // And one that was bound to a lease is of nobody all the same, until a term of that lease claims.
    let bound = Bump {
        lease: Some(name("hourly")),
        ..bump(ResourceName::new("bound").unwrap())
    };
    let mark = fence.bump(&bound).await.unwrap();
    let very_next = Term::new(name("hourly"), mark.token);
    let refused = fence.check(&bound.resource, &very_next).await;
    assert!(
        matches!(refused, Err(FenceError::Unclaimed { .. })),
        "{refused:?}"
    );
    let claimed = fence.claim(&bound.resource, &very_next).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
}

/// Above the clock no later term of a store that counts would ever get.
#[tokio::test]
async fn a_counted_mark_in_mysql_is_bumped_by_counting_and_another_above_the_clock() {
    let (_scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 7)).await.unwrap();
    let mut numbers = Vec::new();
    for above in [None, Some(50), Some(3), Some(OF_A_CLOCK)] {
        let above = above.map(|number| term("nightly", number).token);
        let bump = Bump {
            above,
            ..bump(ledger())
        };
        numbers.push(fence.bump(&bump).await.unwrap().token);
    }
    let counted: Vec<u64> = numbers[..3].iter().map(|token| token.number()).collect();
    assert_eq!(counted, [8, 51, 52]);
    assert!(numbers[3].number() > OF_A_CLOCK + 1, "{numbers:?}");
    let fresh = bump(ResourceName::new("fresh").unwrap());
    assert!(!is_counted(fence.bump(&fresh).await.unwrap().token));
}

/// The claim of an earlier Tenure raises the token, and leaves what it does not know as it was.
#[tokio::test]
async fn a_bumped_mark_in_mysql_that_an_earlier_tenure_has_claimed_is_claimed() {
    let (scratch, fence) = fenced().await;
    let mark = bumped_after_a_claim(&fence).await;
    scratch.sql("UPDATE tenure_fences SET token = token + 1").await;
    let claimed = term("nightly", mark.token.number() + 1);
    assert_eq!(fence.check(&ledger(), &claimed).await, Ok(()));
    let mut client = scratch.client().await;
    write(&mut client, &fence, &claimed).await.unwrap();
    assert_eq!(fence.claim(&ledger(), &claimed).await, Ok(Claimed::Already));
}

#[tokio::test]
async fn a_set_up_from_before_bumped_marks_in_mysql_bumps_nothing_until_it_is_set_up_again() {
    let (scratch, fence) = fenced().await;
    let mut client = scratch.client().await;
    fence
        .claim(&ledger(), &term("nightly", OF_A_CLOCK))
        .await
        .unwrap();
    let earlier = replacing(include_str!("earlier/fences.sql"));
    scratch.sql(&earlier).await;
    let told = set_up(&scratch).await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    assert!(told.detail.contains("bumped_token"), "{told:?}");
    let next = term("nightly", OF_A_CLOCK + 1);
    let claimed = fence.claim(&ledger(), &next).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    assert_eq!(fence.check(&ledger(), &next).await, Ok(()));
    write(&mut client, &fence, &next).await.unwrap();
    bumps_nothing(&fence, &next).await;
    // The table alone is not enough, as where a set-up was cut short, or an earlier Tenure made one of its
    // own after it.
    scratch
        .sql("ALTER TABLE tenure_fences ADD COLUMN bumped_token BIGINT NULL")
        .await;
    bumps_nothing(&fence, &next).await;
    scratch
        .sql("ALTER TABLE tenure_fences DROP COLUMN bumped_token")
        .await;
    // The printed statements make the column, and replace nothing.
    for _again in 0..2 {
        scratch.sql(&printed_of("ALTER TABLE tenure_fences")).await;
    }
    let told = set_up(&scratch).await;
    assert!(!told.detail.contains("bumped_token"), "{told:?}");
    scratch
        .sql("ALTER TABLE tenure_fences DROP COLUMN bumped_token")
        .await;

    // It waits for whoever is inside, and not for long: everybody else would wait behind it.
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    fence.enter(&mut transaction, &ledger(), &next).await.unwrap();
    let busy = MysqlStore::init(&scratch.url()).await.unwrap_err();
    assert_eq!(busy.fault, Fault::Busy, "{busy}");
    transaction.commit().await.unwrap();
    set_up_again(&scratch, &["claim", "bump", "enter", "admit"]).await;
    assert_eq!(set_up(&scratch).await.verdict, Verdict::Good);
    // On connections from before: the marks are what they were, and a bump is of nobody.
    write(&mut client, &fence, &next).await.unwrap();
    let mark = fence.bump(&bump(ledger())).await.unwrap();
    let very_next = Term::new(name("nightly"), mark.token);
    let refused = write(&mut client, &fence, &very_next).await;
    assert!(
        matches!(refused, Err(FenceError::Unclaimed { .. })),
        "{refused:?}"
    );
    let claimed = fence.claim(&ledger(), &very_next).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    write(&mut client, &fence, &very_next).await.unwrap();
}

/// The printed statements in which this word stands.
fn printed_of(word: &str) -> String {
    let printed = MysqlStore::init_statements("mysql://h/d").unwrap();
    let found = printed.split("\n$$\n").find(|statement| statement.contains(word));
    found.unwrap().to_owned()
}

async fn bumps_nothing(fence: &MysqlFence, held_by: &Term) {
    let refused = fence.bump(&bump(ledger())).await.unwrap_err();
    let FenceError::Store(error) = refused else {
        panic!("{refused}")
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
    let mark = fence.mark(&ledger()).await.unwrap().unwrap();
    assert_eq!(mark.token, held_by.token);
}

/// Both have seen that it is missing, and wait for a transaction that has entered.
#[tokio::test]
async fn two_set_ups_that_add_the_same_column_at_once_do_not_meet_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    for _round in 0..ROUNDS_MAX {
        if two_add_the_column(&scratch).await {
            assert_eq!(set_up(&scratch).await.verdict, Verdict::Good);
            return;
        }
    }
    panic!("one of the two had waited long enough, in {ROUNDS_MAX} rounds");
}

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 5;

/// Not, on a machine so slow that one of them had waited long enough before the other came.
async fn two_add_the_column(scratch: &Scratch) -> bool {
    scratch
        .sql("ALTER TABLE tenure_fences DROP COLUMN bumped_token")
        .await;
    let mut client = scratch.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    transaction
        .query_drop("SELECT token FROM tenure_fences LOCK IN SHARE MODE")
        .await
        .unwrap();
    let adding = [(); 2].map(|()| {
        let url = scratch.url();
        tokio::spawn(async move { MysqlStore::init(&url).await })
    });
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{}' AND STATE LIKE '%metadata lock%'",
        scratch.database
    );
    let mut looking = scratch.client().await;
    let mut both = true;
    while both && looking.query_first::<u32, _>(&waiting).await.unwrap() != Some(2) {
        both = !adding.iter().any(JoinHandle::is_finished);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    transaction.commit().await.unwrap();
    for added in adding {
        match added.await.unwrap() {
            Err(error) if error.fault == Fault::Busy => both = false,
            added => added.unwrap(),
        }
    }
    if !both {
        MysqlStore::init(&scratch.url()).await.unwrap();
    }
    both
}

pub(super) async fn set_up(scratch: &Scratch) -> Finding {
    let findings = scratch.store().await.examine().await.unwrap();
    findings
        .into_iter()
        .find(|finding| finding.subject == "set-up")
        .unwrap()
}

/// The mark was raised when the look at it is cut off: that it was not is never said.
#[tokio::test]
async fn bump_in_mysql_that_is_not_heard_of_after_it_was_made_is_unknown() {
    let (scratch, direct) = fenced().await;
    let before = bumped_after_a_claim(&direct).await;
    let proxy = FaultProxy::mysql(Mariadb::shared().await.address()).unwrap();
    let url = scratch.url_at("root", &proxy.address().to_string());
    let proxied = MysqlFence::connect(&url, Leases::Here).await.unwrap();
    // The look, and nothing before it, begins like this.
    proxy.next_commands(1, "CAST", RequestFault::CutBefore);
    let error = proxied.bump(&bump(ledger())).await.unwrap_err();
    assert_eq!(proxy.faults_left(), 0, "the fault happened");
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    let after = direct.mark(&ledger()).await.unwrap().unwrap();
    assert!(after.token > before.token, "{after:?}");
}

/// Two operators who bump what nobody has claimed find no row, and both would make it: who is late is told to
/// come again.
#[tokio::test]
async fn of_two_that_bump_a_new_mark_of_mysql_at_once_the_later_changes_nothing() {
    let (scratch, fence) = fenced().await;
    // Has two connections be made.
    let [one, other] = ["one", "other"].map(|resource| bump(ResourceName::new(resource).unwrap()));
    for bumped in <[_; 2]>::from(tokio::join!(fence.bump(&one), fence.bump(&other))) {
        bumped.unwrap();
    }
    // Long enough for both to have looked.
    scratch
        .sql("CREATE TRIGGER slowly BEFORE INSERT ON tenure_fences FOR EACH ROW DO SLEEP(1)")
        .await;
    for round in 0..ROUNDS_MAX {
        let resource = ResourceName::new(format!("new-{round}")).unwrap();
        let asked = bump(resource.clone());
        let (first, late) = match tokio::join!(fence.bump(&asked), fence.bump(&asked)) {
            // On a machine so slow that the second looked when the first had made it, once more.
            (Ok(_), Ok(_)) => continue,
            (one @ Ok(_), other) | (other, one) => (one, other),
        };
        let Err(FenceError::Store(late)) = late else {
            panic!("{late:?}")
        };
        assert_eq!(
            (late.fault, late.certainty),
            (Fault::Busy, Certainty::NotApplied),
            "{late}"
        );
        let mark = fence.mark(&resource).await.unwrap().unwrap();
        assert_eq!(mark.token, first.unwrap().token);
        assert!(fence.bump(&asked).await.unwrap().token > mark.token);
        return;
    }
    panic!("none came at once, in {ROUNDS_MAX} rounds");
}

#[tokio::test]
async fn what_leases_have_left_behind_in_mysql_says_nothing() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(60))).await.token;
    let here = MysqlFence::beside(&store);
    let elsewhere = MysqlFence::connect(&scratch.url(), Leases::Elsewhere)
        .await
        .unwrap();
    let left = Term::new(name("nightly"), granted);
    what_leases_have_left_behind_says_nothing(&here, &elsewhere, &left).await;
}

/// It would go by the record all the same.
#[tokio::test]
async fn a_set_up_that_hears_nothing_of_leases_elsewhere_in_mysql_raises_nothing_by_their_old_record() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(60))).await.token;
    for procedure in ["claim", "bump"] {
        let now = rewriting(procedure);
        let earlier = now.replace("@tenure_lease_store", "@tenure_unheard_of");
        assert_ne!(earlier, now);
        scratch.sql(&earlier).await;
    }
    let fence = MysqlFence::connect(&scratch.url(), Leases::Elsewhere)
        .await
        .unwrap();
    let next = term("nightly", granted.number() + 1);
    let of_nightly = Bump {
        lease: Some(name("nightly")),
        ..bump(ledger())
    };
    let claimed = fence.claim(&ledger(), &next).await.map(drop);
    for refused in [claimed, fence.bump(&of_nightly).await.map(drop)] {
        assert!(
            matches!(&refused, Err(FenceError::Store(error)) if error.message.contains("tenure store init")),
            "{refused:?}"
        );
    }
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    // A lease without a record there is as well served by it.
    let other = term("hourly", 5);
    fence.claim(&ledger(), &other).await.unwrap();
    assert_eq!(fence.bump(&bump(ledger())).await.unwrap().token.number(), 6);
    set_up_again(&scratch, &["bump", "claim"]).await;
    let fresh = ResourceName::new("fresh").unwrap();
    fence.claim(&fresh, &next).await.unwrap();
}
