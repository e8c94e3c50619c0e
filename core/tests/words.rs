//! What may be a name, a token, an incarnation.
use tenure_core::*;

#[test]
fn impossible_names_are_refused_in_one_line_that_says_why() {
    let long = "x".repeat(10_240);
    for (text, why) in [
        ("", "is empty"),
        (long.as_str(), "has 10240 bytes; at most 255"),
        ("a\nb", "control character at byte 1"),
        ("a\u{7f}", "control character at byte 1"),
        ("/tmp/job.lock", "begins with a slash"),
        ("a/../b", "part between slashes"),
        ("a//b", "part between slashes"),
        (" a", "white space"),
        ("a\u{a0}", "white space"),
    ] {
        let error = LeaseName::new(text).unwrap_err().to_string();
        assert!(
            error.contains(why) && error.starts_with("lease name") || error.starts_with("the lease name"),
            "{error}"
        );
        assert!(error.len() < 200 && !error.contains('\n'), "{error}");
    }
}

#[test]
fn hostile_but_possible_names_are_taken() {
    for text in [
        "a",
        "$where",
        "a.b",
        "'; DROP TABLE leases; --",
        "Straße/日本",
        "a..b",
        &"x".repeat(255),
    ] {
        assert_eq!(LeaseName::new(text).unwrap().as_str(), text);
    }
}

#[test]
fn a_token_is_never_zero_negative_or_beyond_the_year_9999() {
    const LAST: u64 = 253_402_300_799_999;
    for number in [0, LAST + 1, i64::MAX.unsigned_abs(), 1 << 63, u64::MAX] {
        assert!(FencingToken::new(number).is_err(), "{number}");
    }
    for number in [0, -1, i64::MIN, LAST.cast_signed() + 1, i64::MAX] {
        assert!(FencingToken::from_signed(number).is_err(), "{number}");
    }
    for text in [
        "0",
        "-1",
        "1.5",
        "",
        "253402300800000",
        "9223372036854775807",
        "9223372036854775808",
    ] {
        assert!(text.parse::<FencingToken>().is_err(), "{text}");
    }
    assert_eq!(FencingToken::new(LAST), Ok(FencingToken::MAX));
    assert_eq!("253402300799999".parse(), Ok(FencingToken::MAX));
    assert_eq!(FencingToken::successor(None, LAST + 1), None);
}

#[test]
fn the_next_token_is_greater_than_the_last_and_not_below_the_stores_clock() {
    let token = |number| FencingToken::new(number).unwrap();
    assert_eq!(FencingToken::successor(None, 0), Some(token(1)));
    assert_eq!(
        FencingToken::successor(None, 1_700_000_000_000),
        Some(token(1_700_000_000_000))
    );
    assert_eq!(
        FencingToken::successor(Some(token(7)), 3),
        Some(token(8)),
        "a clock set back changes nothing"
    );
    assert_eq!(
        FencingToken::successor(Some(token(7)), 900),
        Some(token(900)),
        "a restored record is overtaken"
    );
    assert_eq!(
        FencingToken::successor(Some(FencingToken::MAX), 0),
        None,
        "and never wraps round"
    );
}

#[test]
fn an_incarnation_survives_its_text_and_nothing_else_is_one() {
    let incarnation = Incarnation::from_bits(0x00ff << 100 | 5);
    assert_eq!(
        incarnation.to_string().parse::<Incarnation>().unwrap(),
        incarnation
    );
    for text in [
        "",
        "5",
        "+0000000000000000000000000000005",
        "0000000000000000000000000000000G",
    ] {
        assert!(text.parse::<Incarnation>().is_err(), "{text}");
    }
}

/// A URL in the place of a name brings its password along.
#[test]
fn a_name_that_looks_like_a_url_is_not_shown() {
    let long = format!("user:hunter2@{}", "x".repeat(300));
    for text in [
        "mongodb://user:hunter2@h/db",
        "https://hunter2/",
        " user:hunter2@h",
        &long,
    ] {
        let error = LeaseName::new(text).expect_err("it is no name");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert!(
            error.to_string().contains("looks like a URL; use --store"),
            "{error}"
        );
    }
}
