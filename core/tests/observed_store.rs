//! The lease store over a store that only compares and swaps: when it looks at its clock, how it runs a
//! batch, what its watches tell and what they see.
use crate::observed::{Observer, RATE_ERROR_PPM, Shelf, by_attempt, name, release, renewal, request};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Change, Clock, CompareAndSwap, Durability, Entry, Fault,
    FencingToken, Finding, Floor, Interest, LeaseName, LeaseStore, Moment, Need, ObservedStore, Page,
    Reading, RecordEvent, RecordPage, RecordWatch, Released, Renew, Renewed, Response, Revision, Round,
    Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl, WatchEvent, WatchSource, Written,
};

const MS: Duration = Duration::from_millis(1);

/// What happens between a request's sending and its being served.
type OnTheWay = Box<dyn FnMut(&mut Shelf) + Send>;

/// A store whose requests take one turn each, with a hand on everything.
#[derive(Default)]
struct Bench {
    shelf: Mutex<Shelf>,
    now_ms: AtomicU64,
    on_the_way: Mutex<Option<OnTheWay>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    requests: AtomicUsize,
    floors: AtomicUsize,
    told: Mutex<VecDeque<RecordEvent>>,
}

impl Bench {
    async fn serve(&self, need: Need<()>) -> Response {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(now, Ordering::SeqCst);
        one_turn().await;
        let mut shelf = self.shelf.lock().unwrap();
        if let Some(on_the_way) = &mut *self.on_the_way.lock().unwrap() {
            on_the_way(&mut shelf);
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        shelf.serve(need).unwrap()
    }

    async fn write(&self, need: Need<()>) -> Result<Written, StoreError> {
        match self.serve(need).await {
            Response::Written(written) => written,
            Response::Read(_) => panic!("a write was asked for"),
        }
    }

    fn wait(&self, milliseconds: u64) {
        self.now_ms.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

async fn one_turn() {
    let mut turns = 0;
    poll_fn(|_| {
        turns += 1;
        if turns > 1 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Polls to the end: whoever is pending here is ready at the next turn.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
    }
    panic!("it did not end")
}

#[derive(Clone, Default)]
struct Handle(Arc<Bench>);

impl Clock for Handle {
    fn now(&self) -> Moment {
        Moment::from_millis(self.0.now_ms.load(Ordering::SeqCst))
    }
}

impl CompareAndSwap for Handle {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "bench",
            location: "memory".to_owned(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: WatchSource::Push,
            token_source: TokenSource::CounterAndClock,
            batch_max: NonZeroUsize::new(500).unwrap(),
            ttl_min: Ttl::from_millis(200).unwrap(),
            ttl_max: Ttl::from_secs(60).unwrap(),
        }
    }

    fn read<'a>(&'a self, name: &'a LeaseName, floor: Floor) -> Answer<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            if floor == Floor::Wanted {
                self.0.floors.fetch_add(1, Ordering::SeqCst);
            }
            match self.0.serve(Need::Read(name.clone())).await {
                Response::Read(reading) => reading,
                Response::Written(_) => panic!("a reading was asked for"),
            }
        })
    }

    fn create<'a>(
        &'a self,
        name: &'a LeaseName,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(self.0.write(Need::Create(name.clone(), entry.clone())))
    }

    fn swap<'a>(
        &'a self,
        name: &'a LeaseName,
        revision: &'a Revision,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(
            self.0
                .write(Need::Swap(name.clone(), revision.clone(), entry.clone())),
        )
    }

    fn list<'a>(&'a self, _page: &'a Page) -> Answer<'a, Result<RecordPage, StoreError>> {
        panic!("no page was asked for within its range")
    }

    fn watch<'a>(&'a self, _scope: &'a Scope) -> Answer<'a, Result<Box<dyn RecordWatch>, StoreError>> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn RecordWatch>) })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl RecordWatch for Handle {
    fn next(&mut self) -> Answer<'_, Result<RecordEvent, StoreError>> {
        let event = self.0.told.lock().unwrap().pop_front();
        Box::pin(async { event.ok_or_else(|| StoreError::not_applied(Fault::Unreachable, "nothing more")) })
    }
}

fn bench() -> (Handle, ObservedStore<Handle, Handle>) {
    let bench = Handle::default();
    let store = ObservedStore::new(bench.clone(), bench.clone(), RATE_ERROR_PPM);
    (bench, store)
}

fn remaining(store: &dyn LeaseStore) -> Duration {
    run(store.get(&name())).unwrap().unwrap().remaining
}

