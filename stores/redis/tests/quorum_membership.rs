//! Two candidates whose lists of hosts differ could both find a majority: the members know who they are, and
//! so it is noticed.
use crate::common::{
    BOUND, Record, connection, giving_back, granted, hosts, in_every_member, quorum_at, request, seconds,
    servers, take, three_servers, told_held,
};
use tenure_core::{
    Acquire, Acquired, Certainty, Durability, Fault, Interest, LeaseStore, Page, Released, Scope, StoreError,
    Verdict,
};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::Fault::Refuse;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer, eventually_async};

/// How often two come at the same time.
const ROUNDS: usize = 12;

fn job(label: &str) -> Acquire {
    request("job", label, seconds(300))
}

fn url(hosts: &[String]) -> String {
    format!("redis+quorum://{}", hosts.join(","))
}

/// Why there is no store of these hosts, which names this one.
async fn refused(names: &[String], host: &str) -> StoreError {
    let error = QuorumStore::connect(&url(names)).await.expect_err("another list");
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(
        error.message.contains(host) && error.message.contains("tenure store init"),
        "{error}"
    );
    error
}

/// What the examination says of whether the members know each other.
async fn members_of(store: &QuorumStore) -> Verdict {
    let findings = store.examine().await.expect("an examination");
    let members = findings.iter().find(|finding| finding.subject == "members");
    members.unwrap_or_else(|| panic!("{findings:?}")).verdict
}

/// What a server keeps of its quorum.
async fn kept(server: &RedisServer) -> Record {
    let ask = redis::cmd("HGETALL").arg("{tenure}:quorum").to_owned();
    let mut member = connection(&server.url()).await;
    ask.query_async(&mut member).await.expect("the test can ask")
}

async fn forget_everything(server: &RedisServer) {
    let mut member = connection(&server.url()).await;
    let forgotten = redis::cmd("FLUSHALL").to_owned();
    let _done: redis::Value = forgotten
        .query_async(&mut member)
        .await
        .expect("the test can ask");
}

/// Gives back what was taken.
async fn give_back(store: &QuorumStore, asked: &Acquire) {
    let token = take(store, asked).await.token;
    let given = store.release(&[giving_back(asked, token)]).await.remove(0);
    assert_eq!(given, Ok(Released::Vacated));
}

#[tokio::test]
async fn list_of_other_hosts_is_refused_where_the_members_know_each_other() {
    let servers = servers(5, RedisOptions::default()).await;
    let all = hosts(&servers);
    let store = quorum_at(&all[..3]).await;
    take(&store, &job("a")).await;
    // One that differs, two, and a list of another length; wherever the difference stands.
    for names in [[0, 1, 3], [3, 1, 0], [2, 3, 4], [4, 3, 2]] {
        let names = names.map(|place| all[place].clone());
        let error = refused(&names, "is ").await;
        let quorum = {
            let mut hosts = all[..3].to_vec();
            hosts.sort_unstable();
            hosts.join(",")
        };
        assert!(error.message.contains(&quorum), "{error}");
    }
    refused(&all, "is a member of the quorum").await;
    // The same by other names, and in another order.
    let port = servers[0].port();
    let names = [all[2].clone(), format!("localhost:{port}"), all[1].clone()];
    let same = quorum_at(&names).await;
    assert_eq!(members_of(&same).await, Verdict::Good);
}

/// The answer, where on a loaded machine servers are late at first.
async fn answered<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let is_late = |error: &StoreError| matches!(error.fault, Fault::Unreachable | Fault::TimedOut);
    eventually_async(BOUND, "an answer", async || match ask().await {
        Err(error) if is_late(&error) => Err(error),
        answer => Ok(answer),
    })
    .await
}

