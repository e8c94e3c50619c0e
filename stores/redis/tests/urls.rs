//! URLs, before anything is sent to whom they name.

use std::time::Duration;
use tenure_redis::fuzzing::settle;

#[test]
fn url_names_its_servers_with_their_default_ports_and_its_place_among_them() {
    for (url, place, prefix) in [
        ("redis://host", "host:6379/0", "tenure"),
        ("rediss://me:secret@host:1/3?prefix=a%20b", "host:1/3", "a b"),
        // The last @ ends the credentials, also where the password is badly written.
        ("redis://me:p@ss@host/", "host:6379/0", "tenure"),
        (
            "redis://[::1],[fe80::1%eth0]:2",
            "[::1]:6379,[fe80::1%eth0]:2/0",
            "tenure",
        ),
        ("redis+quorum://a,b:2,c/4?prefix=x", "a:6379,b:2,c:6379/4", "x"),
        ("rediss+quorum://a,b,c", "a:6379,b:6379,c:6379/0", "tenure"),
        (
            "redis+sentinel://me@one,two:5/2?primary=main&prefix=y",
            "main of one:26379,two:5/2",
            "y",
        ),
        (
            "rediss+sentinel://one?primary=a%2fb&sentinelUser=&sentinelPassword=",
            "a/b of one:26379/0",
            "tenure",
        ),
    ] {
        let settled = settle(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(
            (settled.place.as_str(), settled.prefix.as_str()),
            (place, prefix),
            "{url}"
        );
        assert_eq!(settled.purge_after, None, "{url}");
    }
}

#[test]
fn names_are_purged_after_the_time_that_a_url_says() {
    let day = 24 * 60 * 60;
    for (text, seconds) in [
        ("1d", day),
        ("24h", day),
        ("1440m", day),
        ("86400s", day),
        ("36h", 36 * 60 * 60),
        ("30d", 30 * day),
        ("36500d", 36_500 * day),
    ] {
        let settled = settle(&format!("redis://host?purgeAfter={text}")).expect("it is taken");
        assert_eq!(settled.purge_after, Some(Duration::from_secs(seconds)), "{text}");
    }
    for text in [
        "23h",
        "86399s",
        "36501d",
        "30",
        "d",
        "-30d",
        "1.5d",
        "30d ",
        "99999999999999999999d",
    ] {
        let error = settle(&format!("redis://host?purgeAfter={text}")).expect_err("it is taken");
        assert!(error.message.contains("36500d"), "{text}: {error}");
    }
}
