//! A primary and the replica that follows it: which of them is asked, and what a promotion keeps.
use crate::common::{PATIENCE, Scratch, giving_back, renewal, request, seconds, take};
use tenure_conformance::wire::bounded;
use tenure_core::{Acquired, Certainty, Durability, Fault, LeaseStore, Renew, Renewed, Verdict};
use tenure_mysql::MysqlStore;
use tenure_testkit::{FaultProxy, Mariadb, SqlFamily, eventually_async, free_port};

/// A database on a primary, and the store by an address that leads to it.
async fn led_to(primary: &Mariadb) -> (FaultProxy, Scratch, MysqlStore) {
    let proxy = FaultProxy::mysql(primary.address()).unwrap();
    let scratch = Scratch::on(&primary.address()).await;
    let url = scratch.url_at("root", &proxy.address().to_string());
    let store = MysqlStore::connect(&url).await.unwrap();
    (proxy, scratch, store)
}

/// The primary is gone for good, and the address leads to the replica that was promoted: the term goes on
/// there.
async fn goes_on_at(replica: &Mariadb, proxy: &FaultProxy, store: &MysqlStore, beat: &Renew) {
    let lost = bounded("without a primary", store.get(&beat.name))
        .await
        .unwrap_err();
    assert_eq!(lost.fault, Fault::Unreachable, "{lost}");
    replica.promote().await.unwrap();
    proxy.lead_to(replica.address());
    eventually_async(PATIENCE, "a renewal at the new primary", || async {
        let verdict = store.renew(std::slice::from_ref(beat)).await.remove(0);
        assert!(!matches!(verdict, Ok(Renewed::Lost(_))), "{verdict:?}");
        matches!(verdict, Ok(Renewed::Extended { .. }))
    })
    .await;
}

/// The primary dies in the middle of a term, and its replica, which has all that was confirmed, takes over:
/// the term goes on, and nothing is lost.
#[tokio::test]
async fn term_outlives_a_mysql_whose_semi_synchronous_replica_is_promoted() {
    let mut primary = Mariadb::semi_synchronous_primary().await.unwrap();
    let replica = primary.semi_synchronous_replica().await.unwrap();
    let (proxy, _scratch, store) = led_to(&primary).await;
    assert_eq!(store.traits().durability, Durability::Safe);
    let asked = |lease, label| request(lease, label, seconds(300));
    let (held, vacant) = (asked("held", "a"), asked("vacant", "a"));
    let token = take(&store, &held).await.token;
    let before = take(&store, &vacant).await.token;
    let released = store.release(&[giving_back(&vacant, before)]).await;
    assert!(released[0].is_ok(), "{released:?}");
    primary.kill();
    goes_on_at(&replica, &proxy, &store, &renewal(&held, token)).await;
    let rival = store.acquire(&asked("held", "b")).await;
    assert!(
        matches!(rival, Ok(Acquired::Held(ref lease)) if lease.token == token),
        "{rival:?}"
    );
    let after = take(&store, &asked("vacant", "b")).await.token;
    assert!(after > before, "{after} after {before}");
}

/// What is confirmed is at the semi-synchronous replica, and the other one may be promoted.
#[tokio::test]
async fn asynchronous_replica_of_mysql_beside_a_semi_synchronous_one_is_for_the_fence_alone() {
    let primary = Mariadb::semi_synchronous_primary().await.unwrap();
    let _one = primary.semi_synchronous_replica().await.unwrap();
    let (_proxy, scratch, store) = led_to(&primary).await;
    assert_eq!(store.traits().durability, Durability::Safe);
    let declared = || async { scratch.store().await.traits().durability };
    let (role, other) = match primary.family() {
        SqlFamily::Mariadb => ("master", "slave"),
        SqlFamily::Mysql => ("source", "replica"),
    };
    for (setting, lax, strict) in [
        // Without its replica it would go on at once; after ten seconds; and show to others what it may yet
        // lose.
        (format!("wait_no_{other}"), "OFF", "ON"),
        ("timeout".to_owned(), "10000", "86400000"),
        ("wait_point".to_owned(), "AFTER_COMMIT", "AFTER_SYNC"),
    ] {
        let set = |value| format!("SET GLOBAL rpl_semi_sync_{role}_{setting} = {value}");
        primary.execute(&set(lax)).await.unwrap();
        let durability = declared().await;
        assert!(
            matches!(durability, Durability::FenceOnly(why) if why.contains("no replica")),
            "{setting}: {durability:?}"
        );
        primary.execute(&set(strict)).await.unwrap();
        assert_eq!(declared().await, Durability::Safe, "{setting}");
    }
    let _other = primary.replica(&["server-id=3"]).await.unwrap();
    assert!(matches!(declared().await, Durability::FenceOnly(why) if why.contains("asynchronously")));
}

