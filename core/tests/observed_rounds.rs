//! One request on its way through a store that only compares and swaps: what it reads, writes and answers,
//! and what it makes of trouble.
use crate::observed::{Observer, Shelf, by_attempt, name, release, renewal, request};
use tenure_core::{
    Acquired, Ask, Asked, CONFLICTS_MAX, Certainty, End, Fault, FencingToken, Moment, Need, Note, Reading,
    Released, Renewed, Response, Revision, Round, Sightings, StoreError, Wish, Written,
};

#[test]
fn a_grant_is_read_then_created_and_a_renewal_swapped() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mut round = Round::acquire(request(1));
    assert_eq!(round.next(), Need::Read(name()));
    ada.step(&mut shelf, &mut round);
    let Need::Create(_, entry) = round.next() else {
        panic!("{round:?}")
    };
    assert_eq!((entry.renewals, entry.terms, entry.ttl), (0, 1, request(1).ttl));
    ada.step(&mut shelf, &mut round);
    let Need::Done(Ok(Acquired::Granted(grant))) = round.next() else {
        panic!("{round:?}")
    };
    let mut round = Round::renew(renewal(&request(1), grant.token));
    ada.step(&mut shelf, &mut round);
    let Need::Swap(_, revision, extended) = round.next() else {
        panic!("{round:?}")
    };
    assert_eq!(revision, Revision::from(1));
    assert_eq!(extended.renewals, 1, "others must see that the holder lives");
}

#[test]
fn the_same_attempt_gets_the_same_token_and_is_extended() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let first = ada.take(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    let again = ada.take(&mut shelf, &request(1));
    assert_eq!((again.token, again.again, again.terms), (first.token, true, 1));
    bob.wait(1_100);
    bob.be_refused(&mut shelf, &request(2));
}

#[test]
fn a_later_attempt_takes_over_at_once_and_an_earlier_one_is_superseded() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let old = ada.take(&mut shelf, &by_attempt(&request(1), 2));
    let new = ada.take(&mut shelf, &by_attempt(&request(1), 3));
    assert!(new.token > old.token && !new.again);
    assert_eq!(
        new.predecessor.unwrap().end,
        End::Released,
        "given up for a later attempt"
    );
    let late = by_attempt(&request(1), 2);
    assert_eq!(ada.acquire(&mut shelf, &late), Acquired::Superseded);
    ada.run(
        &mut shelf,
        Round::release(release(&by_attempt(&request(1), 3), new.token)),
    )
    .unwrap();
    for attempt in [2, 3] {
        let late = by_attempt(&request(1), attempt);
        assert_eq!(ada.acquire(&mut shelf, &late), Acquired::Superseded, "{attempt}");
    }
}

#[test]
fn an_earlier_attempt_is_superseded_after_expiry_too() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    ada.take(&mut shelf, &by_attempt(&request(1), 2));
    ada.wait(1_100);
    assert_eq!(ada.acquire(&mut shelf, &request(1)), Acquired::Superseded);
    assert!(!ada.take(&mut shelf, &by_attempt(&request(1), 2)).again);
}

#[test]
fn a_released_lease_is_granted_at_once_and_a_release_may_be_repeated() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let old = ada.take(&mut shelf, &request(1));
    for _ in 0..2 {
        let answer = ada.run(&mut shelf, Round::release(release(&request(1), old.token)));
        assert_eq!(answer, Ok(Released::Vacated));
    }
    let new = bob.take(&mut shelf, &request(2));
    assert!(new.token > old.token);
    let answer = ada.run(&mut shelf, Round::release(release(&request(1), old.token)));
    assert!(matches!(answer, Ok(Released::NotYours(Some(_)))), "{answer:?}");
}

#[test]
fn a_wish_is_told_with_the_renewal_and_ends_with_the_term() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    for _ in 0..2 {
        assert_eq!(ada.run(&mut shelf, Round::ask(ask.clone())), Ok(Asked::Noted));
    }
    let Renewed::Extended { wish, .. } = ada.renew(&mut shelf, &request(1), grant.token) else {
        panic!("the renewal was lost")
    };
    assert_eq!(wish, Wish::StepDown);
    let new = ada.take(&mut shelf, &by_attempt(&request(1), 2));
    assert!(!ada.lease(&mut shelf).asked_to_step_down);
    assert_eq!(
        ada.run(&mut shelf, Round::ask(ask)),
        Ok(Asked::NotHeld),
        "not of term {new:?}"
    );
}

