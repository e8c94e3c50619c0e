//! What Tenure keeps by itself stands beside the users' leases: one of these may have the very name of a slot
//! or a place.
use crate::harness::{PATIENCE, Site, long_timing, soon};
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Attempt, CandidateId, Lease, Note, Release, Released};
use tenure::tooling::{self, History, NotedTerm, Standby, TERMS_KEPT, TermEnd};
use tenure::{
    Authority, Election, Fairness, FencingToken, LeaseName, LockManager, Priority, SharedStore, Ttl,
};
use tenure_testkit::eventually_async;

const SLOT: &str = "school/terms/07";

/// Terms after which each slot was used again.
const MANY: u64 = 2 * TERMS_KEPT as u64 + 5;

fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn history(store: &SharedStore) -> History {
    History::new(name("school"), store.clone())
}

async fn begin(store: &SharedStore, number: u64) -> Option<NotedTerm> {
    history(store).begin(&id("head"), token(number)).await.unwrap()
}

async fn end(store: &SharedStore, noted: NotedTerm) {
    let end = TermEnd::new(Duration::from_millis(5), "given back");
    history(store).end(noted, &end).await.unwrap();
}

/// So many terms, with tokens from this number on.
async fn terms(store: &SharedStore, from: u64, number: u64) {
    for term in from..from + number {
        let noted = begin(store, term).await.expect("a slot");
        end(store, noted).await;
    }
}

/// The tokens of the terms that are kept, the first one first.
async fn kept(store: &SharedStore) -> Vec<u64> {
    let terms = history(store).read().await.unwrap();
    terms.iter().rev().map(|term| term.token.number()).collect()
}

/// Takes a lease with a plain request, and gives it back.
async fn take_and_give_back(store: &SharedStore, lease: &str, holder: &str, note: &str) {
    let acquire = Acquire {
        name: name(lease),
        candidate: tooling::candidate(id(holder)),
        attempt: Attempt::FIRST,
        ttl: Ttl::from_secs(30).unwrap(),
        note: Note::new(note).unwrap(),
    };
    let Acquired::Granted(grant) = store.acquire(&acquire).await.unwrap() else {
        panic!("{lease} is held");
    };
    let release = Release {
        name: acquire.name,
        incarnation: acquire.candidate.incarnation,
        token: grant.token,
        attempt: acquire.attempt,
    };
    let released = store.release(&[release]).await.remove(0).unwrap();
    assert_eq!(released, Released::Vacated);
}

fn user(site: &Site, lease: &str, candidate: &str) -> Election {
    let builder = Election::builder(lease, site.store());
    builder
        .candidate(candidate)
        .timing(long_timing())
        .build()
        .unwrap()
}

fn unchanged(now: &Lease, before: &Lease) {
    let told = |lease: &Lease| (lease.token, lease.terms, lease.holder.clone(), lease.note.clone());
    assert_eq!(told(now), told(before));
    assert!(!History::is_kept_by_tenure(now), "{now:?}");
}

#[tokio::test]
async fn a_users_lease_with_the_name_of_a_slot_is_never_used_held_or_free() {
    let site = Site::new();
    let store = site.store();
    let election = user(&site, SLOT, "pupil");
    let leadership = soon("the user's lease", election.campaign()).await.unwrap();
    let held = site.record(SLOT).await.unwrap();
    terms(&store, 1, MANY).await;
    unchanged(&site.record(SLOT).await.unwrap(), &held);
    leadership.step_down().await;
    terms(&store, 1 + MANY, MANY).await;
    unchanged(&site.record(SLOT).await.unwrap(), &held);
    let last: Vec<u64> = (1..=2 * MANY).rev().take(usize::from(TERMS_KEPT) - 1).collect();
    assert!(kept(&store).await.iter().rev().eq(&last), "all other slots");
}

#[tokio::test]
async fn a_user_who_takes_the_name_of_a_used_slot_gets_it_for_good() {
    let site = Site::new();
    let store = site.store();
    terms(&store, 1, MANY).await;
    let before = site.record(SLOT).await.unwrap();
    assert!(History::is_kept_by_tenure(&before));
    let election = user(&site, SLOT, "pupil");
    let leadership = soon("the user's lease", election.campaign()).await.unwrap();
    assert!(leadership.token() > before.token);
    leadership.step_down().await;
    let taken = site.record(SLOT).await.unwrap();
    terms(&store, 1 + MANY, MANY).await;
    unchanged(&site.record(SLOT).await.unwrap(), &taken);
    assert_eq!(kept(&store).await.len(), usize::from(TERMS_KEPT) - 1);
}

