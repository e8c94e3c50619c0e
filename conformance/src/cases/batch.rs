//! Many leases in one call: one answer each, in order, and none disturbs another.

use crate::mixture::{Kind, Mixture, Verdict, take_all};
use crate::{Client, Contender, Fixture};
use tenure_core::{FencingToken, Occupancy, Release, Released, Renew, Renewed};

/// Most leases of the large batches, where the store takes as many: enough to pass the limits of one
/// statement in most stores.
const LARGE: usize = 300;

/// Requests of the small mixed batches: a little more than every kind three times.
const SMALL: usize = 40;

/// Takes `count` leases, and answers who took which, in the order of their numbers.
async fn take_many(fixture: &Fixture, count: usize) -> Vec<(Contender, FencingToken)> {
    let contender = |_| fixture.contender("ada", &fixture.name());
    take_all(fixture, (0..count).map(contender).collect()).await
}

/// Renews through `asker` what was taken through the first client, and changed since through the other.
async fn judge_renewals(fixture: &Fixture, asker: &Client, mixture: &Mixture) {
    let answers = asker.store().renew(&mixture.renewals()).await;
    let verdicts: Vec<Verdict<'_>> = answers
        .iter()
        .map(|answer| match answer {
            Ok(Renewed::Extended { .. }) => Verdict::Done,
            Ok(Renewed::Lost(shown)) => Verdict::Refused(shown.as_deref()),
            Err(error) => Verdict::Failed(error),
        })
        .collect();
    mixture
        .check(fixture, &verdicts, &[Kind::Live], Occupancy::Held)
        .await;
}

/// Releases through `asker` what was taken through the first client, and changed since through the other.
async fn judge_releases(fixture: &Fixture, asker: &Client, mixture: &Mixture) {
    let answers = asker.store().release(&mixture.releases()).await;
    let verdicts: Vec<Verdict<'_>> = answers
        .iter()
        .map(|answer| match answer {
            Ok(Released::Vacated) => Verdict::Done,
            Ok(Released::NotYours(shown)) => Verdict::Refused(shown.as_deref()),
            Err(error) => Verdict::Failed(error),
        })
        .collect();
    let done = [Kind::Live, Kind::Expired, Kind::Released];
    mixture.check(fixture, &verdicts, &done, Occupancy::Vacant).await;
}

/// One verdict per renewal, in their order, whatever became of the others: only the very term that lasts is
/// extended, nothing is revived, and what is lost stays as it was.
pub async fn renewals_are_judged_one_by_one(fixture: &Fixture) {
    let mixture = Mixture::prepare(fixture, fixture.first(), SMALL).await;
    judge_renewals(fixture, fixture.second(), &mixture).await;
}

/// One verdict per release, in their order, whatever became of the others: only the very term is vacated,
/// also one that expired or was released before, and what is not the caller's stays as it was.
pub async fn releases_are_judged_one_by_one(fixture: &Fixture) {
    let mixture = Mixture::prepare(fixture, fixture.first(), SMALL).await;
    judge_releases(fixture, fixture.second(), &mixture).await;
}

/// The same of a batch that stores divide, by the client that took the leases, while another changed some.
pub async fn renewals_of_a_large_batch_are_judged_one_by_one(fixture: &Fixture) {
    let mixture = Mixture::prepare(fixture, fixture.second(), LARGE).await;
    judge_renewals(fixture, fixture.first(), &mixture).await;
}

/// The same of a batch that stores divide, by the client that took the leases, while another changed some.
pub async fn releases_of_a_large_batch_are_judged_one_by_one(fixture: &Fixture) {
    let mixture = Mixture::prepare(fixture, fixture.second(), LARGE).await;
    judge_releases(fixture, fixture.first(), &mixture).await;
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
    let sent = tokio::time::Instant::now();
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
        fixture.assert_lasts(&lease, sent);
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
