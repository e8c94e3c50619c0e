//! Being woken: by file notification, and after a writer's sudden death.

use crate::common::{Asker, PATIENCE, Scratch, grant, name};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tenure_core::{
    Ask, Asked, Change, FencingToken, Interest, LeaseStore, Scope, Watch, WatchEvent, WatchSource,
};
use tenure_sqlite::SqliteStore;

fn wake_file(scratch: &Scratch) -> PathBuf {
    let mut path = scratch.file().into_os_string();
    path.push("-wake");
    path.into()
}

async fn next(watch: &mut Box<dyn Watch>) -> WatchEvent {
    tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("an event comes")
        .unwrap()
}

pub fn changed(lease: &str, change: Change, token: FencingToken) -> WatchEvent {
    WatchEvent::Changed {
        name: name(lease),
        change,
        token: Some(token),
    }
}

#[tokio::test]
async fn renewals_wake_nobody_and_a_release_does() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    assert_eq!(store.traits().watch, WatchSource::Push);
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    for _ in 0..20 {
        drop(store.renew(&[asker.renew("job", first.token)]).await);
        let silent = tokio::time::timeout(Duration::from_millis(5), watch.next()).await;
        assert!(silent.is_err(), "{silent:?}");
    }
    drop(store.release(&[asker.release("job", first.token)]).await);
    assert_eq!(
        next(&mut watch).await,
        changed("job", Change::Vacated, first.token)
    );
}

/// Changes that are told, one after the other.
const CHANGES: usize = 15;

/// Such a series is made again where the machine was too slow to tell.
const SERIES_MAX: usize = 5;

/// That most changes of one series were told by the file notification: `series` answers how long each took to
/// be told.
///
/// Without it a watch would still tell, by its check once a second: each change of each series nearly a
/// second late, as what was told before it was told by the check before.
async fn told_by_notification(mut series: impl AsyncFnMut() -> Vec<Duration>) {
    let mut all = Vec::new();
    for _ in 0..SERIES_MAX {
        let mut waits = series().await;
        waits.sort_unstable();
        if waits[CHANGES / 2] < Duration::from_millis(250) {
            return;
        }
        all.push(waits);
    }
    panic!("{all:?}");
}

/// That releases are told by notification; `before` each of them, something is done.
async fn releases_are_told_by_notification(scratch: &Scratch, before: impl Fn()) {
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    told_by_notification(async || told_between(&store, &mut watch, &before).await).await;
}

async fn told_between(store: &SqliteStore, watch: &mut Box<dyn Watch>, before: impl Fn()) -> Vec<Duration> {
    let mut asker = Asker::new("first");
    let mut waits = Vec::new();
    for _ in 0..CHANGES {
        let grant = grant(store, &asker, "job").await;
        assert_eq!(next(watch).await, changed("job", Change::Taken, grant.token));
        before();
        let began = Instant::now();
        drop(store.release(&[asker.release("job", grant.token)]).await);
        assert_eq!(next(watch).await, changed("job", Change::Vacated, grant.token));
        waits.push(began.elapsed());
        asker = asker.next_attempt();
    }
    waits
}

#[tokio::test]
async fn a_release_is_told_by_notification_and_not_by_the_slow_check() {
    releases_are_told_by_notification(&Scratch::new(), || {}).await;
}

/// A lock that changes hands in another process a thousand times a second wakes nobody here a thousand times.
#[tokio::test]
async fn terms_that_begin_wake_nobody_who_waits_for_an_end_and_a_release_does() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let mut asker = Asker::new("first");
    let mut token = grant(&store, &asker, "job").await.token;
    let mut watch = other.watch(&job, Interest::Ends).await.unwrap();
    let (mut told, began) = (0, Instant::now());
    for _ in 0..CHANGES {
        asker = asker.next_attempt();
        token = grant(&store, &asker, "job").await.token;
        let event = tokio::time::timeout(Duration::from_millis(10), watch.next()).await;
        told += u64::from(event.is_ok());
    }
    let checks = began.elapsed().as_secs() + 1;
    assert!(told <= checks, "{told} by more than the check once a second");
    told_by_notification(async || {
        let mut waits = Vec::new();
        for _ in 0..CHANGES {
            let began = Instant::now();
            drop(store.release(&[asker.release("job", token)]).await);
            while next(&mut watch).await != changed("job", Change::Vacated, token) {}
            waits.push(began.elapsed());
            asker = asker.clone().next_attempt();
            token = grant(&store, &asker, "job").await.token;
        }
        waits
    })
    .await;
}

/// Also where another watch of the same handle, which was first, waits for an end.
#[tokio::test]
async fn a_term_that_begins_is_told_by_notification_and_not_by_the_slow_check() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let ends = other.watch(&job, Interest::Ends).await.unwrap();
    let mut watch = other.watch(&job, Interest::Everything).await.unwrap();
    let mut asker = Asker::new("first");
    told_by_notification(async || {
        let mut waits = Vec::new();
        for _ in 0..CHANGES {
            let token = grant(&store, &asker, "job").await.token;
            // The grant itself waits for the disk.
            let began = Instant::now();
            assert_eq!(next(&mut watch).await, changed("job", Change::Taken, token));
            waits.push(began.elapsed());
            asker = asker.clone().next_attempt();
        }
        waits
    })
    .await;
    drop(ends);
}

