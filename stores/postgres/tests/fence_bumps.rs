//! Marks that an operator has raised: they admit nobody until a term has claimed them.
use crate::common::{Scratch, name, request, seconds, take};
use crate::fence::{fenced, ledger, term, write};
use crate::meddling::{Meddling, meddling};
use tenure_conformance::marks::what_leases_have_left_behind_says_nothing;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, Finding, LeaseStore, Leases, Mark, MarkPage,
    ResourceName, Term, Verdict, is_counted,
};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::Postgres;

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
async fn bumped_after_a_claim(fence: &PostgresFence) -> Mark {
    fence
        .claim(&ledger(), &term("nightly", OF_A_CLOCK))
        .await
        .unwrap();
    fence.bump(&bump(ledger())).await.unwrap()
}

/// What is answered to a write of a guarded table by a program that knows nothing of Tenure, and shows this
/// term.
async fn write_showing(scratch: &Scratch, fence: &PostgresFence, term: &Term) -> Option<FenceError> {
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let shown = format!("{} {}", term.token, term.lease);
    transaction
        .execute("SELECT set_config('tenure.term', $1, true)", &[&shown])
        .await
        .unwrap();
    let update = format!("UPDATE {}.account SET cents = 7", scratch.schema);
    let error = transaction.execute(&update, &[]).await.err()?;
    drop(transaction);
    Some(fence.refusal(term, &error).await.expect("a refusal of the fence"))
}

/// What is answered to a call of the schema's own function.
async fn call_enter(scratch: &Scratch, fence: &PostgresFence, term: &Term) -> Option<FenceError> {
    let entering = format!("SELECT {}.enter($1, $2, $3)", scratch.schema);
    let (resource, lease, token) = (ledger(), term.lease.as_str(), term.token.signed());
    let client = scratch.client().await;
    let entered = client
        .execute(&entering, &[&resource.as_str(), &lease, &token])
        .await;
    let error = entered.err()?;
    let refused = fence.refusal(term, &error).await.expect("a refusal of the fence");
    // What programs of every language are told.
    let state = match &refused {
        FenceError::Stale { .. } => "TN001",
        FenceError::Foreign { .. } => "TN002",
        _ => "TN003",
    };
    assert_eq!(error.code().unwrap().code(), state, "{error}, not {refused}");
    Some(refused)
}

#[tokio::test]
async fn the_number_of_a_bumped_mark_enters_postgres_only_after_it_has_claimed() {
    let (scratch, fence) = fenced().await;
    fence
        .guard(&format!("{}.account", scratch.schema), &ledger())
        .await
        .unwrap();
    let mark = bumped_after_a_claim(&fence).await;
    let very_next = Term::new(name("nightly"), mark.token);
    let mut client = scratch.client().await;
    let refusals = [
        fence.check(&ledger(), &very_next).await.err(),
        write(&mut client, &fence, &scratch, &very_next).await.err(),
        call_enter(&scratch, &fence, &very_next).await,
        write_showing(&scratch, &fence, &very_next).await,
    ];
    for (way, refused) in refusals.iter().enumerate() {
        assert!(
            matches!(refused, Some(FenceError::Unclaimed { .. })),
            "way {way}: {refused:?}"
        );
    }
    // It may be the very next token that its lease grants.
    let from = Some(mark.token);
    let claimed = fence.claim(&ledger(), &very_next).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
    assert_eq!(fence.claim(&ledger(), &very_next).await, Ok(Claimed::Already));
    assert_eq!(fence.check(&ledger(), &very_next).await, Ok(()));
    write(&mut client, &fence, &scratch, &very_next).await.unwrap();
    assert_eq!(call_enter(&scratch, &fence, &very_next).await, None);
    assert_eq!(write_showing(&scratch, &fence, &very_next).await, None);
}