/// The one of the two that the server which they share takes for its own.
#[tokio::test]
async fn of_two_lists_that_come_at_the_same_time_one_leads() {
    let servers = servers(5, RedisOptions::default()).await;
    let all = hosts(&servers);
    for round in 0..ROUNDS {
        let lead = async |names: &[String]| {
            let url = format!("{}?prefix=round-{round}", url(names));
            let store = answered(async || QuorumStore::connect(&url).await).await?;
            let take = async |asked: Acquire| answered(async || store.acquire(&asked).await).await;
            // Nor later, however often it asks.
            match take(job("a")).await {
                Err(_) => take(job("b")).await.map(granted),
                first => first.map(granted),
            }
        };
        let led = tokio::join!(lead(&all[..3]), lead(&all[2..]));
        let errors: Vec<StoreError> = [led.0, led.1].into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].fault, Fault::Invalid, "{errors:?}");
    }
}

/// What it would confirm, a majority of the others would not know of.
#[tokio::test]
async fn member_that_comes_late_counts_only_if_it_is_of_the_quorum() {
    let servers = servers(4, RedisOptions::default()).await;
    let all = hosts(&servers);
    let recorded = quorum_at(&all[..3]).await;
    give_back(&recorded, &job("a")).await;
    let stranger = FaultProxy::redis(servers[3].address()).expect("a proxy");
    stranger.set(Refuse);
    let names = [all[0].clone(), stranger.address().to_string(), all[1].clone()];
    let store = quorum_at(&names).await;
    stranger.heal();
    give_back(&store, &job("b")).await;
    let findings = store.examine().await.expect("an examination");
    let host = stranger.address().to_string();
    let told = findings
        .iter()
        .find(|finding| finding.subject.starts_with(&host) && finding.verdict == Verdict::Bad);
    let told = told.unwrap_or_else(|| panic!("{findings:?}"));
    assert!(told.detail.contains("is no member of the quorum"), "{told:?}");
    assert_eq!(kept(&servers[3]).await, Record::new());
}

/// Here the first attempt has a majority only with it.
#[tokio::test]
async fn member_that_was_away_at_the_start_counts_in_the_first_attempt_when_it_is_back() {
    let mut servers = servers(3, RedisOptions::durable()).await;
    let all = hosts(&servers);
    give_back(&quorum_at(&all).await, &job("before")).await;
    servers[2].kill();
    let store = quorum_at(&all).await;
    servers[2].restart().await.expect("it starts again");
    servers[1].kill();
    let first = store.acquire(&job("a")).await;
    assert!(matches!(&first, Ok(Acquired::Granted(_))), "{first:?}");
}

/// At its host, and nowhere else: there it could be anybody.
#[tokio::test]
async fn member_that_forgot_everything_is_known_by_its_host() {
    let servers = three_servers().await;
    let all = hosts(&servers);
    let store = quorum_at(&all).await;
    take(&store, &job("a")).await;
    let before = kept(&servers[1]).await;
    assert_eq!(before.len(), 3, "{before:?}");
    forget_everything(&servers[1]).await;
    let moved = FaultProxy::redis(servers[1].address()).expect("a proxy");
    let names = [all[0].clone(), moved.address().to_string(), all[2].clone()];
    refused(&names, &moved.address().to_string()).await;
    assert!(!kept(&servers[1]).await.contains_key("members"));
    let again = quorum_at(&all).await;
    told_held(&again, &request("job", "b", seconds(300))).await;
    let mut after = kept(&servers[1]).await;
    assert!(after.remove("readmitted").is_some(), "{after:?}");
    assert_eq!(after, before);
    let findings = again.examine().await.expect("an examination");
    assert!(
        findings.iter().all(|finding| finding.verdict < Verdict::Bad),
        "{findings:?}"
    );
}

