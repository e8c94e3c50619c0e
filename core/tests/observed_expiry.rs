//! When a lease may be claimed in a store without a clock: never early, by the record's ttl, from the answer
//! on.
use crate::observed::{Observer, Shelf, name, release, renewal, request};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Ages, Ask, Asked, End, Lease, LeaseName, Moment, Renewed, Round, Sightings, Ttl,
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_record_never_seen_before_waits_out_its_whole_ttl_and_the_rate_error() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let old = ada.take(&mut shelf, &request(1));
    // Long dead already, but this observer cannot know.
    bob.wait(3_600_000);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
    bob.wait(1_099);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, MS);
    bob.wait(1);
    let new = bob.take(&mut shelf, &request(2));
    assert!(new.token > old.token);
    assert_eq!(new.predecessor.unwrap().end, End::Expired);
}

#[test]
fn the_records_ttl_counts_and_not_the_askers() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    ada.take(&mut shelf, &request(1));
    let hasty = Acquire {
        ttl: Ttl::from_millis(100).unwrap(),
        ..request(2)
    };
    let patient = Acquire {
        ttl: Ttl::from_secs(60).unwrap(),
        ..request(2)
    };
    assert_eq!(bob.be_refused(&mut shelf, &hasty).remaining, 1_100 * MS);
    bob.wait(200);
    assert_eq!(bob.be_refused(&mut shelf, &patient).remaining, 900 * MS);
    bob.wait(900);
    bob.take(&mut shelf, &patient);
}

#[test]
fn a_version_counts_from_its_answer_and_not_from_when_it_was_asked_for() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let round = Round::acquire(request(2));
    let mut slow = round.clone();
    // Asked for at 1 s; the record is written and read at 3 s; the answer arrives at 4 s.
    ada.take(&mut shelf, &request(1));
    let response = shelf.serve(round.next()).unwrap();
    bob.wait(3_000);
    slow.take_in(bob.now, response, &mut bob.sightings);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_renewal_begins_the_observation_again() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    ada.wait(600);
    let extended = ada.renew(&mut shelf, &request(1), grant.token);
    assert!(matches!(extended, Renewed::Extended { .. }));
    bob.wait(1_100);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_new_term_begins_the_observation_again() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    ada.run(&mut shelf, Round::release(release(&request(1), grant.token)))
        .unwrap();
    ada.take(&mut shelf, &request(3));
    bob.wait(1_100);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_wish_is_no_sign_of_life() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(500);
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    Observer::new().run(&mut shelf, Round::ask(ask)).unwrap();
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 600 * MS);
    bob.wait(600);
    bob.take(&mut shelf, &request(2));
}

#[test]
fn a_claim_fails_if_the_holder_renewed_after_the_reading() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(1_100);
    let mut claim = Round::acquire(request(2));
    bob.step(&mut shelf, &mut claim);
    ada.renew(&mut shelf, &request(1), grant.token);
    let answer = bob.run(&mut shelf, claim).unwrap();
    let Acquired::Held(lease) = answer else {
        panic!("claimed over a renewal: {answer:?}")
    };
    assert_eq!((lease.token, lease.remaining), (grant.token, 1_100 * MS));
}

#[test]
fn after_a_suspension_a_version_that_is_still_there_may_be_claimed_at_once() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(3_600_000);
    bob.take(&mut shelf, &request(2));
}

#[test]
fn after_a_suspension_a_version_that_changed_is_observed_from_the_beginning() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    ada.renew(&mut shelf, &request(1), grant.token);
    bob.wait(3_600_000);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_clock_that_steps_back_only_makes_the_wait_longer() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.now = Moment::ZERO;
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_term_that_its_holder_has_seen_expire_is_not_revived() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    ada.wait(1_100);
    let answer = ada
        .run(&mut shelf, Round::renew(renewal(&request(1), grant.token)))
        .unwrap();
    assert!(matches!(answer, Renewed::Lost(Some(_))), "{answer:?}");
    let new = ada.take(&mut shelf, &request(1));
    assert!(new.token > grant.token && !new.again);
}

#[test]
fn what_was_not_looked_at_for_the_longest_is_forgotten_when_there_is_no_room() {
    let mut shelf = Shelf::default();
    let mut bob = Observer::new();
    Observer::new().take(&mut shelf, &request(1));
    let version = shelf.records[&name()].clone();
    let lease = |number: usize| LeaseName::new(format!("lease-{number}")).unwrap();
    for number in 0..Sightings::MAX {
        bob.sightings.see(bob.now, &lease(number), Some(&version));
        bob.now = bob.now.after(Duration::from_nanos(1));
    }
    // The oldest of all is looked at again, so that it is not among those that go.
    bob.sightings.see(bob.now, &lease(0), Some(&version));
    assert_eq!(bob.sightings.len(), Sightings::MAX);
    bob.sightings.glance(bob.now, &name(), &version);
    assert_eq!(bob.sightings.len(), Sightings::MAX, "a page crowds nobody out");
    bob.sightings.see(bob.now, &name(), Some(&version));
    assert_eq!(bob.sightings.len(), Sightings::MAX - Sightings::MAX / 8 + 1);
    bob.wait(500);
    let remaining = |number: usize| bob.sightings.lease(bob.now, &lease(number), &version).remaining;
    assert_eq!(remaining(1), 1_100 * MS, "forgotten: it begins to wait anew");
    assert!(remaining(0) <= 600 * MS && remaining(Sightings::MAX - 1) <= 600 * MS);
}

