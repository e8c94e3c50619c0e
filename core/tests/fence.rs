//! The rules that every fence shares: who may claim, who may enter, where a bumped mark goes.
use crate::harness::token;
use tenure_core::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn lease(name: &str) -> LeaseName {
    LeaseName::new(name).unwrap()
}

fn term(name: &str, number: u64) -> Term {
    Term::new(lease(name), token(number))
}

fn claim(
    term: &Term,
    owner: Option<&LeaseName>,
    mark: Option<u64>,
    horizon: Horizon,
) -> Result<Ruling, FenceError> {
    decide_claim(&ledger(), term, owner, mark.map(token), horizon)
}

#[test]
fn a_claim_raises_holds_or_is_stale() {
    let (nightly, horizon) = (lease("nightly"), Horizon::Granted(token(9)));
    assert_eq!(claim(&term("nightly", 9), None, None, horizon), Ok(Ruling::Raise));
    let owner = Some(&nightly);
    assert_eq!(
        claim(&term("nightly", 9), owner, Some(5), horizon),
        Ok(Ruling::Raise)
    );
    assert_eq!(
        claim(&term("nightly", 9), owner, Some(9), horizon),
        Ok(Ruling::Holds)
    );
    let stale = claim(&term("nightly", 5), owner, Some(9), horizon).unwrap_err();
    assert!(matches!(stale, FenceError::Stale { mark, .. } if mark == token(9)));
}

/// A mark may have stood here that was removed: the record beside it tells that the term is over. A clock
/// tells nothing.
#[test]
fn a_term_that_the_lease_has_succeeded_claims_no_resource_without_a_mark() {
    let over = claim(&term("nightly", 5), None, None, Horizon::Granted(token(9))).unwrap_err();
    assert!(
        matches!(over, FenceError::Stale { mark, .. } if mark == token(9)),
        "{over}"
    );
    let by_clock = Horizon::Clock(token(9));
    assert_eq!(
        claim(&term("nightly", 5), None, None, by_clock),
        Ok(Ruling::Raise)
    );
}

#[test]
fn a_token_of_another_lease_is_refused_whatever_its_number() {
    let (nightly, horizon) = (lease("nightly"), Horizon::Granted(token(20)));
    for number in [5, 9, 20] {
        let claimed = claim(&term("hourly", number), Some(&nightly), Some(9), horizon).unwrap_err();
        let entered =
            decide_entry(&ledger(), &term("hourly", number), Some(&nightly), Some(token(9))).unwrap_err();
        for refused in [claimed, entered] {
            let FenceError::Foreign { owner, lease, .. } = &refused else {
                panic!("{refused}")
            };
            assert_eq!((owner.as_str(), lease.as_str()), ("nightly", "hourly"));
        }
    }
}

#[test]
fn a_token_from_the_future_is_refused_by_record_or_clock() {
    let exact = Horizon::Granted(token(9));
    let refused = claim(&term("nightly", 10), None, None, exact).unwrap_err();
    assert!(matches!(refused, FenceError::Future { horizon, .. } if horizon == exact));
    // By which record: it may be one that was left there.
    assert!(
        refused
            .to_string()
            .contains("lease \"nightly\" has granted at most 9"),
        "{refused}"
    );
    let now_ms = 1_763_712_000_000;
    let by_clock = Horizon::Clock(horizon(now_ms, None));
    assert_eq!(
        claim(&term("nightly", now_ms + DAY_MS), None, None, by_clock),
        Ok(Ruling::Raise)
    );
    let refused = claim(&term("nightly", now_ms + DAY_MS + 1), None, None, by_clock).unwrap_err();
    assert!(refused.to_string().contains("from the future"), "{refused}");
    // A store that counts from one is far below any clock.
    assert_eq!(
        claim(&term("nightly", 1), None, None, by_clock),
        Ok(Ruling::Raise)
    );
}

#[test]
fn after_a_clock_that_was_wrong_a_bump_lets_the_tokens_in() {
    let now_ms = 1_763_712_000_000;
    let wrong = now_ms + 30 * DAY_MS;
    let mark = bumped(None, Some(token(wrong)), now_ms);
    assert_eq!(mark, Some(token(wrong + 1)));
    assert_eq!(horizon(now_ms, mark), token(wrong + 1 + DAY_MS));
    assert_eq!(horizon(u64::MAX, None), FencingToken::MAX);
}

#[test]
fn a_bumped_mark_is_above_the_mark_the_given_token_and_the_clock() {
    assert_eq!(bumped(Some(token(7)), None, 3), Some(token(8)));
    assert_eq!(bumped(Some(token(7)), Some(token(9)), 3), Some(token(10)));
    assert_eq!(bumped(Some(token(7)), Some(token(9)), 100), Some(token(101)));
    assert_eq!(bumped(Some(FencingToken::MAX), None, 0), None);
}

/// A revision never reaches a clock's time: every later term would be refused.
#[test]
fn a_bumped_mark_that_counts_leaves_the_clock_aside() {
    let now_ms = 1_763_712_000_000;
    let to = |mark: Option<u64>, above: Option<u64>| {
        let (mark, above) = (mark.map(token), above.map(token));
        bumped(mark, above, bump_clock_ms(mark.max(above), now_ms)).map(FencingToken::number)
    };
    assert_eq!(to(Some(7), None), Some(8));
    assert_eq!(to(Some(7), Some(17)), Some(18));
    assert_eq!(to(None, Some(17)), Some(18));
    // Nothing is known, or something that a clock has shown.
    assert_eq!(to(None, None), Some(now_ms + 1));
    assert_eq!(to(Some(7), Some(now_ms - DAY_MS)), Some(now_ms + 1));
    assert_eq!(to(Some(now_ms + DAY_MS), None), Some(now_ms + DAY_MS + 1));
}

#[test]
fn only_the_term_that_claimed_may_enter() {
    let nightly = lease("nightly");
    let enter = |number, mark: Option<u64>, owner: Option<&LeaseName>| {
        decide_entry(&ledger(), &term("nightly", number), owner, mark.map(token))
    };
    assert_eq!(enter(9, Some(9), Some(&nightly)), Ok(()));
    for (mark, owner) in [(None, None), (Some(5), Some(&nightly)), (Some(9), None)] {
        let refused = enter(9, mark, owner).unwrap_err();
        assert!(matches!(refused, FenceError::Unclaimed { .. }), "{refused}");
    }
    assert!(matches!(
        enter(5, Some(9), Some(&nightly)),
        Err(FenceError::Stale { .. })
    ));
    // A mark that an operator has raised before anybody claimed is claimed like any other.
    assert_eq!(
        claim(&term("nightly", 9), None, Some(9), Horizon::Granted(token(9))),
        Ok(Ruling::Raise)
    );
}

#[test]
fn refusals_are_summed_by_resource_and_bounded() {
    let mut refusals = Refusals::default();
    let stale = |resource: &str, number| FenceError::Stale {
        resource: ResourceName::new(resource).unwrap(),
        token: token(number),
        mark: token(99),
    };
    refusals.count(&stale("ledger", 5));
    refusals.count(&stale("ledger", 7));
    refusals.count(&FenceError::Store(StoreError::unknown(Fault::Busy, "busy")));
    let noted: Vec<_> = refusals.take().collect();
    let refused = Refused {
        count: 2,
        last: token(7),
    };
    assert_eq!(noted, [(ledger(), refused)]);
    assert!(refusals.is_empty());
    for number in 0..2_000 {
        refusals.count(&stale(&format!("ledger-{number}"), 5));
    }
    assert_eq!(refusals.take().count(), 1_024);
}
