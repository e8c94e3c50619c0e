//! What traits and examination say of servers that keep less than their main settings promise.

use crate::common::{Scratch, connection, random_bits};
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::{Durability, Finding, LeaseStore, Verdict};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer, eventually_async};

const BUILDS: [RedisBuild; 2] = [RedisBuild::Redis, RedisBuild::Valkey];

async fn durability(server: &RedisServer) -> Durability {
    let store = RedisStore::connect(&server.url()).await.expect("connects");
    store.traits().durability
}

async fn configure(server: &RedisServer, setting: &str, value: &str) {
    let mut connection = connection(&server.url()).await;
    let mut command = redis::cmd("CONFIG");
    let set = command.arg(&["SET", setting, value]);
    let set: String = set.query_async(&mut connection).await.expect("asked");
    assert_eq!(set, "OK");
}

async fn examined(server: &RedisServer) -> Finding {
    let store = RedisStore::connect(&server.url()).await.expect("connects");
    found(&store, "durability").await
}

async fn found(store: &RedisStore, subject: &str) -> Finding {
    let findings = store.examine().await.expect("an examination");
    let found = findings.into_iter().find(|finding| finding.subject == subject);
    found.expect("a finding")
}

/// A server that is safe but for its replica.
async fn with_a_replica(build: RedisBuild) -> (RedisServer, RedisServer) {
    let server = RedisServer::start(RedisOptions::durable().of(build))
        .await
        .expect("a server");
    let settings = format!("--replicaof 127.0.0.1 {}", server.port());
    let replica = RedisServer::start(RedisOptions::with(&settings).of(build))
        .await
        .expect("a replica");
    is_followed(&server, 1).await;
    (server, replica)
}

/// Waits until the server has so many replicas.
async fn is_followed(server: &RedisServer, replicas: usize) {
    let connected = format!("connected_slaves:{replicas}\r");
    eventually_async(Duration::from_secs(60), "its replicas", || async {
        let told = server.ask_all("INFO replication").expect("asked");
        told.contains(&connected).then_some(())
    })
    .await;
}

/// With `appendfsync always` alone it would be safe: while a child process runs, such a server syncs nothing.
#[tokio::test]
async fn server_that_does_not_sync_while_it_rewrites_says_fence_only() {
    let settings = "--appendonly yes --appendfsync always --no-appendfsync-on-rewrite yes";
    for build in BUILDS {
        let server = RedisServer::start(RedisOptions::with(settings).of(build))
            .await
            .expect("a server");
        let told = durability(&server).await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("rewrites")),
            "{build:?}: {told:?}"
        );
        let finding = examined(&server).await;
        assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
        assert!(
            finding
                .repair
                .is_some_and(|repair| repair.contains("no-appendfsync-on-rewrite no")),
            "{}",
            finding.detail
        );
        configure(&server, "no-appendfsync-on-rewrite", "no").await;
        assert_eq!(durability(&server).await, Durability::Safe, "{build:?}");
    }
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn server_whose_files_are_where_systems_empty_says_fence_only_and_the_examination_names_where() {
    let safe = RedisServer::start(RedisOptions::durable())
        .await
        .expect("a server");
    assert_eq!(durability(&safe).await, Durability::Safe);
    let finding = examined(&safe).await;
    assert!(
        finding.verdict == Verdict::Good && finding.detail.contains("its dir \"/"),
        "{finding:?}"
    );
    for emptied in ["/dev/shm", "/tmp", "/var/tmp"] {
        let folder = Folder(format!("{emptied}/tenure-{:016x}", random_bits()).into());
        std::fs::create_dir(&folder.0).expect("a folder");
        let path = folder.0.display();
        let settings = format!("--appendonly yes --appendfsync always --dir {path}");
        let server = RedisServer::start(RedisOptions::with(&settings))
            .await
            .expect("a server");
        let told = durability(&server).await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("a folder on a disk")),
            "{path}: {told:?}"
        );
        let finding = examined(&server).await;
        assert!(
            finding.verdict == Verdict::Warning && finding.detail.contains(&path.to_string()),
            "{path}: {finding:?}"
        );
    }
}