#[test]
fn the_clock_is_looked_at_after_the_answer_and_not_before_the_request() {
    let (bench, store) = bench();
    let late = bench.clone();
    // The request to read travels for 3 s; the lease is taken just before it arrives.
    *bench.0.on_the_way.lock().unwrap() = Some(Box::new(move |shelf| {
        late.0.wait(3_000);
        Observer::new().acquire(shelf, &request(1));
    }));
    assert_eq!(remaining(&store), 1_100 * MS);
    *bench.0.on_the_way.lock().unwrap() = None;
    assert_eq!(remaining(&store), 1_100 * MS, "nothing of the 3 s counts");
    bench.0.wait(1_100);
    assert_eq!(remaining(&store), Duration::ZERO);
}

#[test]
fn expiry_is_said_to_be_judged_by_observers() {
    let (_, store) = bench();
    assert_eq!(store.traits().timekeeper, Timekeeper::Observer);
    let findings = run(store.examine()).unwrap();
    assert_eq!(findings[0].subject, "observed time");
}

#[test]
fn the_token_floor_is_wanted_for_a_term_and_for_nothing_else() {
    let (bench, store) = bench();
    let Ok(Acquired::Granted(grant)) = run(store.acquire(&request(1))) else {
        panic!("it is free")
    };
    assert_eq!(bench.0.floors.load(Ordering::SeqCst), 1);
    remaining(&store);
    let ask = Ask {
        name: name(),
        token: grant.token,
    };
    assert_eq!(run(store.ask(&ask)), Ok(Asked::Noted));
    let renewed = run(store.renew(&[renewal(&request(1), grant.token)]));
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = run(store.release(&[release(&request(1), grant.token)]));
    assert_eq!(released[0], Ok(Released::Vacated));
    assert_eq!(
        bench.0.floors.load(Ordering::SeqCst),
        1,
        "no more than one term began"
    );
}

#[test]
fn stores_beside_each_other_share_what_they_have_seen() {
    let (bench, store) = bench();
    let beside = store.beside(bench.clone());
    Observer::new().acquire(&mut bench.0.shelf.lock().unwrap(), &request(1));
    assert_eq!(remaining(&store), 1_100 * MS);
    bench.0.wait(600);
    assert_eq!(remaining(&beside), 500 * MS, "the other has seen it 600 ms ago");
    bench.0.wait(500);
    assert_eq!(remaining(&beside), Duration::ZERO);
}

#[test]
fn a_batch_runs_together_within_a_bound_and_is_answered_in_its_order() {
    const LEASES: usize = 100;
    let (bench, store) = bench();
    let requests: Vec<Acquire> = (0..LEASES)
        .map(|number| Acquire {
            name: LeaseName::new(format!("lease-{number}")).unwrap(),
            ..request(1)
        })
        .collect();
    let mut renewals = Vec::new();
    for request in &requests {
        let Ok(Acquired::Granted(grant)) = run(store.acquire(request)) else {
            panic!("{request:?} was not granted")
        };
        renewals.push(renewal(request, grant.token));
    }
    renewals[7].incarnation = request(2).candidate.incarnation;
    renewals[50].ttl = Ttl::from_millis(100).unwrap();
    let answers = run(store.renew(&renewals));
    assert_eq!(answers.len(), LEASES);
    for (place, answer) in answers.iter().enumerate() {
        match place {
            7 => assert!(
                matches!(answer, Ok(Renewed::Lost(Some(lease))) if lease.name == renewals[7].name),
                "{answer:?}"
            ),
            50 => assert_eq!(answer.as_ref().unwrap_err().fault, Fault::Invalid),
            _ => assert!(
                matches!(answer, Ok(Renewed::Extended { .. })),
                "{place}: {answer:?}"
            ),
        }
    }
    let most = bench.0.most_under_way.load(Ordering::SeqCst);
    assert_eq!(most, 32, "requests under way at once");
}

#[test]
fn what_the_store_cannot_keep_is_refused_before_it_is_asked() {
    let (bench, store) = bench();
    for ttl in [Ttl::MIN, Ttl::MAX] {
        let error = run(store.acquire(&Acquire { ttl, ..request(1) })).unwrap_err();
        assert_eq!(error.fault, Fault::Invalid);
        assert!(error.message.contains("ledger"), "{error}");
    }
    for limit in [0, 1_001] {
        let page = Page::first("", limit);
        assert_eq!(run(store.list(&page)).unwrap_err().fault, Fault::Invalid);
    }
    assert_eq!(bench.0.requests.load(Ordering::SeqCst), 0);
}

/// Writes as another process, and lets the watch tell of it.
fn told_of(bench: &Handle, write: impl FnOnce(&mut Shelf)) {
    let mut shelf = bench.0.shelf.lock().unwrap();
    write(&mut shelf);
    let event = match shelf.records.get(&name()) {
        Some(version) => RecordEvent::Written {
            name: name(),
            version: version.clone(),
        },
        None => RecordEvent::Removed { name: name() },
    };
    bench.0.told.lock().unwrap().push_back(event);
}