/// An asynchronous replica is promoted that has not got the last writes: what it has not got is lost, tokens
/// rise all the same, and the store has said before that only the fence can be relied on.
#[tokio::test]
async fn replica_of_mysql_that_lacks_the_last_writes_lets_no_token_fall() {
    let mut primary = Mariadb::primary(&[]).await.unwrap();
    let replica = primary.replica(&[]).await.unwrap();
    let (proxy, _scratch, store) = led_to(&primary).await;
    let Durability::FenceOnly(why) = store.traits().durability else {
        panic!("an asynchronous replica follows")
    };
    assert!(why.contains("asynchronously"), "{why}");
    let findings = store.examine().await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.subject == "durability" && finding.verdict == Verdict::Warning),
        "{findings:?}"
    );
    let asked = |lease, label| request(lease, label, seconds(300));
    let (kept, handed) = (asked("kept", "a"), asked("handed", "a"));
    let token = take(&store, &kept).await.token;
    let before = take(&store, &handed).await.token;
    let released = store.release(&[giving_back(&handed, before)]).await;
    assert!(released[0].is_ok(), "{released:?}");
    replica.catch_up(&primary).await.unwrap();
    replica.stop_following().await.unwrap();
    let lost = [asked("handed", "b"), asked("new", "b")];
    let mut tokens = Vec::new();
    for lost in &lost {
        tokens.push(take(&store, lost).await.token);
    }
    assert!(tokens[0] > before);
    primary.kill();
    goes_on_at(&replica, &proxy, &store, &renewal(&kept, token)).await;
    for (lost, token) in lost.iter().zip(tokens) {
        let renewed = store.renew(&[renewal(lost, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Lost(_))), "{renewed:?}");
        let next = take(&store, &asked(lost.name.as_str(), "c")).await;
        assert!(!next.again && next.token > token, "{next:?} after {token}");
    }
}

/// It answers like any other server, and what it says may be old. One that takes writes although it follows
/// keeps nothing apart.
#[tokio::test]
async fn replica_of_mysql_that_is_given_instead_of_the_primary_is_refused() {
    let primary = Mariadb::primary(&[]).await.unwrap();
    let replica = primary.replica(&[]).await.unwrap();
    let scratch = Scratch::on(&primary.address()).await;
    replica.catch_up(&primary).await.unwrap();
    let url = scratch.url_at("root", &replica.address());
    for refused in [
        MysqlStore::connect(&url).await.map(drop),
        MysqlStore::init(&url).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::ReadOnly, Certainty::NotApplied),
            "{error}"
        );
        for said in [
            replica.address().as_str(),
            "replica",
            "name the primary in the URL",
        ] {
            assert!(error.message.contains(said), "{error}");
        }
        assert!(!error.message.contains('\n'), "{error}");
    }
    replica.execute("SET GLOBAL read_only = OFF").await.unwrap();
    let store = MysqlStore::connect(&url).await.unwrap();
    let durability = store.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("follows another")),
        "{durability:?}"
    );
}

/// By a connection with a name, as each of several has one, MariaDB says of itself that it follows nobody.
#[tokio::test]
async fn mariadb_that_follows_by_a_named_connection_is_for_the_fence_alone() {
    let server = Mariadb::primary(&[]).await.unwrap();
    if server.family() == SqlFamily::Mysql {
        return;
    }
    let scratch = Scratch::on(&server.address()).await;
    assert_eq!(scratch.store().await.traits().durability, Durability::Safe);
    // Nobody is there, as when whom it follows is away for a moment.
    let follow = format!(
        "CHANGE MASTER 'other' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1; \
         START SLAVE 'other'",
        free_port()
    );
    server.execute(&follow).await.unwrap();
    let durability = scratch.store().await.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("follows another")),
        "{durability:?}"
    );
}

/// MySQL shows replicas to who has `PROCESS`: to others none is there, and nobody may call that safe.
#[tokio::test]
async fn role_that_may_not_see_replicas_of_mysql_is_told_so_and_what_would_show_them() {
    let primary = Mariadb::primary(&[]).await.unwrap();
    let scratch = Scratch::on(&primary.address()).await;
    let database = &scratch.database;
    let durability = async |user: &str| {
        let url = primary.uri_as(user, "x", database);
        MysqlStore::connect(&url).await.unwrap().traits().durability
    };
    let shown = [
        "GRANT PROCESS ON *.* TO ",
        "GRANT SELECT ON performance_schema.replication_connection_status TO ",
    ];
    for (user, first, then) in [("one", shown[0], shown[1]), ("other", shown[1], shown[0])] {
        let made = format!(
            "CREATE USER {user} IDENTIFIED BY 'x'; GRANT EXECUTE ON {database}.* TO {user}; \
             GRANT SELECT, INSERT, UPDATE ON {database}.* TO {user}"
        );
        scratch.sql(&made).await;
        if primary.family() == SqlFamily::Mysql {
            // Neither shows what the other does.
            for grant in [first, then] {
                let told = durability(user).await;
                assert!(
                    matches!(told, Durability::FenceOnly(why) if why.contains("GRANT PROCESS")),
                    "{told:?} before {grant}"
                );
                scratch.sql(&format!("{grant}{user}")).await;
            }
        }
        assert_eq!(durability(user).await, Durability::Safe);
    }
    if primary.family() == SqlFamily::Mysql {
        // It sees that others have the privilege, which is none of its own.
        let reads_all =
            "CREATE USER reader IDENTIFIED BY 'x'; GRANT SELECT, INSERT, UPDATE, EXECUTE ON *.* TO reader";
        scratch.sql(reads_all).await;
        let told = durability("reader").await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("GRANT PROCESS")),
            "{told:?}"
        );
    }
    let _replica = primary.replica(&[]).await.unwrap();
    let told = durability("one").await;
    assert!(
        matches!(told, Durability::FenceOnly(why) if why.contains("asynchronously")),
        "{told:?}"
    );
}