/// A server with a key, of which the child that writes a file takes ten minutes for each, until the test says
/// otherwise.
async fn slow_to_write(build: RedisBuild) -> RedisServer {
    let slow = RedisOptions::with("--appendfsync always --rdb-key-save-delay 600000000");
    let server = RedisServer::start(slow.of(build)).await.expect("a server");
    let set = redis::cmd("SET").arg(&["key", "value"]).to_owned();
    let mut admin = connection(&server.url()).await;
    set.query_async::<()>(&mut admin).await.expect("asked");
    server
}

/// Until the first rewrite is done, a crash takes back everything.
#[tokio::test]
async fn server_whose_file_was_just_switched_on_says_fence_only_until_it_is_complete() {
    for build in BUILDS {
        let mut server = slow_to_write(build).await;
        configure(&server, "appendonly", "yes").await;
        let told = durability(&server).await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("not complete")),
            "{build:?}: {told:?}"
        );
        let finding = examined(&server).await;
        assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
        configure(&server, "rdb-key-save-delay", "0").await;
        configure(&server, "appendonly", "no").await;
        configure(&server, "appendonly", "yes").await;
        eventually_async(Duration::from_secs(60), "a complete file", || async {
            (durability(&server).await == Durability::Safe).then_some(())
        })
        .await;
        server.kill();
    }
}

/// There is an older file then, which lacks what came while it was off: that is what a crash leaves before
/// the rewrite is done.
#[tokio::test]
async fn server_whose_file_was_switched_off_and_on_says_fence_only_until_it_is_complete() {
    for build in BUILDS {
        let server = RedisServer::start(RedisOptions::durable().of(build))
            .await
            .expect("a server");
        let mut admin = connection(&server.url()).await;
        let set = redis::cmd("SET").arg(&["key", "value"]).to_owned();
        set.query_async::<()>(&mut admin).await.expect("asked");
        // So that the server knows how long the file was.
        let rewrite = redis::cmd("BGREWRITEAOF").to_owned();
        rewrite.query_async::<()>(&mut admin).await.expect("asked");
        eventually_async(Duration::from_secs(60), "a complete file", || async {
            (durability(&server).await == Durability::Safe).then_some(())
        })
        .await;
        configure(&server, "appendonly", "no").await;
        configure(&server, "rdb-key-save-delay", "600000000").await;
        configure(&server, "appendonly", "yes").await;
        let (told, finding) = (durability(&server).await, examined(&server).await);
        // Ends the child, which would outlive the server.
        configure(&server, "appendonly", "no").await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("not complete")),
            "{build:?}: {told:?}"
        );
        assert_eq!(finding.verdict, Verdict::Warning, "{build:?}: {finding:?}");
    }
}

/// The rewrite that would make it complete waits until a snapshot is done.
#[tokio::test]
async fn server_whose_file_was_switched_on_beside_a_snapshot_says_fence_only() {
    for build in BUILDS {
        let mut server = slow_to_write(build).await;
        let mut admin = connection(&server.url()).await;
        let save = redis::cmd("BGSAVE").to_owned();
        save.query_async::<()>(&mut admin).await.expect("asked");
        configure(&server, "appendonly", "yes").await;
        let persistence = server.ask_all("INFO persistence").expect("asked");
        let (told, finding) = (durability(&server).await, examined(&server).await);
        // Ends the child, which would outlive the server.
        configure(&server, "rdb-key-save-delay", "0").await;
        let flush = redis::cmd("FLUSHALL").to_owned();
        flush.query_async::<()>(&mut admin).await.expect("asked");
        server.kill();
        let waits = persistence.contains("aof_rewrite_scheduled:1")
            && persistence.contains("aof_rewrite_in_progress:0");
        assert!(waits, "{build:?}: it is not what was meant: {persistence}");
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("not complete")),
            "{build:?}: {told:?}"
        );
        assert_eq!(finding.verdict, Verdict::Warning, "{build:?}: {finding:?}");
    }
}

