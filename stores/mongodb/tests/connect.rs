//! Connecting: what is refused, how soon, and what no message ever holds.

use crate::common::{
    LEAST_ROLE, Scratch, name, persist, random_bits, request, seconds, take, who_may, with_database,
};
use mongodb::bson::doc;
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Verdict};
use tenure_mongodb::MongoStore;
use tenure_testkit::{Mongod, ReplicaSet, ScratchDir, SelfSigned, User, free_port};

const SECRET: &str = "hunter2-s3cret";

/// Far beyond the promise of 5 s, for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

async fn refused(url: &str) -> tenure_core::StoreError {
    let began = Instant::now();
    let error = MongoStore::connect(url)
        .await
        .expect_err(&format!("{url} was accepted"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    assert!(!error.message.contains('\n'), "{error}");
    assert_eq!(error.certainty, Certainty::NotApplied);
    error
}

#[tokio::test]
async fn unreachable_server_is_named_without_the_password() {
    let port = free_port();
    let error = refused(&format!("mongodb://me:{SECRET}@127.0.0.1:{port}/db")).await;
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
}

/// All three are the same to the driver: no server that it could ask.
#[tokio::test]
async fn why_no_server_could_be_asked_is_said() {
    let set = ReplicaSet::shared().await.uri();
    let closed = free_port();
    let misnamed = with_database(
        set.split('?').next().unwrap_or_default(),
        "db",
        "replicaSet=another",
    );
    for (url, why) in [
        (format!("mongodb://127.0.0.1:{closed}/db"), "Connection refused"),
        (with_database(&set, "db", "tls=true"), "tls handshake"),
        (misnamed, "replicaSet"),
    ] {
        let mut error = refused(&url).await;
        for _again in 0..2 {
            if error.message.contains(why) {
                break;
            }
            // The driver learns it within the time for which it looks for a server, unless the machine is
            // slow.
            error = refused(&url).await;
        }
        assert_eq!(error.fault, Fault::Unreachable);
        assert!(error.message.contains(why), "{url}: {error}");
    }
}

#[tokio::test]
async fn both_sides_of_a_connection_to_mongodb_are_known_by_their_certificates() {
    let [theirs, ours] = ["theirs", "ours"].map(SelfSigned::new);
    let server = Mongod::with_tls(&theirs, &ours).await.expect("a server with TLS");
    let named = server.uri().replace("127.0.0.1", "localhost");
    let at = |options: &str| with_database(&named, "db", &format!("tls=true&{options}"));
    let (trusted, shown) = (
        format!("tlsCAFile={}", theirs.file),
        format!("tlsCertificateKeyFile={}", ours.both),
    );
    let store = MongoStore::connect(&at(&format!("{trusted}&{shown}")))
        .await
        .expect("known to each other");
    let granted = take(&store, &request("job", "one", seconds(60))).await;
    let lease = store
        .get(&name("job"))
        .await
        .expect("it answers")
        .expect("a lease");
    assert_eq!(lease.token, granted.token);
    let stranger = format!("tlsCAFile={}&{shown}", ours.file);
    for unknown in [&trusted, &shown, &stranger] {
        let error = refused(&at(unknown)).await;
        assert_eq!(error.fault, Fault::Unreachable, "{unknown}: {error}");
    }
    let error = refused(&at(&shown)).await;
    assert!(error.message.contains("by tlsCAFile="), "{error}");
    // The certificate is another host's.
    let known = format!("tls=true&{trusted}&{shown}");
    let error = refused(&with_database(&server.uri(), "db", &known)).await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    assert!(error.message.contains("name the host"), "{error}");
}

/// The driver would wait for a writer of the pipe without end, and trust nobody where a file holds no
/// certificate.
#[tokio::test]
async fn useless_files_for_tls_are_told_by_their_option() {
    let set = ReplicaSet::shared().await.uri();
    let (folder, own) = (ScratchDir::new("certificates"), SelfSigned::new("certificates"));
    let pipe = folder.pipe("pipe.pem").display().to_string();
    for (option, file, why) in [
        ("tlsCAFile", &pipe, "no plain file"),
        (
            "tlsCAFile",
            &folder.join("none.pem").display().to_string(),
            "No such file",
        ),
        ("tlsCAFile", &own.key, "holds no certificate"),
        ("tlsCertificateKeyFile", &pipe, "no plain file"),
    ] {
        let error = refused(&with_database(&set, "db", &format!("tls=true&{option}={file}"))).await;
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(
            error.message.contains(option) && error.message.contains(why),
            "{error}"
        );
    }
}

/// A capped one lost a lease that was held, when it was full, and gave it to another; with a collation `Job`
/// and `job` were one record.
#[tokio::test]
async fn collection_in_which_two_could_hold_a_lease_is_refused() {
    for (kind, options) in [
        ("is a view", doc! { "viewOn": "other", "pipeline": [] }),
        ("is a timeseries", doc! { "timeseries": { "timeField": "at" } }),
        ("is capped", doc! { "capped": true, "size": 4096 }),
        (
            "has a collation",
            doc! { "collation": { "locale": "en", "strength": 2 } },
        ),
    ] {
        let scratch = Scratch::new(ReplicaSet::shared().await.uri());
        let mut creation = doc! { "create": "job_leases" };
        creation.extend(options);
        let database = scratch.client().await.database(&scratch.database);
        database.run_command(creation).await.expect("a collection");
        let error = refused(&scratch.url("")).await;
        assert_eq!(error.fault, Fault::Unsupported, "{error}");
        for part in [kind, "job_leases", "a plain collection"] {
            assert!(error.message.contains(part), "{part} is not in: {error}");
        }
        // Another one of the same database will do.
        let _store = MongoStore::connect(&scratch.url("collection=others"))
            .await
            .expect("a store");
    }
}

/// As the README has it grant no more than finding.
#[tokio::test]
async fn collection_in_which_two_could_hold_a_lease_is_refused_to_the_least_role() {
    let set = ReplicaSet::with_auth(tenure_testkit::Size::One)
        .await
        .expect("a set");
    let url = who_may(&set, SECRET, &LEAST_ROLE).await;
    let administrator = mongodb::Client::with_uri_str(set.uri()).await.expect("a client");
    let database = administrator.database("bank");
    // There is none yet.
    drop(MongoStore::connect(&url).await.expect("connects"));
    for (kind, options) in [
        ("is capped", doc! { "capped": true, "size": 4096 }),
        (
            "has a collation",
            doc! { "collation": { "locale": "en", "strength": 2 } },
        ),
    ] {
        let mut creation = doc! { "create": "job_leases" };
        creation.extend(options);
        // Empty, and with something in it.
        for count in 0..2 {
            database
                .run_command(creation.clone())
                .await
                .expect("a collection");
            let leases = database.collection::<mongodb::bson::Document>("job_leases");
            for _document in 0..count {
                leases.insert_one(doc! {}).await.expect("a document");
            }
            let error = refused(&url).await;
            assert_eq!(error.fault, Fault::Unsupported, "{error}");
            assert!(error.message.contains(kind), "{error}");
            leases.drop().await.expect("dropped");
        }
    }
    let store = MongoStore::connect(&url).await.expect("connects");
    take(&store, &request("job", "holder", seconds(60))).await;
    let findings = store.examine().await.expect("an examination");
    let collection = findings.iter().find(|finding| finding.subject == "collection");
    assert!(
        collection.is_some_and(|collection| collection.verdict == Verdict::Good),
        "{findings:#?}"
    );
    drop(MongoStore::connect(&url).await.expect("a plain one is taken"));
}

/// A server is told it in milliseconds of 32 bits, with the time for a request.
#[tokio::test]
async fn time_to_look_for_a_primary_that_no_server_could_be_told_is_refused() {
    let uri = ReplicaSet::shared().await.uri();
    let error = refused(&with_database(&uri, "db", "serverSelectionTimeoutMS=99999999999")).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("serverSelectionTimeoutMS"), "{error}");
}

/// The driver leaves out both, and says nothing of why.
#[tokio::test]
async fn servers_without_replication_in_one_url_are_told_as_that() {
    let (one, other) = (
        Mongod::start().await.expect("a server"),
        Mongod::start().await.expect("a server"),
    );
    let url = format!("mongodb://{},{}/db", one.address(), other.address());
    let mut error = refused(&url).await;
    for _again in 0..2 {
        if error.message.contains("members of one") {
            break;
        }
        // On a slow machine it has not heard of both in time.
        error = refused(&url).await;
    }
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    assert!(error.message.contains("members of one"), "{error}");
}

#[tokio::test]
async fn silent_server_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let error = refused(&format!("mongodb://me:{SECRET}@{address}/db")).await;
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn url_that_cannot_be_read_is_refused_without_showing_it() {
    let urls = [
        format!("mongodb://me:{SECRET}@"),
        // Cut off before the host: the password stands where a port would.
        format!("mongodb://me:{SECRET}"),
        format!("mongodb://me:{SECRET}/db"),
        format!("mongodb://{SECRET}:x"),
        format!("mongodb://127.0.0.1/db?authMechanism={SECRET}"),
        format!("mongodb://me:{SECRET}/x@127.0.0.1/db"),
        format!("mongodb://me:{SECRET}@127.0.0.1:notaport/db"),
        format!("mongodb://me:{SECRET}@127.0.0.1:99999/db"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?w=%zz"),
        format!("mongodb://me:{SECRET}@127.0.0.1/d b.c"),
        format!("mongodb://me:%{SECRET}@127.0.0.1/db"),
        format!("mongodb://me@{SECRET}@127.0.0.1/db"),
        // Within a character: the driver panics here, and quotes it.
        format!("mongodb://me:50%é{SECRET}@127.0.0.1/db"),
        format!("mongodb://me:50%a€{SECRET}@127.0.0.1/db"),
        // Host, database and collection stand in messages, which are one line.
        format!("mongodb://me:{SECRET}@line\nbreak/db"),
        format!("mongodb://me:{SECRET}@127.0.0.1/line%0Abreak"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?collection=line%0Abreak"),
        format!("postgres://me:{SECRET}@127.0.0.1/db"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?collection="),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?collection=a$b"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?collection=a&collection=b"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?purgeAfter=soon"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?purgeAfter=30d&purgeAfter=90d"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?purgeAfter=1h"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?purgeAfter=99999999999999999999d"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db?serverSelectionTimeoutMS=never"),
        String::new(),
        "mongodb://".to_owned(),
        // A list of URLs.
        "mongodb://a,mongodb://b/db".to_owned(),
    ];
    for url in urls {
        assert_eq!(refused(&url).await.fault, Fault::Invalid, "{url}");
    }
}

#[tokio::test]
async fn weaker_confirmation_than_promised_is_refused() {
    let uri = ReplicaSet::shared().await.uri();
    for (option, named) in [
        ("w=1", "w=1"),
        ("w=0", "w=0"),
        ("w=2", "w=2"),
        // Not by its name, which may be a part of a password.
        ("w=backup", "w by the name of a tag"),
        ("journal=false", "journal=false"),
        // Nobody would know which server has confirmed.
        ("tls=true&tlsInsecure=true", "tlsInsecure"),
        (
            "tls=true&tlsAllowInvalidCertificates=true",
            "tlsAllowInvalidCertificates",
        ),
    ] {
        let error = refused(&with_database(&uri, "never", option)).await;
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(named), "{error}");
    }
}

#[tokio::test]
async fn stronger_options_and_other_preferences_are_taken() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    for options in [
        "w=majority&journal=true",
        "readPreference=secondary&retryWrites=true&readConcernLevel=local",
    ] {
        let store = MongoStore::connect(&scratch.url(options)).await.expect(options);
        let answer = store.acquire(&request(options, "holder", seconds(60))).await;
        assert!(matches!(answer, Ok(Acquired::Granted(_))), "{answer:?}");
        assert_eq!(
            store
                .get(&crate::common::name(options))
                .await
                .expect("a read")
                .map(|lease| lease.terms),
            Some(1)
        );
    }
}

#[tokio::test]
async fn credentials_and_privileges_are_told_apart() {
    let server = Mongod::with_auth().await.expect("a server");
    let database = format!("tenure-{:016x}", random_bits());
    let reader = server
        .create_user("reader", SECRET, &[("read", &database)])
        .await
        .expect("a user");
    let writer = server
        .create_user("writer", SECRET, &[("readWrite", &database)])
        .await
        .expect("a user");
    let url = |user: &User| with_database(&server.uri_as(user), &database, "");

    for wrong in [
        User::new("reader", &format!("{SECRET}-wrong")),
        User::new("nobody", SECRET),
    ] {
        let error = refused(&url(&wrong)).await;
        assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
        assert!(error.message.contains(&server.address()), "{error}");
    }
    let nobody = refused(&with_database(&server.uri_without_credentials(), &database, "")).await;
    assert_eq!(nobody.fault, Fault::Unauthenticated, "{nobody}");
    assert!(nobody.message.contains("names no user"), "{nobody}");

    let writing = MongoStore::connect(&url(&writer))
        .await
        .expect("the writer connects");
    let asked = request("job", "holder", seconds(60));
    assert!(matches!(writing.acquire(&asked).await, Ok(Acquired::Granted(_))));
    assert!(!format!("{writing:?}").contains(SECRET), "{writing:?}");

    let reading = MongoStore::connect(&url(&reader))
        .await
        .expect("the reader connects, to look");
    assert!(reading.get(&asked.name).await.expect("a read").is_some());
    // Also by the URL of those who write, who make the index.
    let shared = with_database(&server.uri_as(&reader), &database, "purgeAfter=30d");
    let looking = MongoStore::connect(&shared)
        .await
        .expect("the reader connects, to look");
    assert!(looking.get(&asked.name).await.expect("a read").is_some());
    let error = reading
        .acquire(&request("job", "other", seconds(60)))
        .await
        .expect_err("a reader cannot take");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Forbidden, Certainty::NotApplied),
        "{error}"
    );
    for part in ["job", "update", "role"] {
        assert!(error.message.contains(part), "\"{part}\" is not named: {error}");
    }
    let findings = reading.examine().await.expect("an examination");
    let bad = findings
        .iter()
        .find(|finding| finding.subject == "privileges" && finding.verdict == Verdict::Bad);
    assert!(
        bad.is_some_and(|bad| bad.detail.contains("insert, update")),
        "{findings:?}"
    );
    let findings = writing.examine().await.expect("an examination");
    assert!(
        findings.iter().all(|finding| finding.verdict != Verdict::Bad),
        "{findings:?}"
    );
}

