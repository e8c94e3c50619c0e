//! Tokens: they only rise, for ever, whatever happens to the record.

use crate::{Contender, Corruption, Fixture};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::{Acquired, FencingToken, TokenSource};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Terms that the racers of one case take in all.
const TERMS: usize = 200;

/// Where a token has the store's clock in it, it is at least that clock: so it rises even after a restore.
pub async fn token_is_at_least_the_store_clock(fixture: &Fixture) {
    let Some(floor) = fixture.clock_ms().await else {
        return; // Tokens are revisions; that the store declares so was checked.
    };
    assert_eq!(fixture.traits().token_source, TokenSource::CounterAndClock);
    let contender = fixture.contender("ada", &fixture.name());
    let first = fixture.first().take(&contender).await;
    assert!(
        first.token.number() >= floor,
        "token {} is below the store's clock, {floor}",
        first.token
    );
    let ceiling = fixture.clock_ms().await.expect("the store had a clock just now");
    assert!(
        first.token.number() <= ceiling,
        "the first token {} is above the store's clock, {ceiling}",
        first.token
    );
    sleep(Duration::from_millis(30)).await;
    let floor = fixture.clock_ms().await.expect("the store had a clock just now");
    let later = fixture.second().take(&contender.at_attempt(2)).await;
    assert!(
        later.token.number() >= floor,
        "token {} is below the store's clock, {floor}",
        later.token
    );
}

/// Over 200 terms, raced for through both clients, every token is greater than the one before.
pub async fn tokens_rise_over_two_hundred_terms(fixture: &Fixture) {
    let name = fixture.name();
    let terms: Arc<Mutex<Vec<FencingToken>>> = Arc::default();
    let mut racing = JoinSet::new();
    for (number, client) in [fixture.first(), fixture.second()]
        .into_iter()
        .cycle()
        .take(4)
        .enumerate()
    {
        let mut racer = fixture.contender(&format!("racer-{number}"), &name);
        let (client, terms) = (client.clone(), Arc::clone(&terms));
        racing.spawn(async move {
            while terms.lock().expect("no racer panicked").len() < TERMS {
                match client.acquire(&racer.acquire()).await {
                    Acquired::Granted(grant) => {
                        // Noted while the lease is held: so this order is the order of the terms.
                        terms.lock().expect("no racer panicked").push(grant.token);
                        client.vacate(&racer.release(grant.token)).await;
                        racer.attempt = racer.attempt.next();
                    }
                    Acquired::Held(_) => sleep(Duration::from_millis(2)).await,
                    Acquired::Superseded => panic!("nothing superseded {racer}"),
                }
            }
        });
    }
    while let Some(raced) = racing.join_next().await {
        raced.expect("a racer ends without a panic");
    }
    let terms = terms.lock().expect("no racer panicked");
    let falling = terms.windows(2).find(|pair| pair[1] <= pair[0]);
    assert_eq!(falling, None, "a token did not rise");
    assert!(terms.len() >= TERMS, "{} terms", terms.len());
}

/// Tokens rise through every way in which a term can end.
pub async fn tokens_rise_through_every_kind_of_end(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let mut tokens = vec![fixture.first().take(&ada).await.token];
    tokens.push(fixture.first().take(&ada.at_attempt(2)).await.token);
    fixture
        .first()
        .vacate(&ada.at_attempt(2).release(tokens[1]))
        .await;
    tokens.push(fixture.let_expire(&bob).await.token);
    fixture.second().vacate(&bob.release(tokens[2])).await;
    tokens.push(fixture.let_expire(&ada.at_attempt(3)).await.token);
    tokens.push(fixture.second().take(&bob.at_attempt(2)).await.token);
    assert!(
        tokens.is_sorted_by(|earlier, later| earlier < later),
        "tokens must rise: {tokens:?}"
    );
}

/// A record that was cleaned up is forgotten, and still the next token is greater.
pub async fn token_rises_after_a_clean_up(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let mut old = fixture.first().take(&ada).await;
    for attempt in 2..=4 {
        old = fixture.first().take(&ada.at_attempt(attempt)).await;
    }
    fixture
        .first()
        .vacate(&ada.at_attempt(4).release(old.token))
        .await;
    // The floor is a clock in milliseconds; a clean-up comes far later than that.
    sleep(Duration::from_millis(50)).await;
    let _purged_or_declared_impossible = fixture.purge(&ada.name).await;
    let new = fixture.second().take(&bob).await;
    assert!(
        new.token > old.token,
        "token {} after {} and a clean-up",
        new.token,
        old.token
    );
}

/// A held record that was removed leaves nothing of the old term: the next one begins, with a greater token.
pub async fn token_rises_after_a_held_record_was_removed(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    sleep(Duration::from_millis(50)).await;
    if fixture.purge(&ada.name).await {
        let new = fixture.second().take(&ada).await;
        assert!(new.token > old.token && !new.again, "{new:?} after {old:?}");
    }
}

/// The last token has no successor: the request fails, nothing wraps round, and the record stays.
pub async fn last_token_has_no_successor(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(grant.token)).await;
    if !fixture.corrupt(&ada.name, Corruption::LastToken).await {
        return; // The storage makes it impossible; that nothing changed was checked.
    }
    assert_eq!(
        fixture.second().lease(&ada.name).await.token,
        FencingToken::MAX,
        "the last token is a token like any other"
    );
    let before = fixture.snapshot(&ada.name).await;
    for contender in [ada.at_attempt(2), fixture.contender("bob", &ada.name)] {
        assert_refused(fixture, &contender).await;
    }
    fixture
        .assert_unchanged(&ada.name, &before, "requests that have no token left")
        .await;
}

async fn assert_refused(fixture: &Fixture, contender: &Contender) {
    let answer = fixture.second().store().acquire(&contender.acquire()).await;
    let error = answer.expect_err("there is no token after the last one");
    assert!(
        error.message.contains(contender.name.as_str()),
        "the message names \"{}\": {error}",
        contender.name
    );
}