#[tokio::test]
async fn a_bumped_mark_in_postgres_still_belongs_to_its_lease_or_to_the_one_it_was_given() {
    let (scratch, fence) = fenced().await;
    let mark = bumped_after_a_claim(&fence).await;
    assert_eq!(mark.lease, Some(name("nightly")));
    let mut client = scratch.client().await;
    for number in [mark.token.number(), mark.token.number() + 1] {
        let foreign = term("hourly", number);
        let refusals = [
            fence.claim(&ledger(), &foreign).await.map(drop),
            fence.check(&ledger(), &foreign).await,
            write(&mut client, &fence, &scratch, &foreign).await,
            call_enter(&scratch, &fence, &foreign).await.map_or(Ok(()), Err),
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
async fn a_counted_mark_in_postgres_is_bumped_by_counting_and_another_above_the_clock() {
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
async fn a_bumped_mark_in_postgres_that_an_earlier_tenure_has_claimed_is_claimed() {
    let (scratch, fence) = fenced().await;
    let mark = bumped_after_a_claim(&fence).await;
    scratch.sql("UPDATE {schema}.fences SET token = token + 1").await;
    let claimed = term("nightly", mark.token.number() + 1);
    assert_eq!(fence.check(&ledger(), &claimed).await, Ok(()));
    let mut client = scratch.client().await;
    write(&mut client, &fence, &scratch, &claimed).await.unwrap();
    assert_eq!(call_enter(&scratch, &fence, &claimed).await, None);
    assert_eq!(fence.claim(&ledger(), &claimed).await, Ok(Claimed::Already));
}

#[tokio::test]
async fn a_set_up_from_before_bumped_marks_in_postgres_bumps_nothing_until_it_is_set_up_again() {
    let (scratch, fence) = fenced().await;
    let mut client = scratch.client().await;
    fence
        .claim(&ledger(), &term("nightly", OF_A_CLOCK))
        .await
        .unwrap();
    scratch.sql(include_str!("earlier/fences.sql")).await;
    let told = set_up(&scratch).await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    assert!(told.detail.contains("bumped_token"), "{told:?}");
    let next = term("nightly", OF_A_CLOCK + 1);
    let claimed = fence.claim(&ledger(), &next).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    assert_eq!(fence.check(&ledger(), &next).await, Ok(()));
    write(&mut client, &fence, &scratch, &next).await.unwrap();
    bumps_nothing(&fence, &next).await;
    // The column alone is not enough, as where an earlier Tenure has set up again: it makes its own
    // functions.
    let column = |change: &str| format!("ALTER TABLE {{schema}}.fences {change}");
    scratch.sql(&column("ADD COLUMN bumped_token bigint")).await;
    bumps_nothing(&fence, &next).await;
    scratch.sql(&column("DROP COLUMN bumped_token")).await;

    // It waits for whoever is inside, and not for long: everybody else would wait behind it.
    let transaction = client.transaction().await.unwrap();
    fence.enter(&transaction, &ledger(), &next).await.unwrap();
    let busy = PostgresStore::init(&scratch.url("")).await.unwrap_err();
    assert_eq!(busy.fault, Fault::Busy, "{busy}");
    transaction.commit().await.unwrap();
    PostgresStore::init(&scratch.url("")).await.unwrap();
    assert_eq!(set_up(&scratch).await.verdict, Verdict::Good);
    // On connections from before: the marks are what they were, and a bump is of nobody.
    write(&mut client, &fence, &scratch, &next).await.unwrap();
    let mark = fence.bump(&bump(ledger())).await.unwrap();
    let very_next = Term::new(name("nightly"), mark.token);
    let refused = write(&mut client, &fence, &scratch, &very_next).await;
    assert!(
        matches!(refused, Err(FenceError::Unclaimed { .. })),
        "{refused:?}"
    );
    let claimed = fence.claim(&ledger(), &very_next).await;
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    write(&mut client, &fence, &scratch, &very_next).await.unwrap();
}

async fn bumps_nothing(fence: &PostgresFence, held_by: &Term) {
    let refused = fence.bump(&bump(ledger())).await.unwrap_err();
    let FenceError::Store(error) = refused else {
        panic!("{refused}")
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
    let mark = fence.mark(&ledger()).await.unwrap().unwrap();
    assert_eq!(mark.token, held_by.token);
}

/// A table that is up to date is left alone: whoever is inside keeps no set-up waiting.
#[tokio::test]
async fn a_set_up_that_has_its_columns_waits_for_no_transaction_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    fence
        .enter(&transaction, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    PostgresStore::init(&scratch.url("")).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn set_up(scratch: &Scratch) -> Finding {
    let findings = scratch.store().await.examine().await.unwrap();
    findings
        .into_iter()
        .find(|finding| finding.subject == "set-up")
        .unwrap()
}

/// The mark was raised when the look at it is cut off: that it was not is never said.
#[tokio::test]
async fn bump_in_postgres_that_is_not_heard_of_after_it_was_made_is_unknown() {
    let (scratch, direct) = fenced().await;
    let before = bumped_after_a_claim(&direct).await;
    // The look at the mark, and nothing before it.
    let cut = |request: &[u8]| match request.windows(9).any(|piece| piece == b"r.refused") {
        true => Meddling::Cuts,
        false => Meddling::Nothing,
    };
    let (address, _) = meddling(Postgres::shared().await.address(), cut).await;
    let url = scratch.url_on(
        &format!("postgres://postgres@{address}/postgres"),
        "sslmode=disable",
    );
    let proxied = PostgresFence::connect(&url, Leases::Here).await.unwrap();
    let error = proxied.bump(&bump(ledger())).await.unwrap_err();
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    let after = direct.mark(&ledger()).await.unwrap().unwrap();
    assert!(after.token > before.token, "{after:?}");
}

#[tokio::test]
async fn what_leases_have_left_behind_in_postgres_says_nothing() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(60))).await.token;
    let here = PostgresFence::beside(&store);
    let elsewhere = PostgresFence::connect(&scratch.url(""), Leases::Elsewhere)
        .await
        .unwrap();
    let left = Term::new(name("nightly"), granted);
    what_leases_have_left_behind_says_nothing(&here, &elsewhere, &left).await;
}

/// It would go by the record all the same.
#[tokio::test]
async fn a_set_up_that_hears_nothing_of_leases_elsewhere_in_postgres_raises_nothing_by_their_old_record() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(60))).await.token;
    for function in ["claim", "bump"] {
        let client = scratch.client().await;
        let asked = "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                     WHERE n.nspname = $1 AND p.proname = $2";
        let row = client.query_one(asked, &[&scratch.schema, &function]).await;
        let now: String = row.unwrap().get(0);
        let earlier = now.replace("tenure.lease_store", "tenure.unheard_of");
        assert_ne!(earlier, now);
        client.batch_execute(&earlier).await.unwrap();
    }
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Elsewhere)
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
    PostgresStore::init(&scratch.url("")).await.unwrap();
    let fresh = ResourceName::new("fresh").unwrap();
    fence.claim(&fresh, &next).await.unwrap();
}