#[tokio::test]
async fn what_a_user_has_taken_since_a_term_began_is_not_written_when_it_ends() {
    let site = Site::new();
    let store = site.store();
    let noted = begin(&store, 1).await.unwrap();
    let slot = "school/terms/00";
    assert!(History::is_kept_by_tenure(&site.record(slot).await.unwrap()));
    let election = user(&site, slot, "pupil");
    let leadership = soon("the user's lease", election.campaign()).await.unwrap();
    leadership.step_down().await;
    let taken = site.record(slot).await.unwrap();
    end(&store, noted).await;
    unchanged(&site.record(slot).await.unwrap(), &taken);
    assert_eq!(kept(&store).await, Vec::<u64>::new());
}

/// Of 1,200 leases between the slots, a request for a thousand shows no slot but the first.
#[tokio::test]
async fn a_users_lease_behind_more_than_can_be_read_is_not_used() {
    let site = Site::new();
    let store = site.store();
    take_and_give_back(&store, SLOT, "pupil", "").await;
    let taken = site.record(SLOT).await.unwrap();
    for pupil in 0..1_200 {
        let between = format!("school/terms/00/{pupil}");
        take_and_give_back(&store, &between, "pupil", "").await;
    }
    terms(&store, 1, MANY).await;
    unchanged(&site.record(SLOT).await.unwrap(), &taken);
    assert_eq!(kept(&store).await, [MANY]);
}

/// A binary that is older, or newer, must know a record again: else it would neither tell of the term nor use
/// the slot.
#[tokio::test]
async fn the_notes_of_other_versions_are_known_again() {
    let site = Site::new();
    let store = site.store();
    let notes = ["4 began", "5 ended 20 given back: it was done", "6 ended 20 "];
    for (slot, note) in (0..).zip(notes) {
        let record = format!("school/terms/{slot:02}");
        take_and_give_back(&store, &record, "head", note).await;
        assert!(History::is_kept_by_tenure(&site.record(&record).await.unwrap()));
    }
    assert_eq!(kept(&store).await, [4, 5, 6]);
    terms(&store, 7, MANY).await;
    assert_eq!(kept(&store).await.len(), usize::from(TERMS_KEPT));
}

/// Who waits for a lease in order.
async fn waiting(site: &Site, lease: &str) -> Vec<String> {
    let standbys = Standby::list(&site.store(), &name(lease)).await.unwrap();
    standbys
        .iter()
        .map(|standby| standby.candidate().to_string())
        .collect()
}

