//! Store URLs, up to where something would be opened or sent.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tenure::Registry;
use tenure_core::{Fault, StoreError};
use tenure_sqlite::{FileSystemTrust, SqliteOptions};

/// This target.
pub const TARGET: Target = Target {
    name: "url",
    promise: "no URL panics, every refusal is one line, and no message shows a password",
    judge,
    dictionary: &[
        "mongodb://",
        "mongodb+srv://",
        "redis://",
        "rediss+sentinel://",
        "redis+quorum://",
        "etcd://",
        "etcds://",
        "ca=",
        "cert=",
        "key=",
        "postgres://",
        "postgresql://",
        "sslmode=",
        "sslrootcert=",
        "schema=",
        "mysql://",
        "mariadb://",
        "ssl-mode=",
        "ssl-ca=",
        "ssl-cert=",
        "ssl-key=",
        "nats://",
        "nats+tls://",
        "sqlite:",
        "sqlite:///",
        "?",
        "&",
        "@",
        ":",
        "/",
        "%",
        "%40",
        "%3F",
        "%00",
        "%0A",
        ",",
        "[::1]",
        "localhost",
        ":27017",
        "collection=",
        "purgeAfter=",
        "prefix=",
        "primary=",
        "sentinelPassword=",
        "replicas=",
        "monitor=",
        "creds=",
        "rateErrorPpm=",
        "30d",
        "filesystem=trusted",
        "w=1",
        "w=majority",
        "journal=false",
        "replicaSet=",
        "authSource=",
        "tls=true",
        "readPreference=",
        "connectTimeoutMS=",
        "maxPoolSize=",
        "authMechanism=",
        "compressors=",
        "directConnection=",
    ],
};

/// The password that no message may show. It stands where a password stands in a URL.
const PASSWORD: &str = "Zq7vTigerKw4";

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    match choices.byte() % 4 {
        0 => {
            let url = String::from_utf8_lossy(choices.rest()).into_owned();
            read_everywhere(&url, |_| {});
        }
        1 => sqlite_round_trip(&choices.text()),
        _ => with_password(&mut choices),
    }
}

fn with_password(choices: &mut Choices<'_>) {
    let scheme = match choices.byte() % 15 {
        13 => "postgres://".to_owned(),
        14 => "mysql://".to_owned(),
        12 => "nats://".to_owned(),
        8 => "redis://".to_owned(),
        9 => "redis+quorum://".to_owned(),
        10 => "etcd://".to_owned(),
        11 => "etcds://".to_owned(),
        0..=2 => "mongodb://".to_owned(),
        3 => "mongodb+srv://".to_owned(),
        4 => "sqlite:".to_owned(),
        5 => "sqlite://".to_owned(),
        6 => "sqlite:///".to_owned(),
        _ => choices.text(),
    };
    let (user, before, after) = (choices.text(), choices.text(), choices.text());
    let address = match choices.byte() % 3 {
        0 => "localhost:27017/tenure".to_owned(),
        1 => "a.example,b.example:1/?replicaSet=rs".to_owned(),
        _ => String::new(),
    };
    let rest = choices.text();
    let parts = [&scheme, &user, &before, &after, &rest];
    // An option that is refused is shown as it was given, and whoever writes a password there has none of a
    // URL. And where the input has found the password out, its parts may be shown.
    let not_a_password = [scheme.as_str(), &user, &before].iter().any(|part| {
        [
            "collection=",
            "purgeAfter=",
            "prefix=",
            "primary=",
            "schema=",
            "ssl-ca=",
            "ssl-cert=",
            "ssl-key=",
            "replicas=",
            "rateErrorPpm=",
        ]
        .iter()
        .any(|option| part.contains(option))
    }) || parts.iter().any(|part| part.contains(PASSWORD));
    if not_a_password {
        return;
    }
    let url = format!("{scheme}{user}:{before}{PASSWORD}{after}@{address}{rest}");
    read_everywhere(&url, |message| {
        assert!(!message.contains(PASSWORD), "the password is shown: {message}");
    });
}

