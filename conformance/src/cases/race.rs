//! Requests at the same time, through both clients: always one winner, and no error.

use crate::{Client, Contender, Fixture};
use std::time::Duration;
use tenure_core::{
    Acquired, Answer, Asked, FencingToken, Grant, LeaseName, Released, Renewed, StoreError, Timekeeper, Wish,
};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// Candidates that ask at the same time.
const RACERS: usize = 16;

/// Rounds in which they do.
const ROUNDS: u64 = 10;

/// A ttl that does not run out during a case, and is not the one that leases are taken with.
const ANOTHER_LONG: Duration = Duration::from_secs(200);

fn both(fixture: &Fixture) -> impl Iterator<Item = Client> + use<> {
    [fixture.first().clone(), fixture.second().clone()]
        .into_iter()
        .cycle()
}

/// Lets all ask at once; answers in the order of the contenders.
async fn ask_at_once(fixture: &Fixture, contenders: &[Contender]) -> Vec<Acquired> {
    let mut asking = JoinSet::new();
    for (number, (contender, client)) in contenders.iter().zip(both(fixture)).enumerate() {
        let request = contender.acquire();
        asking.spawn(async move { (number, client.acquire(&request).await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Checks that exactly one won and that all others were told so; answers who, and what.
fn only_winner(answers: &[Acquired]) -> (usize, Grant) {
    only_winner_after(None, answers)
}

/// As [`only_winner`]; a loser may also have seen the lease of this token.
fn only_winner_after(old: Option<FencingToken>, answers: &[Acquired]) -> (usize, Grant) {
    let won = |(number, answer): (usize, &Acquired)| match answer {
        Acquired::Granted(grant) => Some((number, grant.clone())),
        Acquired::Held(_) | Acquired::Superseded => None,
    };
    let winners: Vec<(usize, Grant)> = answers.iter().enumerate().filter_map(won).collect();
    let [(number, grant)] = &winners[..] else {
        panic!("one of {} should have won, but {winners:?} did", answers.len())
    };
    for answer in answers {
        match answer {
            Acquired::Granted(_) => {}
            Acquired::Held(lease) if Some(lease.token) == old => {}
            Acquired::Held(lease) => assert_eq!(lease.token, grant.token, "losers see the winner"),
            Acquired::Superseded => panic!("each is a process of its own: {answers:?}"),
        }
    }
    (*number, grant.clone())
}

/// Through which client the lease is taken in this round.
fn taker(fixture: &Fixture, round: u64) -> &Client {
    match round / 2 % 2 {
        0 => fixture.first(),
        _ => fixture.second(),
    }
}

fn racers(fixture: &Fixture, name: &LeaseName) -> Vec<Contender> {
    (0..RACERS)
        .map(|number| fixture.contender(&format!("racer-{number}"), name))
        .collect()
}

/// Of sixteen who ask at once for a name that has no record, exactly one wins; nobody gets an error.
pub async fn one_of_sixteen_wins_a_new_lease(fixture: &Fixture) {
    for _ in 0..ROUNDS {
        let contenders = racers(fixture, &fixture.name());
        let (number, grant) = only_winner(&ask_at_once(fixture, &contenders).await);
        assert_eq!((grant.terms, grant.predecessor), (1, None));
        let lease = fixture.first().lease(&contenders[number].name).await;
        assert_eq!(lease.holder, contenders[number].candidate);
    }
}

/// Of sixteen who ask at once for a vacant lease, exactly one wins, round after round, with rising tokens.
pub async fn one_of_sixteen_wins_a_vacant_lease(fixture: &Fixture) {
    let contenders = racers(fixture, &fixture.name());
    let mut last: Option<FencingToken> = None;
    for round in 1..=ROUNDS {
        let now: Vec<Contender> = contenders.iter().map(|one| one.at_attempt(round)).collect();
        let (number, grant) = only_winner(&ask_at_once(fixture, &now).await);
        assert!(
            last.is_none_or(|last| grant.token > last),
            "round {round}: {grant:?} after token {last:?}"
        );
        assert_eq!(grant.terms, round, "one term each round");
        fixture.first().vacate(&now[number].release(grant.token)).await;
        last = Some(grant.token);
    }
}

/// Of sixteen who ask at once for an expired lease, exactly one wins.
pub async fn one_of_sixteen_wins_an_expired_lease(fixture: &Fixture) {
    let last = fixture.contender("last", &fixture.name());
    let old = fixture.let_expire(&last).await;
    let contenders = racers(fixture, &last.name);
    // Whoever times what it has seen takes a reading that comes after a later one for a new version, and
    // waits on.
    let observed = fixture.traits().timekeeper == Timekeeper::Observer;
    let late = observed.then_some(old.token);
    let (_, new) = only_winner_after(late, &ask_at_once(fixture, &contenders).await);
    assert!(new.token > old.token, "{new:?} after {old:?}");
    assert_eq!(new.terms, old.terms + 1);
}

/// Duplicates of one request that arrive at once get one term: the same token, new to exactly one of them.
pub async fn duplicates_at_once_get_one_token(fixture: &Fixture) {
    for _ in 0..ROUNDS {
        let contender = fixture.contender("ada", &fixture.name());
        let duplicates = vec![contender.clone(); 4];
        let answers = ask_at_once(fixture, &duplicates).await;
        let mut grants = Vec::new();
        for answer in answers {
            match answer {
                Acquired::Granted(grant) => grants.push(grant),
                other @ (Acquired::Held(_) | Acquired::Superseded) => {
                    panic!("a duplicate of {contender} should get the term, but got {other:?}")
                }
            }
        }
        assert!(
            grants.iter().all(|grant| grant.token == grants[0].token),
            "one attempt, one token: {grants:?}"
        );
        let new = grants.iter().filter(|grant| !grant.again).count();
        assert_eq!(new, 1, "the term is new to exactly one of them: {grants:?}");
    }
}

/// Attempts of one process that arrive at once end with the latest, and with tokens in the attempts' order.
pub async fn attempts_at_once_end_with_the_latest(fixture: &Fixture) {
    for _ in 0..ROUNDS {
        let contender = fixture.contender("ada", &fixture.name());
        let attempts: Vec<Contender> = (1..=4).map(|number| contender.at_attempt(number)).collect();
        let mut granted = Vec::new();
        for answer in ask_at_once(fixture, &attempts).await {
            match answer {
                Acquired::Granted(grant) => granted.push(grant.token),
                Acquired::Superseded => {}
                Acquired::Held(lease) => panic!("a process does not wait for itself: {lease:?}"),
            }
        }
        assert!(
            granted.is_sorted_by(|earlier, later| earlier < later),
            "later attempts have greater tokens: {granted:?}"
        );
        let lease = fixture.first().lease(&contender.name).await;
        assert_eq!(
            (lease.attempt.number(), Some(&lease.token)),
            (4, granted.last()),
            "the latest attempt holds the lease"
        );
    }
}

/// A renewal and a release of one term at once: whichever comes first, the lease ends vacant.
pub async fn renewal_and_release_at_once_end_vacant(fixture: &Fixture) {
    for _ in 0..ROUNDS {
        let contender = fixture.contender("ada", &fixture.name());
        let grant = fixture.first().take(&contender).await;
        let (renew, release) = (contender.renew(grant.token), contender.release(grant.token));
        let (renewed, released) =
            tokio::join!(fixture.first().renew(&renew), fixture.second().release(&release));
        assert_eq!(released, Released::Vacated);
        if let Renewed::Lost(now) = renewed {
            assert!(now.expect("a record").released, "lost to the release alone");
        }
        let lease = fixture.second().lease(&contender.name).await;
        assert!(lease.released, "{lease:?}");
        assert_eq!(lease.token, grant.token);
    }
}

/// A release and another's request at once: the other gets the lease or is told to wait, and the old term is
/// over either way.
pub async fn release_and_request_at_once_agree(fixture: &Fixture) {
    for _ in 0..ROUNDS {
        let ada = fixture.contender("ada", &fixture.name());
        let bob = fixture.contender("bob", &ada.name);
        let old = fixture.first().take(&ada).await;
        let (release, request) = (ada.release(old.token), bob.acquire());
        let (released, answer) = tokio::join!(
            fixture.first().release(&release),
            fixture.second().acquire(&request)
        );
        assert_eq!(released, Released::Vacated);
        let lease = fixture.second().lease(&ada.name).await;
        match answer {
            Acquired::Granted(new) => {
                assert!(new.token > old.token, "{new:?} after {old:?}");
                assert_eq!((lease.token, lease.released), (new.token, false));
            }
            Acquired::Held(shown) => {
                assert_eq!(shown.token, old.token);
                assert_eq!((lease.token, lease.released), (old.token, true));
            }
            Acquired::Superseded => panic!("nothing superseded {bob}"),
        }
    }
}

/// What a batch is answered.
type Verdicts<T> = Vec<Result<T, StoreError>>;

/// Begins all three at the same time: in every second round the third first, whatever a runtime makes of
/// that.
async fn at_once<T: Send + 'static, Third: Send + 'static>(
    round: u64,
    two: [Answer<'static, T>; 2],
    third: impl Future<Output = Third> + Send + 'static,
) -> ([T; 2], Third) {
    let ([one, other], third) = match round % 2 {
        0 => {
            let two = two.map(tokio::spawn);
            (two, tokio::spawn(third))
        }
        _ => {
            let third = tokio::spawn(third);
            (two.map(tokio::spawn), third)
        }
    };
    (
        [finished(one).await, finished(other).await],
        finished(third).await,
    )
}

async fn finished<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(answer) => answer,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Asks the holder of a term to step down, through either client.
fn ask_twice(fixture: &Fixture, name: &LeaseName, token: FencingToken) -> [Answer<'static, Asked>; 2] {
    [fixture.first(), fixture.second()].map(|client| {
        let (client, name) = (client.clone(), name.clone());
        Box::pin(async move { client.ask(&name, token).await }) as Answer<'static, Asked>
    })
}

/// Takes the lease; also answers since when.
fn taking(client: &Client, contender: &Contender) -> impl Future<Output = (Grant, Instant)> + Send + 'static {
    let (client, contender) = (client.clone(), contender.clone());
    async move {
        let sent = Instant::now();
        (client.take(&contender).await, sent)
    }
}

/// Checks that the term is as it was granted, although others were under way, and that nobody has asked it
/// for anything.
async fn assert_is_as_granted(fixture: &Fixture, contender: &Contender, (grant, sent): &(Grant, Instant)) {
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(
        (lease.token, lease.attempt, lease.ttl, &lease.holder),
        (grant.token, contender.attempt, grant.ttl, &contender.candidate),
        "{grant:?} was granted"
    );
    assert!(!lease.released && !lease.asked_to_step_down, "{lease:?}");
    fixture.assert_lasts(&lease, *sent);
    let renewed = fixture.first().renew(&contender.renew(grant.token)).await;
    let wish = Wish::Nothing;
    assert_eq!(renewed, Renewed::Extended { ttl: grant.ttl, wish }, "{grant:?}");
}

/// Wishes for a term at once with its end: whichever comes first, the next term is as it was granted, and
/// nobody has asked it.
pub async fn wishes_and_end_of_a_term_at_once_leave_the_next_alone(fixture: &Fixture) {
    for round in 0..ROUNDS {
        let ada = fixture.contender("ada", &fixture.name());
        let old = fixture.first().take(&ada).await;
        // Given up for a later attempt, the lease is not vacant in between.
        let (release, next) = match round / 2 % 2 {
            0 => (Some(ada.release(old.token)), fixture.contender("bob", &ada.name)),
            _ => (None, ada.at_attempt(2)),
        };
        let (client, taking) = (fixture.first().clone(), taking(fixture.second(), &next));
        let ending = async move {
            if let Some(release) = release {
                client.vacate(&release).await;
            }
            taking.await
        };
        let (_, new) = at_once(round, ask_twice(fixture, &ada.name, old.token), ending).await;
        assert!(new.0.token > old.token, "{new:?} after {old:?}");
        assert_is_as_granted(fixture, &next, &new).await;
    }
}

/// Wishes for a term at once with its renewal: both count.
pub async fn wishes_and_renewal_at_once_both_count(fixture: &Fixture) {
    for round in 0..ROUNDS {
        let ada = fixture.contender("ada", &fixture.name());
        let grant = fixture.first().take(&ada).await;
        let renew = ada.with_ttl(fixture.ttl_near(ANOTHER_LONG)).renew(grant.token);
        let (client, sent) = (fixture.first().clone(), Instant::now());
        let renewing = async move { client.renew(&renew).await };
        let (asked, renewed) = at_once(round, ask_twice(fixture, &ada.name, grant.token), renewing).await;
        assert_eq!(asked, [Asked::Noted, Asked::Noted]);
        let Renewed::Extended { ttl, .. } = renewed else {
            panic!("the holder's renewal was lost: {renewed:?}")
        };
        let lease = fixture.second().lease(&ada.name).await;
        assert!(
            lease.asked_to_step_down,
            "the renewal took the wish away: {lease:?}"
        );
        assert_eq!((lease.token, lease.ttl), (grant.token, ttl), "renewed with {ttl}");
        assert!(lease.remaining <= fixture.remaining_max(ttl), "{lease:?}");
        fixture.assert_lasts(&lease, sent);
    }
}

/// Two batches about a term, of two leases and of this alone, at once with the later attempt that ends it,
/// whose term is as it was granted. What the first is answered.
async fn beside_a_later_attempt<T: std::fmt::Debug + Send + 'static>(
    fixture: &Fixture,
    round: u64,
    contender: &Contender,
    old: FencingToken,
    batches: [Answer<'static, Verdicts<T>>; 2],
) -> Verdicts<T> {
    let later = contender.at_attempt(2);
    let taking = taking(taker(fixture, round), &later);
    let ([beside_another, alone], new) = at_once(round, batches, taking).await;
    assert!(matches!(alone[..], [Ok(_)]), "{alone:?}");
    assert!(new.0.token > old, "{new:?} after {old}");
    assert_is_as_granted(fixture, &later, &new).await;
    beside_another
}

/// Renewals of a term, among others and alone, at once with the later attempt that ends it: the new term is
/// as it was granted.
pub async fn renewals_and_later_attempt_at_once_leave_the_new_term_alone(fixture: &Fixture) {
    let bystander = fixture.contender("bystander", &fixture.name());
    let beside = fixture.first().take(&bystander).await;
    for round in 0..ROUNDS {
        let ada = fixture.contender("ada", &fixture.name());
        let old = fixture.first().take(&ada).await;
        let renew = ada.with_ttl(fixture.ttl_near(ANOTHER_LONG)).renew(old.token);
        let batches = [vec![bystander.renew(beside.token), renew.clone()], vec![renew]];
        let mut clients = both(fixture);
        let renewing = batches.map(|batch| {
            let client = clients.next().expect("a cycle");
            Box::pin(async move { client.store().renew(&batch).await }) as Answer<'static, Verdicts<Renewed>>
        });
        let beside_another = beside_a_later_attempt(fixture, round, &ada, old.token, renewing).await;
        assert!(
            matches!(&beside_another[..], [Ok(Renewed::Extended { .. }), Ok(_)]),
            "{beside_another:?}"
        );
    }
}

/// Releases of a term, among others and alone, at once with the later attempt that ends it: the new term is
/// as it was granted.
pub async fn releases_and_later_attempt_at_once_leave_the_new_term_alone(fixture: &Fixture) {
    let bystander = fixture.contender("bystander", &fixture.name());
    let beside = fixture.first().take(&bystander).await;
    for round in 0..ROUNDS {
        let ada = fixture.contender("ada", &fixture.name());
        let old = fixture.first().take(&ada).await;
        let release = ada.release(old.token);
        let batches = [
            vec![bystander.release(beside.token), release.clone()],
            vec![release],
        ];
        let mut clients = both(fixture);
        let releasing = batches.map(|batch| {
            let client = clients.next().expect("a cycle");
            Box::pin(async move { client.store().release(&batch).await })
                as Answer<'static, Verdicts<Released>>
        });
        let beside_another = beside_a_later_attempt(fixture, round, &ada, old.token, releasing).await;
        assert!(
            matches!(&beside_another[..], [Ok(Released::Vacated), Ok(_)]),
            "{beside_another:?}"
        );
    }
}
