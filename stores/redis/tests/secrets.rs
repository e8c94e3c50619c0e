//! What connecting says holds no password, whoever says it.

use crate::common::refused;
use tenure_core::Fault;
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[tokio::test]
async fn urls_that_cannot_be_read_are_refused_without_their_password() {
    for url in [
        "redis:",
        "redis://",
        "redis://:hunter2@",
        "redis://:hunter2@host:port",
        "redis://:hunter2@host:0",
        "redis://:hunter2@host:65536",
        "redis://:hunter2@host/zero",
        "redis://:hunter2@ho st",
        "redis://:hunter2@[::1",
        "redis://:hunter2@a,b,",
        "redis://:hunter2@a,b,c,d,e,f,g,h,i,j",
        "redis://:%ff@host",
        "redis://host?hunter2=1&x",
        "redis://host?prefix=",
        "redis://host?prefix={a}",
        "redis://host?purgeAfter=1h",
        "redis://host?purgeAfter=soon",
        // What has no effect is not taken, as for sentinels that are none; of two, nobody could say which
        // counts.
        "redis://:hunter2@host?primary=q",
        "redis://:hunter2@host?sentinelUser=me",
        "redis://:hunter2@host?sentinelPassword=hunter2",
        "redis+quorum://:hunter2@a,b,c?primary=q&sentinelPassword=hunter2",
        "redis://:hunter2@host?prefix=a&prefix=b",
        "redis+sentinel://:hunter2@host?primary=p&sentinelPassword=hunter2&sentinelPassword=hunter2",
        "redis://:x?hunter2&hunter2",
        "redis+sentinel://:hunter2@host",
        "redis+quorum://:hunter2@a,b,c",
        "redis+quorum://:hunter2@a,b,c?purgeAfter=30d",
        "redis+magic://:hunter2@a",
        "http://:hunter2@a",
        // A list of URLs, of which the last alone would be asked.
        "redis://:hunter2@a,redis://:hunter2@b",
    ] {
        let error = refused(url).await;
        assert_eq!(error.fault, Fault::Invalid, "{url}: {error}");
    }
    let error = refused("redis://:hunter2@host?primary=q").await;
    assert!(error.message.contains("redis+sentinel://"), "{error}");
    // Each member would remove by itself, and forget the name's token.
    let error = refused("redis+quorum://:hunter2@a,b,c?purgeAfter=30d").await;
    assert!(error.message.contains("tenure gc"), "{error}");
}

#[tokio::test]
async fn unreachable_server_is_named_without_the_password() {
    let error = refused("redis://user:hunter2@127.0.0.1:1/0").await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    assert!(error.message.contains("127.0.0.1:1"), "{error}");
}

/// A server that does not know a command quotes what came with it: here that is user and password.
#[tokio::test]
async fn server_without_hello_is_refused_without_the_password() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let words = ["--rename-command", "HELLO", ""];
        let options = RedisOptions {
            settings: words.map(str::to_owned).to_vec(),
            ..RedisOptions::default()
        };
        let server = RedisServer::start(options.of(build)).await.expect("a server");
        let user = server.ask("ACL SETUSER user on >hunter2 allkeys allchannels +@all");
        assert_eq!(user.expect("asked"), "+OK");
        for user in ["user:hunter2", ":hunter2", "hunter2:other"] {
            let error = refused(&format!("redis://{user}@{}", server.address())).await;
            assert!(
                error.message.contains("unknown command 'HELLO'"),
                "{build:?}: {error}"
            );
        }
    }
}

/// The URL of somebody who answers this, whatever is asked, until the task is aborted.
async fn answers(answer: &[u8]) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = answer.to_vec();
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1_024];
            while stream.read(&mut asked).await.is_ok_and(|length| length > 0) {
                stream.write_all(&answer).await.unwrap_or_default();
            }
        }
    });
    (format!("redis://{address}"), answering)
}

/// Not a real server, as none says so today: what a proxy or a later server quotes has other words around it.
#[tokio::test]
async fn answer_that_repeats_the_password_is_not_told() {
    let (url, answering) = answers(b"-ERR cannot read: HELLO 3 AUTH user hunter2 \r\n").await;
    let address = url.trim_start_matches("redis://");
    let error = refused(&format!("redis://user:hunter2@{address}")).await;
    assert!(error.message.contains(address), "{error}");
    assert!(error.message.contains("HELLO"), "{error}");
    answering.abort();
}

/// Whoever has named the wrong port has it told so, and not that Tenure failed.
#[tokio::test]
async fn server_of_another_kind_is_none_of_redis() {
    for greeting in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "INFO {\"server_id\":\"N\",\"version\":\"2.11.0\"}\r\n",
        "J\0\0\0\n9.7.0\0",
    ] {
        let (url, answering) = answers(greeting.as_bytes()).await;
        let error = refused(&url).await;
        assert_eq!(error.fault, Fault::Unreachable, "{greeting}: {error}");
        assert!(
            error.message.contains("check host and port"),
            "{greeting}: {error}"
        );
        answering.abort();
    }
}

/// Not a real server, as that says so on no loopback.
#[tokio::test]
async fn protected_mode_of_redis_is_a_login_that_is_refused() {
    let denied = b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set\r\n";
    let (url, answering) = answers(denied).await;
    let error = refused(&url).await;
    assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
    assert!(error.message.contains("ask for a password"), "{error}");
    answering.abort();
}