/// Reads a URL with every reader there is, and looks at every message.
fn read_everywhere(url: &str, look: impl Fn(&str)) {
    let refused = |error: StoreError| {
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert_one_line(&error.message);
        look(&error.message);
    };
    if let Err(error) = ready(registry().open(url)) {
        refused(error);
    }
    match SqliteOptions::from_url(url) {
        Err(error) => refused(error),
        Ok(options) => assert_eq!(Some(options), sqlite_by_hand(url), "{url:?} is read wrongly"),
    }
    #[cfg(feature = "redis")]
    match tenure_redis::fuzzing::settle(url) {
        Err(error) => refused(error),
        Ok(settled) => {
            for shown in [&settled.place, &settled.prefix] {
                assert_one_line(shown);
                look(shown);
            }
            assert!((1..=100).contains(&settled.prefix.len()), "{:?}", settled.prefix);
            assert!(!settled.prefix.contains(['{', '}']), "{:?}", settled.prefix);
        }
    }
    #[cfg(feature = "etcd")]
    match tenure_etcd::fuzzing::settle(url) {
        Err(error) => refused(error),
        Ok(settled) => {
            assert_one_line(&settled.place);
            look(&settled.place);
            assert!((1..=200).contains(&settled.prefix.len()), "{:?}", settled.prefix);
        }
    }
    #[cfg(feature = "mysql")]
    match tenure_mysql::fuzzing::settle(url) {
        Err(error) => refused(error),
        Ok(place) => {
            assert_one_line(&place);
            look(&place);
        }
    }
    #[cfg(feature = "postgres")]
    match tenure_postgres::fuzzing::settle(url) {
        Err(error) => refused(error),
        Ok((place, schema)) => {
            for shown in [&place, &schema] {
                assert_one_line(shown);
                look(shown);
            }
        }
    }
    #[cfg(feature = "nats")]
    match tenure_nats::fuzzing::settle(url) {
        Err(error) => refused(error),
        Ok(settled) => {
            for shown in [&settled.place, &settled.bucket] {
                assert_one_line(shown);
                look(shown);
            }
            assert!((1..=100).contains(&settled.bucket.len()), "{:?}", settled.bucket);
        }
    }
    #[cfg(feature = "mongodb")]
    match ready(tenure_mongodb::fuzzing::settle(
        url,
        tenure_mongodb::MongoStore::builder(),
    )) {
        Err(error) => refused(error),
        Ok(settled) => check_settled(&settled, look),
    }
}

/// A registry whose stores are refused before they are opened.
fn registry() -> Registry {
    let mut registry = Registry::empty();
    for scheme in [
        "sqlite",
        "mongodb",
        "mongodb+srv",
        "postgres",
        "postgresql",
        "mysql",
        "redis",
        "etcd",
        "etcds",
        "nats",
    ] {
        registry.register(scheme, |_| async {
            Err(StoreError::not_applied(Fault::Invalid, "not opened"))
        });
    }
    registry
}

/// What an accepted SQLite URL means, by other code than the product's.
fn sqlite_by_hand(url: &str) -> Option<SqliteOptions> {
    let rest = url.strip_prefix("sqlite:")?;
    let (path, options) = match rest.find('?') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, "filesystem=local"),
    };
    let path = if path.starts_with("//") {
        path.strip_prefix("//")?
    } else {
        path
    };
    let mut bytes = Vec::new();
    let mut parts = path.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let trust = match options.rsplit('&').next()? {
        "filesystem=trusted" => FileSystemTrust::Trusted,
        _ => FileSystemTrust::LocalOnly,
    };
    Some(SqliteOptions::new(String::from_utf8(bytes).ok()?).trust(trust))
}

/// Every path can be written as a URL, and is read back.
fn sqlite_round_trip(path: &str) {
    use std::fmt::Write;
    let mut url = "sqlite:".to_owned();
    for byte in path.bytes() {
        write!(url, "%{byte:02X}").expect("a string takes every text");
    }
    match SqliteOptions::from_url(&url) {
        Ok(options) => assert_eq!(options, SqliteOptions::new(path)),
        Err(error) => assert!(path.is_empty(), "the path {path:?} is refused: {error}"),
    }
}

#[cfg(feature = "mongodb")]
fn check_settled(settled: &tenure_mongodb::fuzzing::Settled, look: impl Fn(&str)) {
    use std::time::Duration;
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let collection = &settled.collection;
    assert!(
        (1..=180).contains(&collection.len()),
        "collection of {} bytes",
        collection.len()
    );
    // It stands in every message of the store.
    assert_one_line(collection);
    assert!(
        !collection.contains('$') && !collection.starts_with("system."),
        "{collection:?}"
    );
    if let Some(wait) = settled.purge_after {
        assert!((DAY..=36_500 * DAY).contains(&wait), "purge after {wait:?}");
    }
    if let Some(place) = &settled.place {
        assert_one_line(place);
        look(place);
    }
}

/// The outcome of something that waits for nothing.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("reading a URL waits for something"),
    }
}
