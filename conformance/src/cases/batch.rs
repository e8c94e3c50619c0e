//! Many leases in one call: one answer each, in order, and none disturbs another.

use crate::{Client, Contender, Corruption, Fixture};
use tenure_core::{Fault, FencingToken, Lease, LeaseName, Release, Released, Renew, Renewed, StoreError};
use tokio::task::JoinSet;

/// Most leases of the large batches, where the store takes as many: enough to pass the limits of one
/// statement in most stores.
const LARGE: usize = 300;

/// Leases that are taken at the same time while a large batch is prepared.
const AT_ONCE: usize = 8;

/// Takes `count` leases, and answers who took which, in the order of their numbers.
async fn take_many(fixture: &Fixture, count: usize) -> Vec<(Contender, FencingToken)> {
    let mut taking = JoinSet::new();
    let mut taken = Vec::new();
    for number in 0..count {
        let contender = fixture.contender("ada", &fixture.name());
        let client: Client = fixture.first().clone();
        taking.spawn(async move {
            let grant = client.take(&contender).await;
            (number, contender, grant.token)
        });
        if taking.len() >= AT_ONCE {
            taken.extend(taking.join_next().await.map(|one| one.expect("a lease is taken")));
        }
    }
    taken.extend(taking.join_all().await);
    taken.sort_by_key(|(number, ..)| *number);
    taken
        .into_iter()
        .map(|(_, contender, token)| (contender, token))
        .collect()
}

/// What a mixed batch should answer, one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Yes,
    NotThisTerm,
    NoRecord,
    Unreadable,
}

/// Terms that live, that are over, that have no record, and whose record is damaged, all mixed.
async fn mixture(fixture: &Fixture) -> Vec<(Contender, FencingToken, Expected)> {
    let mut mixed = Vec::new();
    let mut taken = take_many(fixture, 9).await.into_iter();
    let mut next = || taken.next().expect("nine were taken");
    for _ in 0..3 {
        let (live, token) = next();
        mixed.push((live, token, Expected::Yes));
        let (lost, token) = next();
        fixture.first().take(&lost.at_attempt(2)).await;
        mixed.push((lost, token, Expected::NotThisTerm));
        let missing = fixture.contender("ada", &fixture.name());
        mixed.push((missing, token, Expected::NoRecord));
        let (damaged, token) = next();
        let expected = if fixture.corrupt(&damaged.name, Corruption::NegativeToken).await {
            Expected::Unreadable
        } else {
            Expected::Yes
        };
        mixed.push((damaged, token, expected));
    }
    let (live, token) = (mixed[0].0.clone(), mixed[0].1);
    mixed.push((live, token, Expected::Yes));
    mixed
}

fn assert_shown(shown: Option<&Lease>, name: &LeaseName, expected: Expected) {
    match (shown, expected) {
        (Some(lease), Expected::NotThisTerm) => assert_eq!(&lease.name, name),
        (None, Expected::NoRecord) => {}
        _ => panic!("\"{name}\": expected {expected:?}, but was shown {shown:?}"),
    }
}

fn assert_unreadable(error: &StoreError, name: &LeaseName, expected: Expected) {
    assert_eq!(expected, Expected::Unreadable, "\"{name}\": {error}");
    assert_eq!(error.fault, Fault::Unreadable, "\"{name}\": {error}");
    assert!(
        error.message.contains(name.as_str()),
        "the message names \"{name}\": {error}"
    );
}

/// One verdict per renewal, in their order, whatever became of the others.
pub async fn renewals_are_judged_one_by_one(fixture: &Fixture) {
    let mixed = mixture(fixture).await;
    let requests: Vec<Renew> = mixed.iter().map(|(who, token, _)| who.renew(*token)).collect();
    let answers = fixture.second().store().renew(&requests).await;
    assert_eq!(answers.len(), requests.len(), "one answer per request");
    for (answer, (who, _, expected)) in answers.iter().zip(&mixed) {
        match answer {
            Ok(Renewed::Extended { .. }) => {
                assert_eq!(*expected, Expected::Yes, "\"{}\" was extended", who.name);
            }
            Ok(Renewed::Lost(shown)) => assert_shown(shown.as_deref(), &who.name, *expected),
            Err(error) => assert_unreadable(error, &who.name, *expected),
        }
    }
}