/// A store whose user may not ask this, and which says so.
async fn who_is_not_told(server: &RedisServer, command: &str) -> RedisStore {
    let rights = format!("ACL SETUSER user on >hunter2 allkeys allchannels +@all -{command}");
    assert_eq!(server.ask(&rights).expect("asked"), "+OK");
    let url = format!("redis://user:hunter2@{}", server.address());
    let store = RedisStore::connect(&url).await.expect("connects");
    let told = store.traits().durability;
    assert!(
        matches!(told, Durability::FenceOnly(why) if why.contains("does not tell")),
        "{told:?}"
    );
    store
}

/// What a user may not ask for is not known to be well: `CONFIG GET` alone tells nothing of replicas.
#[tokio::test]
async fn server_that_does_not_tell_its_state_says_fence_only() {
    for build in BUILDS {
        let (server, _replica) = with_a_replica(build).await;
        let store = who_is_not_told(&server, "info").await;
        for subject in ["durability", "topology"] {
            let finding = found(&store, subject).await;
            assert_eq!(finding.verdict, Verdict::Warning, "{build:?}: {finding:?}");
        }
    }
}

/// As most that are run by somebody else. `INFO` says that there is an append-only file, and not how it is
/// written.
#[tokio::test]
async fn server_that_does_not_tell_its_settings_says_fence_only() {
    for build in BUILDS {
        let server = RedisServer::start(RedisOptions::durable().of(build))
            .await
            .expect("a server");
        let store = who_is_not_told(&server, "config").await;
        let finding = found(&store, "durability").await;
        assert_eq!(finding.verdict, Verdict::Warning, "{build:?}: {finding:?}");
        let repair = finding.repair.expect("a way out");
        assert!(repair.contains("CONFIG GET"), "{build:?}: {repair}");
    }
}

/// It may come back, and be promoted without what it has missed.
#[tokio::test]
async fn server_whose_replica_is_away_says_fence_only() {
    for build in BUILDS {
        let (server, mut replica) = with_a_replica(build).await;
        replica.kill();
        is_followed(&server, 0).await;
        let told = durability(&server).await;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("fail-over")),
            "{build:?}: {told:?}"
        );
        let store = RedisStore::connect(&server.url()).await.expect("connects");
        let finding = found(&store, "topology").await;
        assert_eq!(finding.verdict, Verdict::Warning, "{build:?}: {finding:?}");
    }
}

/// What one server must be set to, each member of a quorum must.
#[tokio::test]
async fn quorum_whose_member_does_not_sync_while_it_rewrites_says_fence_only() {
    let start = || RedisServer::start(RedisOptions::durable());
    let members = [start().await, start().await, start().await].map(|started| started.expect("a server"));
    let hosts: Vec<String> = members.iter().map(RedisServer::address).collect();
    let scratch = Scratch::on(&format!("redis+quorum://{}", hosts.join(",")));
    let durability = || async {
        let store = QuorumStore::connect(&scratch.store_url())
            .await
            .expect("connects");
        store.traits().durability
    };
    // One that is slow to answer is not waited for, and keeps nothing that is known.
    eventually_async(Duration::from_secs(60), "a quorum that is safe", || async {
        (durability().await == Durability::Safe).then_some(())
    })
    .await;
    configure(&members[1], "no-appendfsync-on-rewrite", "yes").await;
    let told = durability().await;
    assert!(matches!(told, Durability::FenceOnly(_)), "{told:?}");
    // It is said which.
    let store = QuorumStore::connect(&scratch.store_url())
        .await
        .expect("connects");
    let findings = store.examine().await.expect("an examination");
    for (place, host) in hosts.iter().enumerate() {
        let subject = format!("{host}/0 durability");
        let finding = findings.iter().find(|finding| finding.subject == subject);
        let finding = finding.unwrap_or_else(|| panic!("nothing is said of {subject}: {findings:?}"));
        assert_eq!(finding.verdict == Verdict::Warning, place == 1, "{finding:?}");
    }
}