#[test]
fn what_a_watch_tells_counts_from_when_it_was_told() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(300);
    ada.renew(&mut shelf, &request(1), grant.token);
    let version = shelf.records[&name()].clone();
    bob.sightings.see(bob.now, &name(), Some(&version));
    bob.wait(800);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 300 * MS);
}

#[test]
fn an_old_version_that_a_lagging_replica_shows_is_never_claimed() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let stale = shelf.serve(Round::acquire(request(2)).next()).unwrap();
    ada.renew(&mut shelf, &request(1), grant.token);
    for _ in 0..3 {
        bob.wait(1_100);
        let mut round = Round::acquire(request(2));
        round.take_in(bob.now, stale.clone(), &mut bob.sightings);
        let answer = bob.run(&mut shelf, round).unwrap();
        assert!(matches!(answer, Acquired::Held(_)), "{answer:?}");
    }
}

#[test]
fn a_record_that_was_removed_and_made_again_is_observed_from_the_beginning() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(600);
    // The same attempt again: the new record says the very same, under another revision.
    shelf.records.clear();
    ada.take(&mut shelf, &request(1));
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn a_removal_that_was_seen_ends_the_observation_even_if_the_revision_comes_again() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(600);
    bob.sightings.see(bob.now, &name(), None);
    assert_eq!(bob.be_refused(&mut shelf, &request(2)).remaining, 1_100 * MS);
}

#[test]
fn nothing_is_known_of_a_version_that_was_not_seen() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    ada.renew(&mut shelf, &request(1), grant.token);
    bob.wait(600);
    let lease = bob.sightings.lease(bob.now, &name(), &shelf.records[&name()]);
    assert_eq!((lease.remaining, lease.renewed_ago), (1_100 * MS, Duration::ZERO));
}

#[test]
fn ages_count_from_the_first_sight_of_the_term_and_of_the_renewal() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(400);
    ada.renew(&mut shelf, &request(1), grant.token);
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(1_300);
    let lease = bob.lease(&mut shelf);
    assert_eq!((lease.held_for, lease.renewed_ago), (1_700 * MS, 1_300 * MS));
    let before = bob.take(&mut shelf, &request(2)).predecessor.unwrap();
    assert_eq!((before.end, before.vacant_for), (End::Expired, 300 * MS));
}

/// A process that has just started has seen nothing: without them it would take every term for new.
#[test]
fn ages_go_on_from_what_the_store_told_at_the_first_sight_and_decide_nothing() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let tells = |shelf: &mut Shelf, held_for, renewed_ago| {
        let version = shelf.records.get_mut(&name()).unwrap();
        let (held_for, renewed_ago) = (held_for * MS, renewed_ago * MS);
        version.ages = Some(Ages {
            held_for,
            renewed_ago,
        });
    };
    tells(&mut shelf, 90_000, 40_000);
    let ages = |lease: Lease| (lease.held_for, lease.renewed_ago);
    let lease = bob.be_refused(&mut shelf, &request(2));
    assert_eq!(lease.remaining, 1_100 * MS, "no age shortens the wait");
    assert_eq!(ages(lease), (90_000 * MS, 40_000 * MS));
    bob.wait(300);
    // Its clock is set back, and somebody writes a wish.
    tells(&mut shelf, 0, 0);
    shelf.records.get_mut(&name()).unwrap().entry.asked_to_step_down = true;
    assert_eq!(ages(bob.lease(&mut shelf)), (90_300 * MS, 40_300 * MS));
    ada.renew(&mut shelf, &request(1), grant.token);
    tells(&mut shelf, 7, 200_000);
    // What is written since the last look is no older than that, whatever the clocks say.
    assert_eq!(ages(bob.lease(&mut shelf)), (90_300 * MS, Duration::ZERO));
    let mut cleo = Observer::new();
    tells(&mut shelf, 90_300, 200_000);
    assert_eq!(
        ages(cleo.lease(&mut shelf)),
        (90_300 * MS, 90_300 * MS),
        "no renewal is older than its term"
    );
}

#[test]
fn the_holder_of_a_lease_that_was_seen_to_expire_is_not_asked() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    ada.wait(1_100);
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    assert_eq!(ada.run(&mut shelf, Round::ask(ask)), Ok(Asked::NotHeld));
}
