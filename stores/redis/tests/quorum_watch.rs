//! A watch of a quorum that hears a majority of the members, and not all.

use crate::common::{
    Three, connection, giving_back, in_every_member, name, request, seconds, take, three_servers,
};
use std::time::Duration;
use tenure_core::{
    Acquire, Ask, Asked, Change, FencingToken, Interest, LeaseStore, Occupancy, Released, Scope, Watch,
    WatchEvent,
};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{Fault, RedisServer};

/// What is told is told at once; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

/// How often something is tried that has to succeed, on a machine that may stall now and then.
const TRIES_MAX: usize = 5;

impl Three {
    /// A watch that hears the first and the third member, and not the second, which is well.
    async fn watch(&self, lost: Lost) -> Box<dyn Watch> {
        if lost == Lost::BeforeItBegan {
            self.proxy.set(Fault::Refuse);
            self.proxy.cut_connections();
        }
        let mut watch = self
            .store
            .watch(&Scope::Name(name("job")), Interest::Everything)
            .await
            .expect("a watch");
        if lost == Lost::Meanwhile {
            self.proxy.cut_connections();
            assert_eq!(
                next(watch.as_mut()).await,
                WatchEvent::Gap,
                "one is not heard any more"
            );
        }
        self.proxy.heal();
        // Whoever asks next learns that the connection of requests was cut, too.
        let _noticed = self.store.get(&name("job")).await;
        watch
    }

    /// Changes the record of the lease in one member, as whoever has written it there has.
    async fn overwrite(&self, member: usize, fields: &[(&str, &str)]) {
        let set = redis::cmd("HSET")
            .arg("{tenure}:lease:job")
            .arg(fields)
            .to_owned();
        let mut member = connection(&self.servers[member].url()).await;
        let _new: i64 = set.query_async(&mut member).await.expect("the test can ask");
    }

    /// A term in the first two members alone: in the third somebody else's candidacy stands.
    async fn take_without_the_third(&self, asked: &Acquire) -> FencingToken {
        let before = request("job", "before", seconds(300));
        let token = take(&self.store, &before).await.token;
        in_every_member(&self.servers, token).await;
        let rival = "0123456789abcdef0123456789abcdef";
        self.overwrite(2, &[("unconfirmed", "later"), ("incarnation", rival)])
            .await;
        let released = self.store.release(&[giving_back(&before, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        take(&self.store, asked).await.token
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    BeforeItBegan,
    Meanwhile,
}

async fn next(watch: &mut dyn Watch) -> WatchEvent {
    let told = tokio::time::timeout(BOUND, watch.next())
        .await
        .expect("it is told");
    told.expect("the watch goes on")
}

/// Waits until this is told; without a token as long as a majority was not heard to tell it.
async fn told(watch: &mut dyn Watch, change: Change, token: Option<FencingToken>) {
    let wanted = WatchEvent::Changed {
        name: name("job"),
        change,
        token,
    };
    while next(watch).await != wanted {}
}

/// The members that made a change and those that are heard may have but one in common.
#[tokio::test]
async fn change_in_a_majority_is_told_though_only_one_of_it_is_heard() {
    for lost in [Lost::BeforeItBegan, Lost::Meanwhile] {
        let three = Three::behind_a_proxy(1).await;
        let mut watch = three.watch(lost).await;
        let asked = request("job", "a", seconds(300));
        let token = three.take_without_the_third(&asked).await;
        let lease = three.lease(&asked.name).await;
        assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Held));
        let wish = Ask {
            name: asked.name.clone(),
            token,
        };
        assert_eq!(three.store.ask(&wish).await, Ok(Asked::Noted), "{lost:?}");
        told(watch.as_mut(), Change::Asked, Some(token)).await;
        let released = three.store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated), "{lost:?}");
        told(watch.as_mut(), Change::Vacated, None).await;
    }
}

/// A member that missed the term has nothing to give back, and is one of those that make the lease free.
#[tokio::test]
async fn release_that_reached_two_members_is_told_though_one_had_no_part_in_the_term() {
    for had in ["nothing", "what was never confirmed", "the term before"] {
        let three = Three::behind_a_proxy(1).await;
        let hosts: Vec<_> = three
            .servers
            .iter()
            .map(|server| server.address().to_string())
            .collect();
        let url = format!("redis+quorum://{}", hosts.join(","));
        let watcher = QuorumStore::connect(&url).await.expect("the store connects");
        let asked = request("job", "a", seconds(300));
        let token = take(&three.store, &asked).await.token;
        in_every_member(&three.servers, token).await;
        match had {
            "nothing" => three.asked(2, "DEL", &["{tenure}:lease:job"]).await,
            "what was never confirmed" => {
                three
                    .overwrite(2, &[("unconfirmed", "first"), ("generation", "1")])
                    .await
            }
            _ => {
                let other = "0123456789abcdef0123456789abcdef";
                let before = [
                    ("incarnation", other),
                    ("generation", "7"),
                    ("releasedAt", "1"),
                    ("expiresAt", "1"),
                ];
                three.overwrite(2, &before).await
            }
        }
        let mut watch = watcher
            .watch(&Scope::Name(name("job")), Interest::Everything)
            .await
            .expect("a watch");
        // Its holder reaches this one no more; the watch hears it.
        three.proxy.set(Fault::Refuse);
        three.proxy.cut_connections();
        let released = three.store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated), "{had}");
        told(watch.as_mut(), Change::Vacated, Some(token)).await;
    }
}

