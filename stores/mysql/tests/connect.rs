//! Connecting: what is refused, how soon, and what no message ever holds.
use crate::common::{Scratch, family, only_the_cleaner_cleans_up, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_core::{
    Certainty, Durability, Fault, Interest, LeaseStore, Leases, Scope, StoreError, Verdict, WatchSource,
};
use tenure_mysql::{MysqlFence, MysqlStore};
use tenure_testkit::{Mariadb, ScratchDir, SqlFamily, free_port};

const SECRET: &str = "hunter2-s3cret";

/// Far beyond the promise of 5 s, for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

async fn refused(url: &str) -> StoreError {
    let began = Instant::now();
    let error = MysqlStore::connect(url)
        .await
        .expect_err(&format!("{url} was accepted"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    assert!(!error.message.contains('\n'), "{error}");
    assert_eq!(error.certainty, Certainty::NotApplied);
    error
}

#[tokio::test]
async fn unreachable_server_of_mysql_is_named_without_the_password() {
    let port = free_port();
    let error = refused(&format!("mysql://me:{SECRET}@127.0.0.1:{port}/db")).await;
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn silent_server_of_mysql_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let error = refused(&format!("mariadb://me:{SECRET}@{address}/db")).await;
    assert!(
        matches!(error.fault, Fault::Unreachable | Fault::TimedOut),
        "{error}"
    );
    assert!(error.message.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn url_of_mysql_that_cannot_be_read_is_refused_without_showing_it() {
    let urls = [
        format!("mysql://me:{SECRET}@"),
        format!("mysql://me:{SECRET}@127.0.0.1"),
        format!("mysql://me:{SECRET}@127.0.0.1/"),
        format!("mysql://me:{SECRET}@127.0.0.1:notaport/db"),
        format!("mysql://me:{SECRET}@127.0.0.1:99999/db"),
        format!("mysql://me:{SECRET}@127.0.0.1:0/db"),
        // Special characters of a password that should have been escaped: what follows them stands elsewhere.
        format!("mysql://me:x@{SECRET}@127.0.0.1/db"),
        format!("mysql://me:x@127.0.0.1/{SECRET}@127.0.0.1/db"),
        format!("mysql://me:x@127.0.0.1/{SECRET}/127.0.0.1/db"),
        format!("mysql://me:x@127.0.0.1/{SECRET}?x@127.0.0.1/db"),
        format!("mysql://me:{SECRET}@line%0Abreak/db"),
        format!("mysql://me:{SECRET}@127.0.0.1/line%0Abreak"),
        format!("mysql://me:{SECRET}@[::1/db"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?no_such_option={SECRET}"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?{SECRET}"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?ssl-mode=often"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?ssl-ca=/no/such/file"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?ssl-cert=/mine.pem"),
        format!("mysql://me:{SECRET}@127.0.0.1/db?ssl-mode=verify-identity&ssl-mode=disabled"),
        format!("postgres://me:{SECRET}@127.0.0.1/db"),
        // A list of URLs.
        "mysql://a,mysql://b/db".to_owned(),
        String::new(),
    ];
    for url in urls {
        assert_eq!(refused(&url).await.fault, Fault::Invalid, "{url}");
    }
}

/// Connecting says what is missing, and who may only read may connect, and is told when it would write.
#[tokio::test]
async fn credentials_and_privileges_of_mysql_are_told_apart() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let database = &scratch.database;
    let users: String = ["stranger", "reader", "caller", "writer", "cleaner"]
        .iter()
        .map(|user| format!("CREATE USER {user} IDENTIFIED BY '{SECRET}';"))
        .collect();
    scratch
        .sql(&format!(
            "{users} GRANT SELECT ON {database}.* TO reader, cleaner; GRANT DELETE ON {database}.tenure_leases TO cleaner; GRANT SELECT, EXECUTE ON {database}.* TO caller; \
             GRANT EXECUTE ON {database}.* TO writer; GRANT SELECT ON {database}.tenure_setup TO writer; \
             GRANT SELECT, INSERT, UPDATE ON {database}.tenure_leases TO writer; \
             GRANT SELECT, INSERT, UPDATE ON {database}.tenure_fences TO writer; \
             GRANT SELECT, INSERT, UPDATE ON {database}.tenure_refusals TO writer"
        ))
        .await;
    let url = |user: &str, password: &str| server.uri_as(user, password, database);
    assert_eq!(
        refused(&url("reader", "wrong")).await.fault,
        Fault::Unauthenticated
    );
    assert_eq!(
        refused(&url("nobody", SECRET)).await.fault,
        Fault::Unauthenticated
    );
    assert_eq!(refused(&url("stranger", SECRET)).await.fault, Fault::Forbidden);
    scratch.sql("ALTER USER reader WITH MAX_USER_CONNECTIONS 1").await;
    let only = Mariadb::client(&url("reader", SECRET)).await.unwrap();
    assert_eq!(refused(&url("reader", SECRET)).await.fault, Fault::Busy);
    drop(only);
    scratch.sql("ALTER USER reader WITH MAX_USER_CONNECTIONS 0").await;
    assert_eq!(
        refused(&format!("mysql://root@{}/no_such_database", server.address()))
            .await
            .fault,
        Fault::Invalid
    );
    let asked = request("job", "a", seconds(60));
    for user in ["reader", "caller"] {
        let store = MysqlStore::connect(&url(user, SECRET)).await.unwrap();
        assert_eq!(store.get(&asked.name).await.unwrap(), None);
        let error = store.acquire(&asked).await.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Forbidden, Certainty::NotApplied),
            "{error}"
        );
        let findings = store.examine().await.unwrap();
        let bad =
            |finding: &tenure_core::Finding| finding.verdict == Verdict::Bad && finding.repair.is_some();
        assert!(findings.iter().any(bad), "{findings:?}");
    }
    let writer = MysqlStore::connect(&url("writer", SECRET)).await.unwrap();
    take(&writer, &request("other", "a", seconds(60))).await;
    let cleaner = MysqlStore::connect(&url("cleaner", SECRET)).await.unwrap();
    only_the_cleaner_cleans_up(&writer, &cleaner).await;
    let findings = writer.examine().await.unwrap();
    let verdict = |subject: &str| {
        let found = findings.iter().find(|finding| finding.subject == subject);
        found.map(|finding| finding.verdict)
    };
    // MySQL does not show to this role who reads the binary log.
    let durability = match family() {
        SqlFamily::Mariadb => Verdict::Good,
        SqlFamily::Mysql => Verdict::Warning,
    };
    for (subject, expected) in [
        ("durability", durability),
        ("privileges", Verdict::Good),
        ("clock", Verdict::Good),
    ] {
        assert_eq!(verdict(subject), Some(expected), "{subject}: {findings:?}");
    }
}

/// What stands escaped in the URL is meant as it is.
#[tokio::test]
async fn credentials_and_database_of_mysql_may_have_any_letters() {
    let (user, password, database) = ("a@b:c/d?é", "p@ss:w/rd?100%&ü='", "bank 1-é?");
    let server = Mariadb::start().await.unwrap();
    server
        .execute(&format!(
            "CREATE DATABASE `{database}`; CREATE USER `{user}` IDENTIFIED BY '{}'; GRANT ALL ON `{database}`.* TO `{user}`",
            password.replace('\'', "''")
        ))
        .await
        .unwrap();
    let escaped = |text: &str| {
        text.bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect::<String>()
    };
    let url = format!(
        "mysql://{}:{}@{}/{}",
        escaped(user),
        escaped(password),
        server.address(),
        escaped(database)
    );
    MysqlStore::init(&url).await.unwrap();
    let store = MysqlStore::connect(&url).await.unwrap();
    take(&store, &request("job", "a", seconds(60))).await;
}

/// What was not set up, or is another program's, or another version's, is refused with the way out, and left
/// as it is.
#[tokio::test]
async fn tables_that_are_not_ours_are_refused_and_left_as_they_are() {
    let address = Mariadb::shared().await.address();
    let bare = Scratch::bare(&address).await;
    let error = refused(&bare.url()).await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
    bare.sql("CREATE TABLE tenure_leases (name TEXT, colour TEXT)")
        .await;
    assert_eq!(refused(&bare.url()).await.fault, Fault::Unsupported);
    let refusal = MysqlStore::init(&bare.url()).await.unwrap_err();
    assert_eq!(refusal.fault, Fault::Unsupported, "{refusal}");
    assert!(
        refusal.message.contains("a database of their own") && !refusal.message.contains("store init"),
        "{refusal}"
    );
    bare.sql("SELECT colour FROM tenure_leases").await;
    let version = Scratch::on(&address).await;
    version.sql("UPDATE tenure_setup SET version = 99").await;
    let error = refused(&version.url()).await;
    assert!(error.message.contains("99"), "{error}");
    // A set-up of an earlier version takes nothing back.
    MysqlStore::init(&version.url()).await.unwrap();
    assert!(refused(&version.url()).await.message.contains("99"));
}

/// Of an engine without transactions, each statement is one for itself: whoever is behind decides by what is
/// no longer so.
#[tokio::test]
async fn tables_of_an_engine_without_transactions_are_refused() {
    let scratch = Scratch::new().await;
    for table in ["tenure_leases", "tenure_fences"] {
        let made = |engine: &str| format!("ALTER TABLE {table} ENGINE = {engine}");
        scratch.sql(&made("MEMORY")).await;
        let refused = [
            refused(&scratch.url()).await,
            match MysqlFence::connect(&scratch.url(), Leases::Here).await {
                Err(error) => error,
                other => panic!("{other:?}"),
            },
        ];
        for error in refused {
            assert_eq!(error.fault, Fault::Unsupported, "{error}");
            for said in ["MEMORY", &made("InnoDB")] {
                assert!(error.message.contains(said), "{error}");
            }
        }
        scratch.sql(&made("InnoDB")).await;
    }
    // Of a view the server names none; whatever is behind it may have none.
    let view = "RENAME TABLE tenure_leases TO behind; CREATE VIEW tenure_leases AS SELECT * FROM behind";
    scratch.sql(view).await;
    let error = refused(&scratch.url()).await;
    assert!(error.message.contains("view"), "{error}");
    let table = "DROP VIEW tenure_leases; RENAME TABLE behind TO tenure_leases";
    scratch.sql(table).await;
    scratch.sql("ALTER TABLE tenure_refusals ENGINE = MEMORY").await;
    take(&scratch.store().await, &request("job", "a", seconds(60))).await;
}

/// Sets up, again where others kept a table for longer than a change of it waits.
pub async fn set_up_in_turn(url: &str) {
    for _try in 0..SET_UPS_MAX {
        match MysqlStore::init(url).await {
            Err(error) if error.fault == Fault::Busy => {}
            made => return made.unwrap(),
        }
    }
    panic!("a table was kept from each of {SET_UPS_MAX} set-ups");
}

/// How often a table may be kept from a set-up on a slow machine.
const SET_UPS_MAX: u32 = 5;

/// Four at once, and again over leases that are held: nothing is lost, and nobody's request fails.
#[tokio::test]
async fn set_up_of_mysql_may_be_repeated_and_race_and_keeps_what_is_there() {
    let scratch = Scratch::bare(&Mariadb::shared().await.address()).await;
    for round in 0..2 {
        let mut racing = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let url = scratch.url();
            racing.spawn(async move { set_up_in_turn(&url).await });
        }
        racing.join_all().await;
        let store = scratch.store().await;
        let asked = request("job", "a", seconds(60));
        match round {
            0 => drop(take(&store, &asked).await),
            _ => assert!(store.get(&asked.name).await.unwrap().is_some()),
        }
    }
    let printed = MysqlStore::init_statements(&scratch.url()).unwrap();
    assert!(
        printed.starts_with("-- Tenure") && printed.contains("DELIMITER $$\n"),
        "{printed}"
    );
    let unfilled = |hole: &str| hole.chars().take(3).all(|c| c.is_ascii_lowercase());
    assert!(!printed.split('{').skip(1).any(unfilled), "{printed}");
}

/// A server that can forget what it has confirmed is told of.
#[tokio::test]
async fn mysql_that_forgets_is_for_the_fence_alone() {
    for (settings, word) in [
        (
            &["innodb-flush-log-at-trx-commit=2"][..],
            "innodb_flush_log_at_trx_commit",
        ),
        (&["log-bin=binlog", "server-id=1", "sync-binlog=0"], "sync_binlog"),
        (&["innodb-doublewrite=OFF"], "innodb_doublewrite"),
        (&["log-bin=binlog", "server-id=1", "sync-binlog=1"], ""),
    ] {
        let server = Mariadb::with_settings(settings).await.unwrap();
        let store = Scratch::on(&server.address()).await.store().await;
        take(&store, &request("job", "a", seconds(60))).await;
        let (durability, findings) = (store.traits().durability, store.examine().await.unwrap());
        let found = findings
            .iter()
            .find(|finding| finding.subject == "durability")
            .unwrap();
        match durability {
            Durability::Safe => assert_eq!(("", Verdict::Good), (word, found.verdict), "{settings:?}"),
            Durability::FenceOnly(why) => {
                assert!(!word.is_empty() && why.contains(word), "{settings:?}: {why}");
                assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
            }
        }
    }
}

/// A set-up on which a lease could not be decided, or a read be old, is refused.
#[tokio::test]
async fn settings_of_mysql_that_decide_nothing_are_refused() {
    let server = Mariadb::with_settings(&["read-only=ON"]).await.unwrap();
    let scratch = Scratch::bare(&server.address()).await;
    assert_eq!(refused(&scratch.url()).await.fault, Fault::ReadOnly);
    assert_eq!(
        MysqlStore::init(&scratch.url()).await.unwrap_err().fault,
        Fault::ReadOnly
    );
    server
        .execute("SET GLOBAL read_only = OFF; SET GLOBAL autocommit = 0")
        .await
        .unwrap();
    let error = refused(&scratch.url()).await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("autocommit"), "{error}");
    server.execute("SET GLOBAL autocommit = 1").await.unwrap();
    MysqlStore::init(&scratch.url()).await.unwrap();
    scratch.store().await;
}

/// Tables that were set up before there was such a procedure, or a role that may not call it: everything else
/// works, and the examination says what is missing.
#[tokio::test]
async fn set_up_of_mysql_without_the_procedure_that_wakes_is_said() {
    let scratch = Scratch::bare(&Mariadb::shared().await.address()).await;
    MysqlStore::init(&scratch.url()).await.unwrap();
    let store = scratch.store().await;
    assert_eq!(watch_verdict(&store).await, (Verdict::Good, None));
    assert_eq!(store.traits().watch, WatchSource::Poll);
    scratch.sql("DROP PROCEDURE tenure_wait_1").await;
    let store = scratch.store().await;
    assert_eq!(store.traits().watch, WatchSource::Absent);
    let Err(error) = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
    else {
        panic!("a watch that is told nothing")
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
    let (verdict, repair) = watch_verdict(&store).await;
    assert_eq!(verdict, Verdict::Warning);
    assert!(repair.unwrap().contains("tenure store init"));
    MysqlStore::init(&scratch.url()).await.unwrap();
    let store = scratch.store().await;
    assert!(
        store
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .is_ok()
    );
}

async fn watch_verdict(store: &MysqlStore) -> (Verdict, Option<String>) {
    let findings = store.examine().await.unwrap();
    let watch = findings.into_iter().find(|finding| finding.subject == "watch");
    let watch = watch.expect("the watch is examined");
    (watch.verdict, watch.repair)
}

/// Encryption is used where it is demanded, and whoever verifies is not talked to by anybody else.
#[tokio::test]
async fn encryption_of_mysql_is_used_and_verified_where_that_is_asked_for() {
    let server = Mariadb::with_encryption().await.unwrap();
    let root = server.root_certificate();
    server
        .execute("CREATE DATABASE jobs; CREATE USER secret REQUIRE SSL; GRANT ALL ON jobs.* TO secret")
        .await
        .unwrap();
    let at = |host: &str, options: &str| format!("mysql://secret@{host}:{}/jobs?{options}", server.port());
    MysqlStore::init(&at("127.0.0.1", "ssl-mode=required"))
        .await
        .unwrap();
    let verified = format!("ssl-mode=verify-identity&ssl-ca={}", root.display());
    let chain = format!("ssl-ca={}", root.display());
    for (host, options) in [
        ("127.0.0.1", ""),
        ("127.0.0.1", "ssl-mode=preferred"),
        ("127.0.0.1", "ssl-mode=required"),
        ("localhost", chain.as_str()),
        ("localhost", verified.as_str()),
    ] {
        let store = MysqlStore::connect(&at(host, options)).await.unwrap();
        take(&store, &request("job", "a", seconds(60))).await;
        let asked = request("job", "a", seconds(60));
        drop(store.get(&asked.name).await.unwrap());
        let lease = store.get(&asked.name).await.unwrap().unwrap();
        store
            .release(&[tenure_core::Release {
                name: lease.name,
                incarnation: lease.holder.incarnation,
                token: lease.token,
                attempt: lease.attempt,
            }])
            .await
            .remove(0)
            .unwrap();
    }
    for (host, options, way_out) in [
        // The server refuses who does not encrypt; another name than the certificate's; a root that did not
        // sign it.
        ("127.0.0.1", "ssl-mode=disabled", "ssl-mode=required"),
        ("127.0.0.1", verified.as_str(), "name the host"),
        ("localhost", "ssl-mode=verify-ca", "by ssl-ca="),
    ] {
        let error = refused(&at(host, options)).await;
        assert!(error.message.contains(way_out), "{options}: {error}");
        assert!(
            matches!(error.fault, Fault::Unreachable | Fault::Unauthenticated),
            "{options}: {error}"
        );
    }
    let folder = ScratchDir::new("roots");
    for useless in [
        format!("{chain}&ssl-mode=disabled"),
        format!("{chain}&{chain}"),
        format!("ssl-ca={}", folder.pipe("root.pem").display()),
    ] {
        let error = refused(&at("localhost", &useless)).await;
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("ssl-ca"), "{error}");
    }
    // Whoever does not encrypt is a login that is refused here, too: by another number from MySQL.
    server
        .execute("SET GLOBAL require_secure_transport = ON")
        .await
        .unwrap();
    let error = refused(&at("127.0.0.1", "ssl-mode=disabled")).await;
    assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
    assert!(error.message.contains("ssl-mode=required"), "{error}");
    let plain = Mariadb::shared().await;
    let error = refused(&format!(
        "mysql://root@{}/mysql?ssl-mode=required",
        plain.address()
    ))
    .await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
}
