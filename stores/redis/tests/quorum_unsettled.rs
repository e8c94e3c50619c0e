//! Members that were not all there, or not told everything, when it was recorded who they are: nobody may
//! have to do it anew.
use crate::common::{
    BOUND, Record, connection, giving_back, granted, hosts, quorum_at, request, seconds, take, three_servers,
};
use tenure_core::{Acquire, LeaseStore, Released};
use tenure_redis::QuorumStore;
use tenure_testkit::Fault::Refuse;
use tenure_testkit::{FaultProxy, RedisServer, eventually_async};

fn job(label: &str) -> Acquire {
    request("job", label, seconds(300))
}

fn url(hosts: &[String]) -> String {
    format!("redis+quorum://{}", hosts.join(","))
}

/// One command to a server, about what it keeps of its quorum.
async fn told<T: redis::FromRedisValue>(server: &RedisServer, command: &str, arguments: &[&str]) -> T {
    let mut asked = redis::cmd(command);
    asked.arg("{tenure}:quorum").arg(arguments);
    let mut member = connection(&server.url()).await;
    asked.query_async(&mut member).await.expect("the test can ask")
}

async fn kept(server: &RedisServer) -> Record {
    told(server, "HGETALL", &[]).await
}

/// Gives back what was taken, when it could be.
async fn give_back(store: &QuorumStore, asked: &Acquire) {
    let asking = async || store.acquire(asked).await.map(granted);
    let token = eventually_async(BOUND, "a term", asking).await.token;
    let given = async || store.release(&[giving_back(asked, token)]).await.remove(0);
    let given = eventually_async(BOUND, "a release", given).await;
    assert_eq!(given, Released::Vacated);
}

/// As by a run of `tenure store init`, or a first candidate, that ended before its last step: nobody repeats
/// that while all goes well.
#[tokio::test]
async fn members_that_were_never_told_to_be_all_are_told_by_whoever_comes() {
    let servers = three_servers().await;
    let names = hosts(&servers);
    give_back(&quorum_at(&names).await, &job("a")).await;
    let untold_but = async |place: Option<usize>| {
        for (number, server) in servers.iter().enumerate() {
            if Some(number) != place {
                let _set: i64 = told(server, "HSET", &["complete", "0"]).await;
            }
        }
    };
    let complete = async || {
        for server in &servers {
            if kept(server).await["complete"] != "1" {
                return Err(format!("{:?}", kept(server).await));
            }
        }
        Ok(())
    };
    // The only one that was told may be the last that is met.
    for place in [None, Some(0), Some(1), Some(2)] {
        untold_but(place).await;
        let connected = quorum_at(&names).await;
        give_back(&connected, &job("b")).await;
        eventually_async(BOUND, "all are told", complete).await;
        drop(connected);
    }
}

/// It has met two of them before anybody recorded anything, and has open connections to them.
#[tokio::test]
async fn standby_that_was_cut_off_from_one_when_the_members_were_recorded_leads_by_the_others() {
    let servers = three_servers().await;
    let names = hosts(&servers);
    let away = FaultProxy::redis(servers[2].address()).expect("a proxy");
    away.set(Refuse);
    let cut_off = [names[0].clone(), names[1].clone(), away.address().to_string()];
    let standby = quorum_at(&cut_off).await;
    let error = standby
        .acquire(&job("standby"))
        .await
        .expect_err("one was never met");
    assert!(error.message.contains("is new"), "{error}");
    give_back(&quorum_at(&names).await, &job("a")).await;
    give_back(&standby, &job("standby")).await;
}

/// Its disk or its memory was full, or it had no right: why is told, and when that is over it counts.
#[tokio::test]
async fn member_that_could_keep_nothing_at_first_is_asked_again() {
    let servers = three_servers().await;
    servers[2].ask("ACL SETUSER default -hset").expect("asked");
    let store = quorum_at(&hosts(&servers)).await;
    let error = store.acquire(&job("a")).await.expect_err("one keeps nothing");
    assert!(
        error.message.contains("bring the others up; one says: ")
            && error.message.contains("grant the rights"),
        "{error}"
    );
    servers[2].ask("ACL SETUSER default +hset").expect("asked");
    give_back(&store, &job("a")).await;
}

/// It is part of many a deployment: whoever goes on by them must not be shut out.
#[tokio::test]
async fn members_that_are_recorded_already_stay_as_they_are() {
    let servers = three_servers().await;
    let names = hosts(&servers);
    let store = quorum_at(&names).await;
    take(&store, &job("a")).await;
    let mut before = Vec::new();
    for server in &servers {
        before.push(kept(server).await);
    }
    let _set: i64 = told(&servers[1], "HSET", &["complete", "0"]).await;
    QuorumStore::init(&url(&names)).await.expect("nothing changes");
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(kept(server).await, before);
    }
}

#[tokio::test]
async fn members_of_which_one_keeps_what_cannot_be_read_are_recorded_anew() {
    let servers = three_servers().await;
    let names = hosts(&servers);
    give_back(&quorum_at(&names).await, &job("a")).await;
    let _set: i64 = told(&servers[0], "HSET", &["members", "damaged"]).await;
    QuorumStore::init(&url(&names)).await.expect("nobody leads");
    let mut members = Vec::new();
    for server in &servers {
        members.push(kept(server).await["members"].clone());
    }
    assert!(
        members.iter().all(|one| *one == members[0] && one != "damaged"),
        "{members:?}"
    );
    give_back(&quorum_at(&names).await, &job("b")).await;
}