/// Who looks at the first word sees the lease held still, and would sleep on if that had been the last.
#[tokio::test]
async fn change_that_one_of_those_heard_tells_is_told_again_when_the_other_does() {
    for lost in [Lost::BeforeItBegan, Lost::Meanwhile] {
        let three = Three::behind_a_proxy(1).await;
        let mut watch = three.watch(lost).await;
        let asked = request("job", "a", seconds(300));
        let token = take(&three.store, &asked).await.token;
        told(watch.as_mut(), Change::Taken, Some(token)).await;
        for (member, told_of, left) in [(0, None, Occupancy::Held), (2, Some(token), Occupancy::Vacant)] {
            let alone = RedisStore::connect(&three.servers[member].url())
                .await
                .expect("a member");
            let released = alone.release(&[giving_back(&asked, token)]).await.remove(0);
            assert_eq!(released, Ok(Released::Vacated), "{lost:?}");
            told(watch.as_mut(), Change::Vacated, told_of).await;
            let lease = three
                .store
                .get(&asked.name)
                .await
                .expect("a read")
                .expect("a record");
            assert_eq!(lease.occupancy(), left, "{lost:?}: {lease:?}");
        }
    }
}

/// A holder ends its term when it is told of a greater token: one that a majority may not have confirmed is
/// none.
#[tokio::test]
async fn token_that_one_of_those_heard_has_confirmed_is_told_when_the_other_has() {
    let three = Three::behind_a_proxy(1).await;
    let mut watch = three.watch(Lost::BeforeItBegan).await;
    let later = FencingToken::new(4_000_000_000_000).expect("a token");
    for (member, token) in [(0, None), (2, Some(later))] {
        let tell = redis::cmd("PUBLISH")
            .arg("{tenure}:changes:job")
            .arg(format!("taken {later}"))
            .to_owned();
        let mut member = connection(&three.servers[member].url()).await;
        let listeners: i64 = tell.query_async(&mut member).await.expect("the test can ask");
        assert_eq!(listeners, 1);
        let taken = WatchEvent::Changed {
            name: name("job"),
            change: Change::Taken,
            token,
        };
        assert_eq!(next(watch.as_mut()).await, taken);
    }
}

/// One of those heard may be ahead of the other by whole terms.
#[tokio::test]
async fn tokens_that_are_told_fall_not_though_one_of_those_heard_is_ahead() {
    let three = Three::behind_a_proxy(1).await;
    let mut watch = three.watch(Lost::BeforeItBegan).await;
    let mut highest = None;
    let changes = ["taken 101", "vacated 101", "taken 102", "asked 102"];
    for member in [0, 2] {
        for change in changes {
            let tell = redis::cmd("PUBLISH")
                .arg("{tenure}:changes:job")
                .arg(change)
                .to_owned();
            let mut member = connection(&three.servers[member].url()).await;
            let listeners: i64 = tell.query_async(&mut member).await.expect("the test can ask");
            assert_eq!(listeners, 1);
        }
        for _change in changes {
            let WatchEvent::Changed { token, .. } = next(watch.as_mut()).await else {
                panic!("a gap");
            };
            assert!(token.is_none() || token >= highest, "{token:?} after {highest:?}");
            highest = highest.max(token);
        }
    }
}

/// The connection to one member is slower than that to another, and the lease goes from hand to hand
/// meanwhile.
#[tokio::test]
async fn last_change_is_told_though_a_member_tells_later_by_many_terms() {
    let three = Three::behind_a_proxy(1).await;
    let mut watch = three
        .store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .expect("a watch");
    let terms = 101..121;
    for member in [0, 2] {
        let mut connection = connection(&three.servers[member].url()).await;
        // The watch has begun with a majority, which need not be the two.
        let listening = redis::cmd("PUBSUB")
            .arg("NUMSUB")
            .arg("{tenure}:changes:job")
            .to_owned();
        loop {
            let (_channel, listeners): (String, i64) = listening
                .query_async(&mut connection)
                .await
                .expect("the test can ask");
            if listeners > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for term in terms.clone() {
            for change in ["taken", "vacated"] {
                let tell = redis::cmd("PUBLISH")
                    .arg("{tenure}:changes:job")
                    .arg(format!("{change} {term}"))
                    .to_owned();
                let listeners: i64 = tell.query_async(&mut connection).await.expect("the test can ask");
                assert_eq!(listeners, 1);
            }
        }
    }
    let last = FencingToken::new(120).expect("a token");
    told(watch.as_mut(), Change::Vacated, Some(last)).await;
}

/// Whoever begins to wait meanwhile would hear nothing for as long as that member is given.
#[tokio::test]
async fn watch_begins_before_a_frozen_member_is_given_up() {
    let servers = three_servers().await;
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let store = QuorumStore::connect(&format!("redis+quorum://{}", hosts.join(","))).await;
    let store = store.expect("the quorum connects");
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    in_every_member(&servers, token).await;
    let frozen = RedisStore::connect(&servers[1].url()).await.expect("a member");
    let scope = Scope::Name(asked.name.clone());
    let mut tries = 0;
    let mut watch = loop {
        servers[1].freeze();
        tokio::select! {
            biased;
            // Where the machine stood still, both are there when it goes on; but not every time.
            given_up = frozen.watch(&scope, Interest::Everything) => {
                tries += 1;
                assert!(tries < TRIES_MAX, "it was waited for: {:?}", given_up.map(drop));
            }
            watch = store.watch(&scope, Interest::Everything) => break watch.expect("a watch"),
        }
        servers[1].thaw();
    };
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    told(watch.as_mut(), Change::Vacated, Some(token)).await;
}