/// The very role that the README tells to create: enough, and no more.
#[tokio::test]
async fn least_role_of_the_readme_is_enough() {
    let set = ReplicaSet::with_auth(tenure_testkit::Size::One)
        .await
        .expect("a set");
    let url = who_may(&set, SECRET, &LEAST_ROLE).await;
    let store = MongoStore::connect(&url).await.expect("connects");
    let asked = request("job", "holder", seconds(60));
    let grant = crate::common::take(&store, &asked).await;
    let _watch = store
        .watch(
            &tenure_core::Scope::Name(asked.name.clone()),
            tenure_core::Interest::Everything,
        )
        .await
        .expect("a watch");
    let renewals = [
        crate::common::renewal(&asked, grant.token),
        crate::common::renewal(&asked, grant.token),
    ];
    assert!(store.renew(&renewals).await.iter().all(Result::is_ok));
    assert!(store.get(&asked.name).await.expect("a read").is_some());
    let released = store
        .release(&[crate::common::giving_back(&asked, grant.token)])
        .await
        .remove(0);
    assert_eq!(released, Ok(tenure_core::Released::Vacated));
    let findings = store.examine().await.expect("an examination");
    assert!(
        findings.iter().all(|finding| finding.verdict != Verdict::Bad),
        "{findings:?}"
    );
}

