//! The store as a whole: its traits, its range of ttl, its examination.

use crate::Fixture;
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::{Certainty, Durability, Fault, LeaseName, Listed, Renewed, StoreError, Ttl};

/// The traits are plausible, and the same for every client, before and after requests.
pub async fn traits_are_constant(fixture: &Fixture) {
    let traits = fixture.traits();
    let contender = fixture.contender("ada", &fixture.name());
    fixture.first().take(&contender).await;
    assert_eq!(fixture.first().store().traits(), traits, "after a request");
    assert_eq!(
        fixture.second().store().traits(),
        traits,
        "for another client of the same storage"
    );
    assert!(
        !traits.kind.is_empty()
            && traits
                .kind
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
        "kind \"{}\" should be as in a URL",
        traits.kind
    );
    assert!(!traits.location.is_empty(), "people must know which store it is");
    assert!(traits.ttl_min <= traits.ttl_max, "{traits:?}");
    if let Durability::FenceOnly(reason) = traits.durability {
        assert!(!reason.is_empty(), "people must know why only the fence protects");
    }
}

/// Both ends of the range of ttl are granted.
pub async fn ends_of_the_ttl_range_are_granted(fixture: &Fixture) {
    let traits = fixture.traits();
    for ttl in [traits.ttl_min, traits.ttl_max] {
        let contender = fixture.contender("ada", &fixture.name()).with_ttl(ttl);
        assert_eq!(fixture.first().take(&contender).await.ttl, ttl);
    }
}

/// Ttls just outside the store's range, as far as any exist.
fn ttls_outside(fixture: &Fixture) -> Vec<Ttl> {
    let traits = fixture.traits();
    [traits.ttl_min.as_millis() - 1, traits.ttl_max.as_millis() + 1]
        .into_iter()
        .filter_map(|milliseconds| Ttl::from_millis(milliseconds).ok())
        .chain([Ttl::MIN, Ttl::MAX])
        .filter(|ttl| !(traits.ttl_min..=traits.ttl_max).contains(ttl))
        .collect()
}

fn assert_names_the_range(fixture: &Fixture, name: &LeaseName, ttl: Ttl, error: &StoreError) {
    let traits = fixture.traits();
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
    for part in [
        name.to_string(),
        ttl.to_string(),
        traits.ttl_min.to_string(),
        traits.ttl_max.to_string(),
    ] {
        assert!(
            error.message.contains(&part),
            "the message should say \"{part}\": {error}"
        );
    }
}

/// A ttl outside the range takes nothing, and the message names lease, ttl and range.
pub async fn acquire_outside_the_ttl_range_is_refused(fixture: &Fixture) {
    for ttl in ttls_outside(fixture) {
        let contender = fixture.contender("ada", &fixture.name()).with_ttl(ttl);
        let answer = fixture.first().store().acquire(&contender.acquire()).await;
        let error = answer.expect_err("a ttl outside the range is refused");
        assert_names_the_range(fixture, &contender.name, ttl, &error);
        assert_eq!(fixture.second().get(&contender.name).await, None);
    }
}

/// A ttl outside the range extends nothing, and disturbs no other request of the batch.
pub async fn renewal_outside_the_ttl_range_is_refused(fixture: &Fixture) {
    for ttl in ttls_outside(fixture) {
        let (wrong, right) = (
            fixture.contender("ada", &fixture.name()),
            fixture.contender("ada", &fixture.name()),
        );
        let wrong_token = fixture.first().take(&wrong).await.token;
        let right_token = fixture.first().take(&right).await.token;
        let before = fixture.snapshot(&wrong.name).await;
        let requests = [
            wrong.with_ttl(ttl).renew(wrong_token),
            right.renew(right_token),
            wrong.with_ttl(ttl).renew(wrong_token),
        ];
        let answers = fixture.first().store().renew(&requests).await;
        let [Err(first), Ok(Renewed::Extended { .. }), Err(last)] = &answers[..] else {
            panic!("the second of three should have been extended: {answers:?}")
        };
        for error in [first, last] {
            assert_names_the_range(fixture, &wrong.name, ttl, error);
        }
        fixture
            .assert_unchanged(&wrong.name, &before, "a renewal with a ttl outside the range")
            .await;
    }
}

/// Every name in the storage that no case of this suite made.
async fn foreign_names(fixture: &Fixture) -> BTreeSet<String> {
    let name = |one: Listed| match one {
        Listed::Lease(lease) => lease.name.to_string(),
        Listed::Unreadable { key, .. } => key,
    };
    let listed = fixture.second().list("", 1_000).await;
    listed
        .into_iter()
        .map(name)
        .filter(|name| !name.contains("conformance-"))
        .collect()
}

/// An examination finds something to say, touches no lease, and leaves no record behind.
pub async fn examination_leaves_nothing_behind(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    fixture.first().take(&contender).await;
    let before = (
        foreign_names(fixture).await,
        fixture.snapshot(&contender.name).await,
    );
    for client in [fixture.first(), fixture.second()] {
        let examined = client.store().examine().await;
        let findings = examined.unwrap_or_else(|error| panic!("a healthy store can be examined: {error}"));
        assert!(!findings.is_empty(), "an examination finds something to say");
        for finding in findings {
            assert!(
                !finding.subject.trim().is_empty() && !finding.detail.trim().is_empty(),
                "{finding:?}"
            );
        }
    }
    // Another client's examination may be under way in the same storage: its scratch record goes soon.
    let mut after = foreign_names(fixture).await;
    for _ in 0..50 {
        if after == before.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        after = foreign_names(fixture).await;
    }
    assert_eq!(after, before.0, "an examination left a record behind");
    fixture
        .assert_unchanged(&contender.name, &before.1, "an examination")
        .await;
}