/// One verdict per release, in their order, whatever became of the others.
pub async fn releases_are_judged_one_by_one(fixture: &Fixture) {
    let mixed = mixture(fixture).await;
    let requests: Vec<Release> = mixed.iter().map(|(who, token, _)| who.release(*token)).collect();
    let answers = fixture.second().store().release(&requests).await;
    assert_eq!(answers.len(), requests.len(), "one answer per request");
    for (answer, (who, _, expected)) in answers.iter().zip(&mixed) {
        match answer {
            Ok(Released::Vacated) => {
                assert_eq!(*expected, Expected::Yes, "\"{}\" was vacated", who.name);
                assert!(fixture.first().lease(&who.name).await.released);
            }
            Ok(Released::NotYours(shown)) => assert_shown(shown.as_deref(), &who.name, *expected),
            Err(error) => assert_unreadable(error, &who.name, *expected),
        }
    }
}

/// Every lease of a large batch is renewed, each with its own ttl.
pub async fn large_batch_of_renewals(fixture: &Fixture) {
    let count = LARGE.min(fixture.traits().batch_max.get());
    let held = take_many(fixture, count).await;
    let (brief, long) = (
        fixture.ttl_near(std::time::Duration::from_secs(100)),
        fixture.ttl_long(),
    );
    let requests: Vec<Renew> = held
        .iter()
        .enumerate()
        .map(|(number, (who, token))| {
            let ttl = if number % 2 == 0 { brief } else { long };
            who.with_ttl(ttl).renew(*token)
        })
        .collect();
    let answers = fixture.first().store().renew(&requests).await;
    assert_eq!(answers.len(), count, "one answer per request");
    for (answer, request) in answers.iter().zip(&requests) {
        assert!(
            matches!(answer, Ok(Renewed::Extended { .. })),
            "\"{}\": {answer:?}",
            request.name
        );
    }
    for request in [&requests[0], &requests[count / 2], &requests[count - 1]] {
        let lease = fixture.second().lease(&request.name).await;
        assert_eq!(lease.ttl, request.ttl, "\"{}\" has its own ttl", request.name);
        assert!(lease.remaining <= fixture.remaining_max(request.ttl), "{lease:?}");
    }
}

/// Every lease of a large batch is given back.
pub async fn large_batch_of_releases(fixture: &Fixture) {
    let count = LARGE.min(fixture.traits().batch_max.get());
    let held = take_many(fixture, count).await;
    let requests: Vec<Release> = held.iter().map(|(who, token)| who.release(*token)).collect();
    let answers = fixture.first().store().release(&requests).await;
    assert_eq!(answers, vec![Ok(Released::Vacated); count]);
    let listed = fixture.second().list(fixture.unique(), 1_000).await;
    let released = listed
        .iter()
        .filter(|one| matches!(one, tenure_core::Listed::Lease(lease) if lease.released));
    assert_eq!(released.count(), count, "every lease is vacant");
}

/// Nothing asked, nothing answered.
pub async fn empty_batch_has_no_answers(fixture: &Fixture) {
    assert_eq!(fixture.first().store().renew(&[]).await, []);
    assert_eq!(fixture.first().store().release(&[]).await, []);
}

/// A batch may name a lease twice: each request is judged for itself.
pub async fn batch_may_name_a_lease_twice(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let (mine, not_mine) = (ada.renew(grant.token), ada.reborn().renew(grant.token));
    let answers = fixture
        .first()
        .store()
        .renew(&[mine.clone(), not_mine.clone(), mine])
        .await;
    assert!(
        matches!(
            &answers[..],
            [
                Ok(Renewed::Extended { .. }),
                Ok(Renewed::Lost(Some(_))),
                Ok(Renewed::Extended { .. })
            ]
        ),
        "{answers:?}"
    );
    let (mine, not_mine) = (ada.release(grant.token), ada.reborn().release(grant.token));
    let answers = fixture
        .first()
        .store()
        .release(&[not_mine, mine.clone(), mine])
        .await;
    assert!(
        matches!(
            &answers[..],
            [
                Ok(Released::NotYours(Some(_))),
                Ok(Released::Vacated),
                Ok(Released::Vacated)
            ]
        ),
        "{answers:?}"
    );
}