/// Whoever blocks writes, as for a move to another cluster, allows them again. Who waits until then is as
/// safe afterwards as everybody else.
#[tokio::test]
async fn a_block_of_writes_ends_no_campaign_and_leaves_the_store_its_mark() {
    let set = ReplicaSet::with_auth(tenure_testkit::Size::One)
        .await
        .expect("a set");
    let user = set
        .create_user("service", SECRET, &[("readWrite", "bank")])
        .await
        .expect("the user");
    let url = with_database(&set.uri_as(&user), "bank", "");
    let store = MongoStore::connect(&url).await.expect("connects");
    let administrator = mongodb::Client::with_uri_str(set.uri()).await.expect("a client");
    let block = async |global: bool| {
        let block = doc! { "setUserWriteBlockMode": 1, "global": global };
        administrator
            .database("admin")
            .run_command(block)
            .await
            .expect("an answer");
    };
    block(true).await;
    let asked = request("job", "holder", seconds(60));
    let meanwhile = MongoStore::connect(&url).await.expect("connects meanwhile");
    for store in [&store, &meanwhile] {
        let error = store.acquire(&asked).await.expect_err("writes are blocked");
        assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
        assert!(!error.fault.is_final(), "it ends the campaign: {error}");
        assert!(error.message.contains("setUserWriteBlockMode"), "{error}");
    }
    block(false).await;
    persist(&store, &asked).await;
    let findings = store.examine().await.expect("an examination");
    let marked = findings.iter().find(|finding| finding.subject == "store");
    assert!(
        marked.is_some_and(|finding| finding.verdict == Verdict::Good),
        "{findings:?}"
    );
}

/// It would stand in every message.
#[tokio::test]
async fn database_whose_name_is_longer_than_the_server_takes_is_refused() {
    let uri = ReplicaSet::shared().await.uri();
    let error = refused(&with_database(&uri, &"d".repeat(64), "")).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("64 bytes"), "{error}");
}