#[test]
fn of_two_who_have_both_read_that_there_is_no_record_one_wins() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let (mut first, mut second) = (Round::acquire(request(1)), Round::acquire(request(2)));
    ada.step(&mut shelf, &mut first);
    bob.step(&mut shelf, &mut second);
    assert!(matches!(ada.run(&mut shelf, first), Ok(Acquired::Granted(_))));
    assert!(matches!(bob.run(&mut shelf, second), Ok(Acquired::Held(_))));
}

#[test]
fn of_two_who_have_both_seen_a_lease_expire_one_wins() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    Observer::new().take(&mut shelf, &request(3));
    ada.be_refused(&mut shelf, &request(1));
    bob.be_refused(&mut shelf, &request(2));
    ada.wait(1_100);
    bob.wait(1_100);
    let (mut first, mut second) = (Round::acquire(request(1)), Round::acquire(request(2)));
    ada.step(&mut shelf, &mut first);
    bob.step(&mut shelf, &mut second);
    assert!(matches!(bob.run(&mut shelf, second), Ok(Acquired::Granted(_))));
    assert!(matches!(ada.run(&mut shelf, first), Ok(Acquired::Held(_))));
}

#[test]
fn a_renewal_that_was_overtaken_by_a_release_revives_nothing() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let mut late = Round::renew(renewal(&request(1), grant.token));
    ada.step(&mut shelf, &mut late);
    ada.run(&mut shelf, Round::release(release(&request(1), grant.token)))
        .unwrap();
    let answer = ada.run(&mut shelf, late);
    assert!(matches!(answer, Ok(Renewed::Lost(Some(lease))) if lease.released));
}

#[test]
fn a_renewal_that_met_a_wish_reads_again_and_tells_of_it() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let mut renewing = Round::renew(renewal(&request(1), grant.token));
    ada.step(&mut shelf, &mut renewing);
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    Observer::new().run(&mut shelf, Round::ask(ask)).unwrap();
    let answer = ada.run(&mut shelf, renewing);
    assert!(
        matches!(
            answer,
            Ok(Renewed::Extended {
                wish: Wish::StepDown,
                ..
            })
        ),
        "{answer:?}"
    );
}

#[test]
fn a_round_that_meets_nothing_but_conflicts_ends_and_has_changed_nothing() {
    let mut sightings = Sightings::new(500);
    let mut round = Round::acquire(request(1));
    let nothing = Reading {
        found: None,
        token_floor: 0,
    };
    for conflict in 0..=CONFLICTS_MAX {
        assert!(matches!(round.next(), Need::Read(_)), "conflict {conflict}");
        round.take_in(Moment::ZERO, Response::Read(Ok(nothing.clone())), &mut sightings);
        let conflict = Response::Written(Ok(Written::Conflict));
        round.take_in(Moment::ZERO, conflict, &mut sightings);
    }
    let Need::Done(Err(error)) = round.next() else {
        panic!("it goes on: {round:?}")
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Busy, Certainty::NotApplied)
    );
    assert!(error.message.contains("ledger"), "{error}");
}

#[test]
fn a_write_whose_reply_was_lost_is_unknown_and_counts_as_seen_by_nobody() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mut round = Round::acquire(request(1));
    ada.step(&mut shelf, &mut round);
    shelf.serve(round.next()).unwrap();
    let lost = StoreError::unknown(Fault::TimedOut, "no answer within 1 s");
    round.take_in(ada.now, Response::Written(Err(lost.clone())), &mut ada.sightings);
    assert_eq!(round.next(), Need::Done(Err(lost)));
    assert!(ada.sightings.is_empty());
    let again = ada.take(&mut shelf, &request(1));
    assert!(again.again, "the same attempt finds its own");
}

#[test]
fn a_failed_reading_has_changed_nothing_whatever_the_store_says() {
    let mut sightings = Sightings::new(500);
    let mut round = Round::renew(renewal(&request(1), FencingToken::new(1).unwrap()));
    let error = StoreError::unknown(Fault::Unreachable, "no connection");
    round.take_in(Moment::ZERO, Response::Read(Err(error)), &mut sightings);
    let Need::Done(Err(error)) = round.next() else {
        panic!("{round:?}")
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied)
    );
}

