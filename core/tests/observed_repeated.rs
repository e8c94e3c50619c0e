//! A store that has lost what it had confirmed numbers other writes as it had numbered those.
use crate::observed::{Observer, Shelf, by_attempt, name, release, renewal, request};
use std::time::Duration;
use tenure_core::{Certainty, Fault, FencingToken, Need, Released, Renewed, Round, Version};

const MS: Duration = Duration::from_millis(1);

/// The store without anything of what it had, after this token was granted: its revisions begin again.
fn made_again(token: FencingToken) -> Shelf {
    let mut again = Shelf::default();
    again.token_floor = token.number() + 1;
    again
}

#[test]
fn another_write_of_the_same_revision_is_observed_from_the_beginning() {
    let (mut shelf, mut bob) = (Shelf::default(), Observer::new());
    let first = Observer::new().take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(600);
    // All is lost; the next term of somebody else's, and a release of it, begin with the same number.
    for released in [false, true] {
        let mut again = made_again(first.token);
        let mut eve = Observer::new();
        let term = eve.take(&mut again, &request(3));
        if released {
            let record = again.records.get_mut(&name()).unwrap();
            record.entry.released = true;
        }
        let version = again.records[&name()].clone();
        assert_eq!(version.revision, shelf.records[&name()].revision, "it came again");
        let unseen = bob.sightings.lease(bob.now, &name(), &version);
        assert_eq!(unseen.renewed_ago, Duration::ZERO, "of what was never seen");
        bob.sightings.see(bob.now, &name(), Some(&version));
        bob.wait(100);
        let lease = bob.sightings.lease(bob.now, &name(), &version);
        let remaining = if released { Duration::ZERO } else { 1_000 * MS };
        assert_eq!(
            (lease.renewed_ago, lease.remaining),
            (100 * MS, remaining),
            "{term:?}"
        );
    }
}

/// The answer to the renewal that was lost may be lost, too, and the next one may be over what was read or
/// over what was written last.
#[test]
fn renewal_that_is_repeated_after_it_was_lost_is_another_sign_of_life() {
    for (is_heard, is_read) in [(true, true), (false, true), (false, false)] {
        let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
        let mine = ada.take(&mut shelf, &request(1));
        let mut before = shelf.clone();
        let renew = || Round::renew(renewal(&request(1), mine.token));
        let mut lost = ada.knowing(renew());
        let response = shelf.serve(lost.next()).unwrap();
        if is_heard {
            lost.take_in(ada.now, response, &mut ada.sightings);
        }
        bob.lease(&mut shelf);
        bob.wait(600);
        let again = if is_read { renew() } else { ada.knowing(renew()) };
        let again = ada.run(&mut before, again);
        assert!(matches!(again, Ok(Renewed::Extended { .. })), "{again:?}");
        let (first, second) = (&shelf.records[&name()], &before.records[&name()]);
        assert_eq!(first.revision, second.revision, "it came again");
        let lease = bob.lease(&mut before);
        assert_eq!(lease.renewed_ago, Duration::ZERO, "{is_heard} {is_read}");
    }
}

#[test]
fn another_write_of_the_same_revision_is_not_taken_for_ones_own() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mine = ada.take(&mut shelf, &request(1));
    let mut again = made_again(mine.token);
    Observer::new().take(&mut again, &request(2));
    ada.lease(&mut again);
    let round = ada.knowing(Round::renew(renewal(&request(1), mine.token)));
    assert_eq!(round.next(), Need::Read(name()));
    let round = ada.knowing(Round::release(release(&request(1), mine.token)));
    assert_eq!(round.next(), Need::Read(name()));
}

#[test]
fn a_record_of_an_older_term_ends_no_later_one() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    ada.take(&mut shelf, &request(1));
    let older = shelf.records.clone();
    let mine = ada.take(&mut shelf, &by_attempt(&request(1), 2));
    let asked = by_attempt(&request(1), 2);
    let now = std::mem::replace(&mut shelf.records, older);
    let behind = ada.run(&mut shelf, Round::renew(renewal(&asked, mine.token)));
    let error = behind.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied),
        "{error}"
    );
    shelf.records = now;
    let renewed = ada.renew(&mut shelf, &asked, mine.token);
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

#[test]
fn a_record_of_an_older_term_keeps_no_later_one_from_being_given_back() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    ada.take(&mut shelf, &request(1));
    let older = shelf.records.clone();
    let asked = by_attempt(&request(1), 2);
    let mine = ada.take(&mut shelf, &asked);
    let now = std::mem::replace(&mut shelf.records, older.clone());
    let behind = ada.run(&mut shelf, Round::release(release(&asked, mine.token)));
    let error = behind.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied),
        "{error}"
    );
    assert_eq!(
        shelf.records[&name()].entry,
        older[&name()].entry,
        "it was written to"
    );
    shelf.records = now;
    let released = ada.run(&mut shelf, Round::release(release(&asked, mine.token)));
    assert_eq!(released, Ok(Released::Vacated));
}

#[test]
fn what_was_written_is_written_over_in_the_latest_epoch_in_which_it_was_seen() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mine = ada.take(&mut shelf, &request(1));
    let Version { revision, entry, .. } = shelf.records[&name()].clone();
    // A watch that is older than a connection tells after it, and what is read over it before.
    for (shown, known) in [(7, 7), (5, 7), (8, 8), (0, 8)] {
        let version = Version {
            revision: revision.clone().in_epoch(shown),
            entry: entry.clone(),
            ages: None,
        };
        ada.sightings.glance(ada.now, &name(), &version);
        let round = ada.knowing(Round::renew(renewal(&request(1), mine.token)));
        let Need::Swap(_, over, _) = round.next() else {
            panic!("{round:?}")
        };
        assert_eq!(over, revision.clone().in_epoch(known), "shown in {shown}");
    }
}