/// It may also be another server at the same host, and the one that was there before go on with others.
#[tokio::test]
async fn quorum_whose_member_has_forgotten_everything_is_safe_no_more_and_says_so() {
    let servers = servers(3, RedisOptions::durable()).await;
    let all = hosts(&servers);
    let settled = async || {
        let store = quorum_at(&all).await;
        (store.traits().durability == Durability::Safe).then_some(store)
    };
    let store = eventually_async(BOUND, "durable members", settled).await;
    let token = take(&store, &job("a")).await.token;
    in_every_member(&servers, token).await;
    assert_eq!(store.traits().durability, Durability::Safe);
    forget_everything(&servers[1]).await;
    // One that looks leaves it as it is, and says what it finds all the same.
    let looker = quorum_at(&all).await;
    assert!(matches!(looker.traits().durability, Durability::FenceOnly(why) if why.contains("forgotten")));
    assert_eq!(kept(&servers[1]).await, Record::new());
    let standby = quorum_at(&all).await;
    told_held(&standby, &job("b")).await;
    assert!(matches!(standby.traits().durability, Durability::FenceOnly(why) if why.contains("forgotten")));
    let told = async || {
        let findings = quorum_at(&all).await.examine().await.expect("an examination");
        let is_its = |subject: &str| subject.starts_with(&all[1]) && subject.ends_with(" member");
        findings.into_iter().find(|finding| is_its(&finding.subject))
    };
    let finding = told().await.expect("a finding");
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    assert!(finding.detail.contains("kept nothing"), "{finding:?}");
    servers[1].ask("HDEL {tenure}:quorum readmitted").expect("asked");
    assert_eq!(told().await, None);
}

/// As of a disk that was copied: it says of itself that it is the other.
#[tokio::test]
async fn server_with_the_data_of_another_member_is_refused() {
    let servers = three_servers().await;
    let all = hosts(&servers);
    give_back(&quorum_at(&all).await, &job("a")).await;
    let copied = kept(&servers[0]).await;
    let mut copy = connection(&servers[1].url()).await;
    let mut write = redis::cmd("HSET");
    write.arg("{tenure}:quorum");
    for (field, value) in &copied {
        write.arg(field).arg(value);
    }
    let _done: i64 = write.query_async(&mut copy).await.expect("the test can ask");
    let error = QuorumStore::connect(&url(&all))
        .await
        .expect_err("one counts twice");
    assert!(error.message.contains("are one server"), "{error}");
}

#[tokio::test]
async fn exchanged_member_is_known_after_the_members_are_recorded_anew() {
    let mut servers = servers(4, RedisOptions::default()).await;
    let all = hosts(&servers);
    let changed = [all[0].clone(), all[1].clone(), all[3].clone()];
    let old = quorum_at(&all[..3]).await;
    let held = job("a");
    let token = take(&old, &held).await.token;
    let error = QuorumStore::init(&url(&changed))
        .await
        .expect_err("somebody leads");
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(
        error.message.contains("\"job\" is held") && !error.message.contains('\n'),
        "{error}"
    );
    refused(&changed, &all[3]).await;
    let given = old.release(&[giving_back(&held, token)]).await.remove(0);
    assert_eq!(given, Ok(Released::Vacated));
    QuorumStore::init(&url(&changed)).await.expect("nobody leads");
    // Who was not ended has connections to those that are members still, and nobody asks it who they are.
    let late = old.acquire(&job("late")).await.expect_err("recorded anew");
    assert_eq!(
        (late.fault, late.certainty),
        (Fault::Invalid, Certainty::NotApplied)
    );
    assert!(late.message.contains("recorded anew"), "{late}");
    let new = quorum_at(&changed).await;
    let next = take(&new, &job("b")).await;
    assert!(next.token > token);
    refused(&all[..3], &all[0]).await;
    // All of them must keep it, or some would go on as what they were.
    servers[3].kill();
    let error = QuorumStore::init(&url(&changed)).await.expect_err("one is away");
    assert!(
        error.message.contains("2 of 3 have answered, and all must"),
        "{error}"
    );
}