#[test]
fn a_response_that_arrives_twice_is_ignored() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mut round = Round::acquire(request(1));
    let reading = shelf.serve(round.next()).unwrap();
    round.take_in(ada.now, reading.clone(), &mut ada.sightings);
    let before = round.clone();
    round.take_in(ada.now, reading, &mut ada.sightings);
    assert_eq!(round, before);
    let written = shelf.serve(round.next()).unwrap();
    round.take_in(ada.now, written, &mut ada.sightings);
    let before = round.clone();
    round.take_in(
        ada.now,
        Response::Written(Ok(Written::Conflict)),
        &mut ada.sightings,
    );
    assert_eq!(round, before);
}

#[test]
fn a_token_is_not_below_what_the_store_says_of_time() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    shelf.token_floor = 1_000;
    let first = ada.take(&mut shelf, &request(1));
    assert_eq!(first.token.number(), 1_000);
    let second = ada.take(&mut shelf, &by_attempt(&request(1), 2));
    assert_eq!(second.token.number(), 1_001);
    shelf.records.clear();
    shelf.token_floor = 2_000;
    assert_eq!(ada.take(&mut shelf, &request(1)).token.number(), 2_000);
}

#[test]
fn the_last_token_has_no_successor() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    ada.take(&mut shelf, &request(1));
    let record = shelf.records.get_mut(&name()).unwrap();
    record.entry.token = FencingToken::MAX;
    let before = shelf.records.clone();
    let error = ada
        .run(&mut shelf, Round::acquire(by_attempt(&request(1), 2)))
        .unwrap_err();
    assert_eq!(error.certainty, Certainty::NotApplied);
    assert!(error.message.contains("ledger"), "{error}");
    assert_eq!(shelf.records, before);
}

#[test]
fn every_write_of_a_record_differs_from_every_other() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mut written = Vec::new();
    let mut note = |shelf: &Shelf| written.push(shelf.records[&name()].entry.clone());
    let noting = tenure_core::Acquire {
        note: Note::new("pid 7").unwrap(),
        ..request(1)
    };
    for attempt in 1..=3 {
        let request = by_attempt(&noting, attempt);
        let grant = ada.take(&mut shelf, &request);
        note(&shelf);
        ada.take(&mut shelf, &request);
        note(&shelf);
        for _ in 0..3 {
            ada.renew(&mut shelf, &request, grant.token);
            note(&shelf);
        }
        let ask = Ask {
            name: name(),
            token: grant.token,
        };
        ada.run(&mut shelf, Round::ask(ask)).unwrap();
        note(&shelf);
        ada.run(&mut shelf, Round::release(release(&request, grant.token)))
            .unwrap();
        note(&shelf);
    }
    let writes = written.len();
    for (place, one) in written.iter().enumerate() {
        assert!(
            !written[place + 1..].contains(one),
            "write {place} of {writes} was repeated"
        );
    }
}

#[test]
fn only_the_very_term_is_renewed_and_released() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let mine = by_attempt(&request(1), 5);
    let grant = ada.take(&mut shelf, &mine);
    let higher = FencingToken::new(grant.token.number() + 1).unwrap();
    let before = shelf.records.clone();
    for (other, token) in [
        (by_attempt(&mine, 4), grant.token),
        (by_attempt(&mine, 6), grant.token),
        (by_attempt(&request(2), 5), grant.token),
        (mine, higher),
    ] {
        let renewed = ada.run(&mut shelf, Round::renew(renewal(&other, token)));
        assert!(matches!(renewed, Ok(Renewed::Lost(Some(_)))), "{renewed:?}");
        let released = ada.run(&mut shelf, Round::release(release(&other, token)));
        assert!(
            matches!(released, Ok(Released::NotYours(Some(_)))),
            "{released:?}"
        );
    }
    assert_eq!(shelf.records, before);
}

#[test]
fn a_repeated_wish_or_release_writes_nothing() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    ada.run(&mut shelf, Round::ask(ask.clone())).unwrap();
    let before = shelf.records.clone();
    ada.run(&mut shelf, Round::ask(ask)).unwrap();
    assert_eq!(shelf.records, before);
    let over = release(&request(1), grant.token);
    ada.run(&mut shelf, Round::release(over.clone())).unwrap();
    let before = shelf.records.clone();
    ada.run(&mut shelf, Round::release(over)).unwrap();
    assert_eq!(shelf.records, before);
}