fn fair(site: &Site, candidate: &str, priority: u16) -> LockManager {
    let builder = site.manager_builder(candidate).fairness(Fairness::Fair);
    builder
        .priority(Priority::new(priority).unwrap())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_users_lease_with_the_name_of_a_place_holds_nobody_up_and_is_not_called() {
    let site = Site::new();
    let place = "job/candidates/5/eu";
    let election = user(&site, place, "host-1");
    let leadership = soon("the user's lease", election.campaign()).await.unwrap();
    let held = site.record(place).await.unwrap();
    assert_eq!(waiting(&site, "job").await, Vec::<String>::new());
    let one = fair(&site, "one", 1);
    let turn = soon("the turn", one.turn("job")).await.unwrap();
    assert_eq!(waiting(&site, "job").await, ["one"]);
    assert!(!turn.is_overtaken().await.unwrap());
    drop(turn);
    let mut lock = soon("the lock", one.lock("job")).await.unwrap();
    soon("its release", lock.release()).await;
    // Its place was left, and is left behind: of those who wait there is nobody.
    eventually_async(PATIENCE, "an empty queue", || async {
        waiting(&site, "job").await.is_empty()
    })
    .await;
    drop(
        soon("a look", fair(&site, "two", 1).try_lock("job"))
            .await
            .unwrap(),
    );
    unchanged(&site.record(place).await.unwrap(), &held);
    let left = site.record("job/candidates/1/one").await.unwrap();
    assert!(History::is_kept_by_tenure(&left));
    leadership.step_down().await;
}

#[tokio::test]
async fn a_user_who_takes_the_name_of_a_place_gets_it_and_waits_for_nothing_by_it() {
    let site = Site::new();
    let place = "job/candidates/5/eu";
    let eu = fair(&site, "eu", 5);
    drop(soon("the turn", eu.turn("job")).await.unwrap());
    let left = site.record(place).await.unwrap();
    assert!(History::is_kept_by_tenure(&left));
    let election = user(&site, place, "host-1");
    let leadership = soon("the user's lease", election.campaign()).await.unwrap();
    assert!(leadership.token() > left.token);
    let taken = site.record(place).await.unwrap();
    assert_eq!(waiting(&site, "job").await, Vec::<String>::new());
    leadership.step_down().await;
    unchanged(&site.record(place).await.unwrap(), &taken);
}

/// A lease that is waited for may have the name of a place itself.
#[tokio::test]
async fn a_place_is_in_the_queue_of_its_own_lease_alone() {
    let site = Site::new();
    let lease = "job/candidates/5/eu";
    let manager = fair(&site, "one", 1);
    let turn = soon("the turn", manager.turn(lease)).await.unwrap();
    assert_eq!(waiting(&site, lease).await, ["one"]);
    assert_eq!(waiting(&site, "job").await, Vec::<String>::new());
    let place = site.record("job/candidates/5/eu/candidates/1/one").await.unwrap();
    let (read, standby) = Standby::read(&place).unwrap();
    assert_eq!((read.as_str(), standby.candidate().as_str()), (lease, "one"));
    drop(turn);
}

#[tokio::test]
async fn only_what_tenure_writes_is_a_place() {
    let site = Site::new();
    let store = site.store();
    for priority in ["05", "+5", "1001", "five", ""] {
        let lease = format!("job/candidates/{priority}/eu").replace("//", "/");
        take_and_give_back(&store, &lease, "eu", "").await;
        let record = site.record(&lease).await.unwrap();
        assert!(!History::is_kept_by_tenure(&record), "{lease}");
    }
    take_and_give_back(&store, "job/candidates/5/eu/west", "eu/west", "").await;
    let record = site.record("job/candidates/5/eu/west").await.unwrap();
    assert!(History::is_kept_by_tenure(&record), "an id may have parts");
}

#[tokio::test]
async fn an_end_is_read_as_it_was_noted_and_as_older_versions_note_it() {
    let (site, led) = (Site::new(), Duration::from_millis(5));
    let store = site.store();
    let old = "given back: the command ended with exit status: 3";
    take_and_give_back(&store, "school/terms/00", "head", &format!("1 ended 5 {old}")).await;
    let mut expected = vec![TermEnd::new(led, old)];
    for end in [
        TermEnd::new(led, "given back").exit_code(Some(3)),
        TermEnd::new(led, "exit=none of this is a code"),
        TermEnd::new(led, "").exit_code(Some(0)),
        TermEnd::new(led, "given back").exit_code(Some(3)).left(Some(2)),
        TermEnd::new(led, "").exit_code(Some(0)).left(Some(0)),
        TermEnd::new(led, "left=2 is no number of processes"),
    ] {
        let number = u64::try_from(expected.len()).unwrap() + 1;
        let noted = begin(&store, number).await.unwrap();
        history(&store).end(noted, &end).await.unwrap();
        expected.push(end);
    }
    let terms = history(&store).read().await.unwrap();
    let ends: Vec<_> = terms.into_iter().rev().filter_map(|term| term.end).collect();
    assert_eq!(ends, expected);
    // Older versions read everything behind the time as words.
    let record = site.record("school/terms/01").await.unwrap();
    assert_eq!(record.note.as_str(), "2 ended 5 exit=3 given back");
}

/// A closed election renews a term that somebody still has: its end is yet to be noted.
#[tokio::test]
async fn keeping_the_history_ends_with_the_last_leadership_and_not_at_the_close_before_that() {
    let site = Site::new();
    let election = Election::builder("job", site.store()).timing(long_timing());
    let election = election.build().unwrap();
    let keeping = tokio::spawn(election.keep_history());
    let leadership = soon("the term", election.campaign()).await.unwrap();
    // It waits for a ttl, by which the other has long ended if it does at the close.
    let a_moment = Duration::from_millis(300);
    assert!(tokio::time::timeout(a_moment, election.close()).await.is_err());
    assert!(!keeping.is_finished() && leadership.authority() != Authority::None);
    leadership.step_down().await;
    soon("the last note", keeping).await.unwrap();
    let terms = History::new(name("job"), site.store()).read().await.unwrap();
    let end = terms[0].end.as_ref().map(|end| end.words.as_str());
    assert_eq!(end, Some("given back"));
}

#[tokio::test]
async fn an_election_of_the_library_has_its_terms_noted_where_it_is_asked_to() {
    let site = Site::new();
    let election = site.election("first");
    let keeping = tokio::spawn(election.keep_history());
    let first = soon("the first term", election.campaign()).await.unwrap();
    let token = first.token();
    first.step_down().await;
    // The second is broken by somebody else.
    let second = soon("the second term", election.campaign()).await.unwrap();
    let told = site.record("job").await.unwrap();
    let release = Release {
        name: told.name,
        incarnation: told.holder.incarnation,
        token: told.token,
        attempt: told.attempt,
    };
    site.store().release(&[release]).await.remove(0).unwrap();
    soon("its loss", second.lost()).await;
    drop(second);
    election.close().await;
    soon("the last note", keeping).await.unwrap();
    let terms = History::new(name("job"), site.store()).read().await.unwrap();
    let ends: Vec<&str> = terms
        .iter()
        .map(|term| term.end.as_ref().map_or("none", |end| &end.words))
        .collect();
    assert!(
        ends[0].starts_with("lost: ") && ends[1] == "given back",
        "{ends:?}"
    );
    assert_eq!((terms.len(), terms[1].token), (2, token));
    assert!(terms.iter().all(|term| term.holder.as_str() == "first"));
}
