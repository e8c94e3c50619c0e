//! What a process has written last, it renews and releases without reading it; and nothing else.
use crate::observed::{Observer, Shelf, by_attempt, name, release, renewal, request};
use tenure_core::{Ask, Asked, Need, Released, Renewed, Revision, Round, Wish};

#[test]
fn what_this_process_has_written_last_is_renewed_and_released_without_a_reading() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    for revision in 1..=3 {
        let mut round = ada.knowing(Round::renew(renewal(&request(1), grant.token)));
        assert!(
            matches!(round.next(), Need::Swap(_, over, _) if over == Revision::from(revision)),
            "{round:?}"
        );
        ada.step(&mut shelf, &mut round);
        assert!(
            matches!(round.next(), Need::Done(Ok(Renewed::Extended { .. }))),
            "{round:?}"
        );
    }
    let mut round = ada.knowing(Round::release(release(&request(1), grant.token)));
    assert!(matches!(round.next(), Need::Swap(..)), "{round:?}");
    ada.step(&mut shelf, &mut round);
    assert_eq!(round.next(), Need::Done(Ok(Released::Vacated)));
    // It holds nothing any more: somebody else may have taken it.
    let round = ada.knowing(Round::release(release(&request(1), grant.token)));
    assert_eq!(round.next(), Need::Read(name()));
}

#[test]
fn what_somebody_else_has_written_since_is_read_before_it_is_judged() {
    let (mut shelf, mut ada, mut bob) = (Shelf::default(), Observer::new(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    assert_eq!(bob.run(&mut shelf, Round::ask(ask)), Ok(Asked::Noted));
    let mut round = ada.knowing(Round::renew(renewal(&request(1), grant.token)));
    assert!(matches!(round.next(), Need::Swap(..)), "{round:?}");
    ada.step(&mut shelf, &mut round);
    assert_eq!(round.next(), Need::Read(name()), "it was written over");
    let told = ada.run(&mut shelf, round);
    assert!(
        matches!(
            told,
            Ok(Renewed::Extended {
                wish: Wish::StepDown,
                ..
            })
        ),
        "{told:?}"
    );
    // And what was seen is not believed to be its own: a taken lease is lost by reading, not by remembering.
    bob.wait(1_100);
    bob.be_refused(&mut shelf, &request(2));
    bob.wait(1_100);
    bob.take(&mut shelf, &request(2));
    ada.lease(&mut shelf);
    let round = ada.knowing(Round::renew(renewal(&request(1), grant.token)));
    assert_eq!(round.next(), Need::Read(name()));
    let lost = ada.run(&mut shelf, round);
    assert!(matches!(lost, Ok(Renewed::Lost(Some(_)))), "{lost:?}");
}

#[test]
fn what_has_run_out_by_its_own_reckoning_is_read() {
    let (mut shelf, mut ada) = (Shelf::default(), Observer::new());
    let grant = ada.take(&mut shelf, &request(1));
    ada.wait(1_100);
    let round = ada.knowing(Round::renew(renewal(&request(1), grant.token)));
    assert_eq!(round.next(), Need::Read(name()));
    // A new term is never decided from memory: its token needs the store's floor.
    let round = ada.knowing(Round::acquire(by_attempt(&request(1), 2)));
    assert_eq!(round.next(), Need::Read(name()));
}
