//! Records that Tenure did not write, or that are damaged: answered as such, and left byte for byte.

use crate::{Contender, Corruption, Fixture};
use std::future::Future;
use tenure_core::{Ask, Certainty, Fault, Grant, Released, Renewed, StoreError};

/// How the lease stands before its record is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Held,
    Vacant,
    Expired,
}

fn assert_names_the_trouble<T: std::fmt::Debug>(
    what: &str,
    contender: &Contender,
    answer: Result<T, StoreError>,
) {
    let name = contender.name.as_str();
    let error = match answer {
        Ok(answer) => panic!("{what} understood the record of \"{name}\", which is damaged: {answer:?}"),
        Err(error) => error,
    };
    assert_eq!(error.fault, Fault::Unreadable, "{what}: {error}");
    assert_eq!(
        error.certainty,
        Certainty::NotApplied,
        "{what} left the record as it is, and says so: {error}"
    );
    assert!(
        error.message.contains(name) && !error.message.contains('\n'),
        "{what} should name \"{name}\" in one line: {error}"
    );
}

/// How often is asked at most.
const TRIES_MAX: u32 = 4;

/// What `ask` comes to. One of several servers may have been late on a loaded machine, and then nobody knows
/// what it did: since nothing has changed, it is asked again. A store that does not know what it did with a
/// record says so each time.
async fn known<T, Asking>(ask: impl Fn() -> Asking) -> Result<T, StoreError>
where
    Asking: Future<Output = Result<T, StoreError>>,
{
    let mut answer = ask().await;
    for _try in 1..TRIES_MAX {
        let unknown = |error: &StoreError| error.certainty == Certainty::Unknown;
        if !answer.as_ref().is_err_and(unknown) {
            break;
        }
        answer = ask().await;
    }
    answer
}

/// Who asks for a lease whose record is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Askers {
    All,
    /// All but the process that holds it.
    Others,
}

/// Makes every kind of request, through both clients, and checks each answer.
async fn ask_everything(fixture: &Fixture, owner: &Contender, grant: &Grant, askers: Askers) {
    let rival = fixture.contender("bob", &owner.name);
    let mut candidates = vec![rival.clone(), owner.reborn()];
    let mut holders = vec![rival, owner.reborn()];
    if askers == Askers::All {
        candidates.extend([owner.clone(), owner.at_attempt(2)]);
        holders.push(owner.clone());
    }
    let wish = Ask {
        name: owner.name.clone(),
        token: grant.token,
    };
    for client in [fixture.first(), fixture.second()] {
        let store = client.store();
        let read = known(|| store.get(&owner.name)).await;
        assert_names_the_trouble("get", owner, read);
        for contender in &candidates {
            let request = contender.acquire();
            let answer = known(|| store.acquire(&request)).await;
            assert_names_the_trouble("acquire", contender, answer);
        }
        for contender in &holders {
            let request = contender.renew(grant.token);
            let answer = known(|| client.try_renew(&request)).await;
            assert_names_the_trouble("renew", contender, answer);
            let request = contender.release(grant.token);
            let answer = known(|| client.try_release(&request)).await;
            assert_names_the_trouble("release", contender, answer);
        }
        let answer = known(|| store.ask(&wish)).await;
        assert_names_the_trouble("ask", owner, answer);
    }
}

async fn assert_left_alone(fixture: &Fixture, standing: Standing, corruption: Corruption, askers: Askers) {
    let owner = fixture.contender("ada", &fixture.name());
    let grant = match standing {
        Standing::Held => fixture.first().take(&owner).await,
        Standing::Vacant => {
            let grant = fixture.first().take(&owner).await;
            fixture.first().vacate(&owner.release(grant.token)).await;
            grant
        }
        Standing::Expired => fixture.let_expire(&owner).await,
    };
    if !fixture.corrupt(&owner.name, corruption).await {
        return; // The storage makes it impossible; that nothing changed was checked.
    }
    let before = fixture.snapshot(&owner.name).await;
    ask_everything(fixture, &owner, &grant, askers).await;
    fixture
        .assert_unchanged(&owner.name, &before, "every kind of request")
        .await;
}