/// Somebody else could count on the one that is away.
#[tokio::test]
async fn new_quorum_takes_its_first_lease_when_all_members_have_answered() {
    let servers = three_servers().await;
    let mut names = hosts(&servers);
    let away = FaultProxy::redis(servers[2].address()).expect("a proxy");
    names[2] = away.address().to_string();
    away.set(Refuse);
    let store = quorum_at(&names).await;
    let error = store.acquire(&job("a")).await.expect_err("one was never met");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied),
        "{error}"
    );
    assert!(
        error.message.contains("is new") && !error.message.contains('\n'),
        "{error}"
    );
    assert_eq!(members_of(&store).await, Verdict::Warning);
    away.heal();
    let asking = async || store.acquire(&job("b")).await.map(granted);
    eventually_async(BOUND, "a term", asking).await;
    let mut rosters = Vec::new();
    for server in &servers {
        let kept = kept(server).await;
        assert_eq!(kept.get("complete").map(String::as_str), Some("1"));
        rosters.push(kept.get("members").cloned());
    }
    assert!(rosters.iter().all(|roster| *roster == rosters[0]), "{rosters:?}");
    // From then on a minority may be away, also of who comes anew.
    away.set(Refuse);
    away.cut_connections();
    let another = quorum_at(&names).await;
    let asked = request("another", "c", seconds(300));
    let asking = async || another.acquire(&asked).await.map(granted);
    eventually_async(BOUND, "a term", asking).await;
}

/// One look by a list that is wrong would keep those out who name the right one.
#[tokio::test]
async fn who_looks_at_a_quorum_records_no_members() {
    let servers = servers(4, RedisOptions::default()).await;
    let all = hosts(&servers);
    let wrong = quorum_at(&[all[0].clone(), all[1].clone(), all[3].clone()]).await;
    assert_eq!(wrong.get(&job("a").name).await, Ok(None));
    let page = Page::first("", 10);
    wrong.list(&page).await.expect("a page");
    wrong
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    assert_eq!(members_of(&wrong).await, Verdict::Warning);
    for server in &servers {
        let keys: Vec<String> = redis::cmd("KEYS")
            .arg("*")
            .query_async(&mut connection(&server.url()).await)
            .await
            .expect("the test can ask");
        assert_eq!(keys, Vec::<String>::new());
    }
    take(&quorum_at(&all[..3]).await, &job("a")).await;
}

/// All are up, and somebody has to end.
#[tokio::test]
async fn new_quorum_names_the_leader_of_before_that_it_waits_for_and_records_nothing() {
    let servers = three_servers().await;
    let alone = RedisStore::connect(&servers[1].url()).await.expect("a server");
    take(&alone, &job("a")).await;
    let all = hosts(&servers);
    let error = quorum_at(&all)
        .await
        .acquire(&request("other", "b", seconds(300)))
        .await;
    let error = error.expect_err("two lead");
    let told = format!("lease \"job\" is held by a at {}", all[1]);
    assert!(error.message.contains(&told), "{error}");
    assert!(!error.message.contains("bring"), "{error}");
    for server in &servers {
        assert!(!kept(server).await.contains_key("members"));
    }
}

/// Who has no right to write is let in, and changes nothing.
#[tokio::test]
async fn who_may_only_look_records_no_members() {
    let servers = three_servers().await;
    for server in &servers {
        let user = "looker on >hunter2 ~{tenure}:* resetchannels &{tenure}:changes:* +eval +evalsha +time +hmget +hget +exists \
                    +zrem +zrangebylex +subscribe +psubscribe +unsubscribe +punsubscribe +ping +hello +select +role +info \
                    +config|get +acl|whoami";
        server.ask(&format!("ACL SETUSER {user}")).expect("asked");
    }
    let looker = format!("redis+quorum://looker:hunter2@{}", hosts(&servers).join(","));
    let store = QuorumStore::connect(&looker).await.expect("it may look");
    assert_eq!(store.get(&job("a").name).await, Ok(None));
    for server in &servers {
        assert_eq!(kept(server).await, Record::new());
    }
    let recorded = quorum_at(&hosts(&servers)).await;
    let token = take(&recorded, &job("a")).await.token;
    let again = QuorumStore::connect(&looker).await.expect("it may look");
    let seen = again
        .get(&job("a").name)
        .await
        .expect("a read")
        .expect("a record");
    assert_eq!(seen.token, token);
    let refused = again.acquire(&request("other", "b", seconds(300))).await;
    assert_eq!(refused.expect_err("it may not write").fault, Fault::Forbidden);
}