/// The holder ends its work for it: so it is told as soon as a release is.
#[tokio::test]
async fn a_wish_is_told_by_notification_and_not_by_the_slow_check() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    let mut asker = Asker::new("first");
    told_by_notification(async || {
        let mut waits = Vec::new();
        for _ in 0..CHANGES {
            let token = grant(&store, &asker, "job").await.token;
            assert_eq!(next(&mut watch).await, changed("job", Change::Taken, token));
            let began = Instant::now();
            let wish = Ask {
                name: name("job"),
                token,
            };
            assert_eq!(other.ask(&wish).await, Ok(Asked::Noted));
            assert_eq!(next(&mut watch).await, changed("job", Change::Asked, token));
            waits.push(began.elapsed());
            drop(store.release(&[asker.release("job", token)]).await);
            assert_eq!(next(&mut watch).await, changed("job", Change::Vacated, token));
            asker = asker.clone().next_attempt();
        }
        waits
    })
    .await;
}

#[tokio::test]
async fn a_release_is_told_by_notification_also_through_a_wake_file_that_was_emptied() {
    let scratch = Scratch::new();
    let empty = || drop(std::fs::File::create(wake_file(&scratch)).unwrap());
    releases_are_told_by_notification(&scratch, empty).await;
}

/// As a restore does it. What was moved away is no longer read when somebody wakes others.
#[tokio::test]
async fn a_release_is_told_by_notification_also_in_a_directory_that_was_replaced() {
    let scratch = Scratch::new();
    let directory = scratch.directory().join("used");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("leases.db");
    let [store, other] = [(), ()].map(|()| SqliteStore::open(&file).unwrap());
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    std::fs::rename(&directory, scratch.directory().join("old")).unwrap();
    std::fs::create_dir(&directory).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    told_by_notification(async || told_between(&store, &mut watch, || {}).await).await;
}

/// A watch whose `next` is dropped again and again, as in a `select!`, still tells everything.
#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let asker = Asker::new("first");
    let mut watch = other
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    let first = grant(&store, &asker, "job").await;
    drop(store.release(&[asker.release("job", first.token)]).await);
    let mut told = Vec::new();
    for _ in 0..10_000 {
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(500), watch.next()).await {
            told.push(event.unwrap());
        }
        if told.len() == 2 {
            break;
        }
    }
    let expected = [
        changed("job", Change::Taken, first.token),
        changed("job", Change::Vacated, first.token),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_deleted_wake_file_is_made_anew() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    std::fs::remove_file(wake_file(&scratch)).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
}

/// The kernel tells of the end of a file only when nobody has it open any more, and whoever has knocked has.
#[tokio::test]
async fn a_deleted_wake_file_is_noticed_although_somebody_has_it_open() {
    let scratch = Scratch::new();
    let (store, other, knocks) = (scratch.open(), scratch.open(), scratch.open());
    let asker = Asker::new("early");
    let early = grant(&knocks, &asker, "early").await;
    drop(knocks.release(&[asker.release("early", early.token)]).await);
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    std::fs::remove_file(wake_file(&scratch)).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
}

/// A writer that is killed between its commit and the knock, or that never knocks.
#[tokio::test]
async fn a_change_without_a_knock_is_still_told() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let first = grant(&store, &Asker::new("first"), "job").await;
    let mut watch = other
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    scratch.sql("UPDATE lease SET released = 1, version = version + 1");
    assert_eq!(
        next(&mut watch).await,
        changed("job", Change::Vacated, first.token)
    );
}

/// It reads nothing of what the kernel says, and another of the same handle does.
#[tokio::test]
async fn a_watch_that_nobody_polls_holds_up_no_other() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let all = Scope::Prefix(String::new());
    let (before, mut watch) = (
        other.watch(&all, Interest::Everything).await,
        other.watch(&all, Interest::Everything).await.unwrap(),
    );
    let after = other.watch(&all, Interest::Everything).await;
    told_by_notification(async || told_between(&store, &mut watch, || {}).await).await;
    for unpolled in [before, after] {
        let event = next(&mut unpolled.unwrap()).await;
        assert!(matches!(event, WatchEvent::Changed { .. }), "{event:?}");
    }
}

#[tokio::test]
async fn all_watches_of_a_handle_end_with_a_file_that_is_no_store_and_begin_anew_with_one_that_is() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let mut watches = [(); 2].map(|()| None);
    for watch in &mut watches {
        *watch = Some(other.watch(&job, Interest::Everything).await.unwrap());
    }
    let aside = scratch.directory().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let files = ["", "-wal", "-shm"].map(|suffix| {
        let mut path = scratch.file().into_os_string();
        path.push(suffix);
        let path = PathBuf::from(path);
        let there = aside.join(path.file_name().unwrap());
        (path, there)
    });
    for (here, there) in &files {
        std::fs::rename(here, there).unwrap();
    }
    std::fs::write(scratch.file(), "no database ".repeat(100)).unwrap();
    for watch in watches.iter_mut().flatten() {
        let ended = async { while watch.next().await.is_ok() {} };
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
    }
    std::fs::remove_file(scratch.file()).unwrap();
    for (here, there) in &files {
        std::fs::rename(there, here).unwrap();
    }
    // Also beside those that have ended and are kept.
    let mut watch = other.watch(&job, Interest::Everything).await.unwrap();
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
    drop(watches);
}