macro_rules! held_record_is_left_alone {
    ($($(#[$doc:meta])* $name:ident => $corruption:ident;)*) => {
        $(
            $(#[$doc])*
            pub async fn $name(fixture: &Fixture) {
                assert_left_alone(fixture, Standing::Held, Corruption::$corruption, Askers::All).await;
            }
        )*
    };
}

held_record_is_left_alone! {
    /// No term has a negative token.
    negative_token_is_left_alone => NegativeToken;
    /// No term has the token 0.
    zero_token_is_left_alone => ZeroToken;
    /// No term has a token above 2^63 − 1.
    huge_token_is_left_alone => HugeToken;
    /// No term has a token above the last: believed, it would be claimed, and close its resource for good.
    token_beyond_the_last_is_left_alone => TokenBeyondTheLast;
    /// A token is a number.
    token_that_is_text_is_left_alone => TokenIsText;
    /// A record without a token is none.
    missing_token_is_left_alone => NoToken;
    /// A candidate id is a text.
    holder_that_is_a_number_is_left_alone => HolderIsNumber;
    /// A candidate id has no control characters.
    malformed_holder_is_left_alone => HolderIsMalformed;
    /// A record without a holder is none.
    missing_holder_is_left_alone => NoHolder;
    /// An incarnation is 128 bits.
    malformed_incarnation_is_left_alone => IncarnationIsMalformed;
    /// No try has a negative attempt.
    negative_attempt_is_left_alone => NegativeAttempt;
    /// An attempt is a number.
    attempt_that_is_text_is_left_alone => AttemptIsText;
    /// An expiry is a time.
    expiry_that_is_text_is_left_alone => ExpiryIsText;
    /// A held record without an expiry would be held for ever, or taken at once: nobody knows.
    missing_expiry_is_left_alone => NoExpiry;
    /// No lease has a ttl of 0.
    zero_ttl_is_left_alone => ZeroTtl;
    /// A ttl is a number.
    ttl_that_is_text_is_left_alone => TtlIsText;
    /// Another application's record is not ours to take.
    record_of_another_application_is_left_alone => Alien;
}

/// No lease lasts for centuries: believed, it would keep everybody out.
pub async fn expiry_far_off_is_left_alone(fixture: &Fixture) {
    let askers = match fixture.clock_may_be_set_back() {
        true => Askers::Others,
        false => Askers::All,
    };
    assert_left_alone(fixture, Standing::Held, Corruption::ExpiryFarOff, askers).await;
}

/// Leases of one process whose expiry is far off, as when the store's clock was set back by as much; and
/// their terms. `None` where no clock can have done that.
async fn held_far_off(fixture: &Fixture) -> Option<[(Contender, Grant); 3]> {
    let owner = fixture.contender("ada", &fixture.name());
    let owners = [
        owner.clone(),
        owner.for_lease(&fixture.name()),
        owner.for_lease(&fixture.name()),
    ];
    let mut terms = Vec::new();
    for owner in owners {
        let grant = fixture.first().take(&owner).await;
        if !fixture.corrupt(&owner.name, Corruption::ExpiryFarOff).await {
            return None;
        }
        terms.push((owner, grant));
    }
    let terms = <[_; 3]>::try_from(terms).expect("each has its term");
    fixture.clock_may_be_set_back().then_some(terms)
}

/// The lease is as it is after any other request of its holder: it lasts its ttl, for everybody.
async fn assert_lasts_its_ttl(fixture: &Fixture, owner: &Contender, grant: &Grant) {
    let rival = fixture.contender("bob", &owner.name);
    let most = fixture.remaining_max(owner.ttl);
    for client in [fixture.first(), fixture.second()] {
        for lease in [client.lease(&owner.name).await, client.be_refused(&rival).await] {
            assert_eq!(lease.token, grant.token, "{lease:?}");
            assert!(lease.remaining <= most, "{lease:?} lasts longer than {most:?}");
        }
    }
}

/// A holder extends what it holds by the store's clock as it goes now, alone, with others, and by asking
/// again.
pub async fn expiry_far_off_is_mended_by_the_holders_renewal(fixture: &Fixture) {
    let Some([alone, one, other]) = held_far_off(fixture).await else {
        return;
    };
    fixture.first().extend(&alone.0.renew(alone.1.token)).await;
    let together = [one.0.renew(one.1.token), other.0.renew(other.1.token)];
    for answer in fixture.first().store().renew(&together).await {
        assert!(matches!(answer, Ok(Renewed::Extended { .. })), "{answer:?}");
    }
    for (owner, grant) in [&alone, &one, &other] {
        assert_lasts_its_ttl(fixture, owner, grant).await;
    }
    let (owner, grant) = alone;
    if fixture.corrupt(&owner.name, Corruption::ExpiryFarOff).await {
        let again = fixture.first().take(&owner).await;
        assert_eq!((again.token, again.again), (grant.token, true));
        assert_lasts_its_ttl(fixture, &owner, &grant).await;
    }
}

/// A holder gives back what it holds, alone and with others, and the next one has it at once.
pub async fn expiry_far_off_keeps_no_holder_from_giving_back(fixture: &Fixture) {
    let Some([alone, one, other]) = held_far_off(fixture).await else {
        return;
    };
    fixture.first().vacate(&alone.0.release(alone.1.token)).await;
    let together = [one.0.release(one.1.token), other.0.release(other.1.token)];
    for answer in fixture.first().store().release(&together).await {
        assert_eq!(answer, Ok(Released::Vacated));
    }
    for (owner, grant) in [alone, one, other] {
        let next = fixture
            .second()
            .take(&fixture.contender("bob", &owner.name))
            .await;
        assert!(next.token > grant.token, "{next:?} after {grant:?}");
    }
}

/// A process that tries anew takes over from its own earlier term, however long that would last.
pub async fn expiry_far_off_keeps_no_later_attempt_out(fixture: &Fixture) {
    let Some([(owner, grant), ..]) = held_far_off(fixture).await else {
        return;
    };
    let later = owner.at_attempt(2);
    let next = fixture.first().take(&later).await;
    assert!(next.token > grant.token, "{next:?} after {grant:?}");
    assert_lasts_its_ttl(fixture, &later, &next).await;
}

/// A damaged record is not taken because it looks vacant.
pub async fn damaged_vacant_record_is_left_alone(fixture: &Fixture) {
    assert_left_alone(fixture, Standing::Vacant, Corruption::NegativeToken, Askers::All).await;
    assert_left_alone(fixture, Standing::Vacant, Corruption::TokenIsText, Askers::All).await;
    assert_left_alone(
        fixture,
        Standing::Vacant,
        Corruption::TokenBeyondTheLast,
        Askers::All,
    )
    .await;
}

/// A damaged record is not taken because it looks expired.
pub async fn damaged_expired_record_is_left_alone(fixture: &Fixture) {
    assert_left_alone(fixture, Standing::Expired, Corruption::NegativeToken, Askers::All).await;
    assert_left_alone(fixture, Standing::Expired, Corruption::HugeToken, Askers::All).await;
    assert_left_alone(
        fixture,
        Standing::Expired,
        Corruption::TokenBeyondTheLast,
        Askers::All,
    )
    .await;
}

/// Damage to one record disturbs no other.
pub async fn damage_to_one_record_disturbs_no_other(fixture: &Fixture) {
    let (damaged, sound) = (
        fixture.contender("ada", &fixture.name()),
        fixture.contender("bob", &fixture.name()),
    );
    fixture.first().take(&damaged).await;
    let grant = fixture.first().take(&sound).await;
    let _damaged_or_declared_impossible = fixture.corrupt(&damaged.name, Corruption::Alien).await;
    fixture.second().extend(&sound.renew(grant.token)).await;
    assert_eq!(fixture.second().lease(&sound.name).await.token, grant.token);
    fixture.second().vacate(&sound.release(grant.token)).await;
    let fresh = fixture.contender("eve", &fixture.name());
    fixture.second().take(&fresh).await;
}