#[test]
fn a_watch_tells_of_changes_and_not_of_renewals_and_sees_both() {
    let (bench, store) = bench();
    let mut watch = run(store.watch(&Scope::Name(name()), Interest::Everything)).unwrap();
    let mut ada = Observer::new();
    let mut token = None;
    told_of(&bench, |shelf| token = Some(ada.take(shelf, &request(1)).token));
    let token = token.unwrap();
    told_of(&bench, |shelf| {
        ada.renew(shelf, &request(1), token);
    });
    let ask = Ask { name: name(), token };
    told_of(&bench, |shelf| {
        ada.run(shelf, Round::ask(ask)).unwrap();
    });
    told_of(&bench, |_| {});
    told_of(&bench, |shelf| {
        ada.renew(shelf, &request(1), token);
    });
    // Of these two, only the last is told.
    let later = by_attempt(&request(1), 2);
    let next = ada.take(&mut bench.0.shelf.lock().unwrap(), &later).token;
    told_of(&bench, |shelf| {
        ada.run(shelf, Round::release(release(&later, next))).unwrap();
    });
    told_of(&bench, |shelf| shelf.records.clear());
    bench.0.told.lock().unwrap().push_back(RecordEvent::Gap);
    let changed = |change, token| WatchEvent::Changed {
        name: name(),
        change,
        token: Some(token),
    };
    let expected = [
        changed(Change::Taken, token),
        changed(Change::Asked, token),
        changed(Change::Taken, next),
        changed(Change::Vacated, next),
        changed(Change::Vacated, next),
        WatchEvent::Gap,
    ];
    for event in expected {
        assert_eq!(run(watch.next()).unwrap(), event);
    }
    assert!(run(watch.next()).is_err(), "and of nothing more");
}

#[test]
fn a_watch_never_tells_what_was_before_what_it_has_told() {
    let (bench, store) = bench();
    let mut watch = run(store.watch(&Scope::Name(name()), Interest::Everything)).unwrap();
    let mut ada = Observer::new();
    told_of(&bench, |shelf| {
        ada.take(shelf, &request(1));
    });
    told_of(&bench, |shelf| {
        ada.take(shelf, &by_attempt(&request(1), 2));
    });
    bench.0.told.lock().unwrap().swap(0, 1);
    let event = run(watch.next()).unwrap();
    assert!(
        matches!(event, WatchEvent::Changed { change: Change::Taken, token: Some(token), .. } if token.number() == 2),
        "{event:?}"
    );
    assert!(run(watch.next()).is_err(), "the first term is history");
}

#[test]
fn a_renewal_that_a_watch_has_seen_counts_from_then_and_not_from_the_next_look() {
    let (bench, store) = bench();
    let mut watch = run(store.watch(&Scope::Name(name()), Interest::Everything)).unwrap();
    let mut ada = Observer::new();
    let mut token = None;
    told_of(&bench, |shelf| token = Some(ada.take(shelf, &request(1)).token));
    run(watch.next()).unwrap();
    bench.0.wait(400);
    told_of(&bench, |shelf| {
        ada.renew(shelf, &request(1), token.unwrap());
    });
    assert!(run(watch.next()).is_err(), "a renewal is not told");
    bench.0.wait(700);
    assert_eq!(remaining(&store), 400 * MS);
}

#[test]
fn a_watch_that_begins_in_the_middle_of_a_term_is_silent_about_its_renewals() {
    let (bench, store) = bench();
    let mut ada = Observer::new();
    let token = ada.take(&mut bench.0.shelf.lock().unwrap(), &request(1)).token;
    let mut watch = run(store.watch(&Scope::Name(name()), Interest::Everything)).unwrap();
    told_of(&bench, |shelf| {
        ada.renew(shelf, &request(1), token);
    });
    assert!(run(watch.next()).is_err(), "a renewal is not told");
}

#[test]
fn a_batch_that_is_answered_at_once_is_answered_whole() {
    let (_, store) = bench();
    let refused = Ttl::from_millis(100).unwrap();
    let renewals: Vec<_> = (0..100)
        .map(|_| {
            let renewal = renewal(&request(1), FencingToken::new(1).unwrap());
            Renew {
                ttl: refused,
                ..renewal
            }
        })
        .collect();
    assert_eq!(run(store.renew(&renewals)).len(), 100);
}

#[test]
fn a_batch_without_news_waits_to_be_woken() {
    let (bench, store) = bench();
    let renewals: Vec<_> = (0..100)
        .map(|_| renewal(&request(1), FencingToken::new(1).unwrap()))
        .collect();
    let mut answers = pin!(store.renew(&renewals));
    let mut context = Context::from_waker(Waker::noop());
    assert!(answers.as_mut().poll(&mut context).is_pending());
    let sent = bench.0.requests.load(Ordering::SeqCst);
    assert_eq!(sent, 32, "asked again before anything had happened");
}
