//! The `Fencing-Token` header: what is written is read back, and whatever is not clear is refused.
use fastrand::Rng;
use http::{HeaderMap, HeaderValue, Request};
use tenure_core::{Authority, FencingToken, LeaseName, Moment, Term};
use tenure_http::{AuthorityOver, FENCING_TOKEN, FencedRequest, FencingHeader, HeaderError};

fn header(token: u64, lease: &str) -> FencingHeader {
    FencingHeader(Term::new(
        LeaseName::new(lease).unwrap(),
        FencingToken::new(token).unwrap(),
    ))
}

fn written(token: u64, lease: &str) -> String {
    header(token, lease).value().to_str().unwrap().to_owned()
}

fn read(value: &str) -> Result<FencingHeader, HeaderError> {
    FencingHeader::read(value.as_bytes())
}

#[test]
fn value_is_an_integer_with_the_lease_as_its_parameter() {
    let value = written(1_700_001_065_800, "nightly-settlement");
    assert_eq!(value, r#"1700001065800;lease="nightly-settlement""#);
    assert_eq!(written(1, r#"a "b" \c"#), r#"1;lease="a \"b\" \\c""#);
    assert_eq!(written(1, "grüße"), r#"1;lease=%"gr%c3%bc%c3%9fe""#);
}

#[test]
fn the_largest_token_is_an_integer_of_the_rfc() {
    assert_eq!(
        written(FencingToken::MAX.number(), "a"),
        r#"253402300799999;lease="a""#
    );
    let largest = header(FencingToken::MAX.number(), "a");
    assert_eq!(FencingHeader::read(largest.value().as_bytes()), Ok(largest));
}

#[test]
fn every_header_that_is_written_is_read_back() {
    let mut dice = Rng::with_seed(7);
    for _ in 0..5_000 {
        let bits = dice.u32(0..47);
        let token = dice.u64(1..=FencingToken::MAX.number() >> bits);
        let length = dice.usize(1..80);
        let name: String = std::iter::repeat_with(|| {
            if dice.bool() {
                dice.char(' '..='~')
            } else {
                dice.char(..)
            }
        })
        .take(length)
        .collect();
        // Not every text is a name; those that are must survive.
        let Ok(lease) = LeaseName::new(&name) else {
            continue;
        };
        let header = FencingHeader(Term::new(lease, FencingToken::new(token).unwrap()));
        let value = header.value();
        assert_eq!(FencingHeader::read(value.as_bytes()), Ok(header), "{value:?}");
    }
}

#[test]
fn longest_name_is_read_back() {
    let longest = header(FencingToken::MAX.number(), &"\u{7ff}".repeat(127));
    assert_eq!(FencingHeader::read(longest.value().as_bytes()), Ok(longest));
}

/// Whatever arrives, reading ends with one clear line or with what writes the same meaning again.
#[test]
fn no_value_panics_and_what_is_read_means_one_thing() {
    const WORDS: [&[u8]; 16] = [
        b";lease=", b"\"", b"%\"", b"1", b"0", b"-", b";", b"=", b"\\", b",", b" ", b"\t", b"%c3", b"?1",
        b":AA==:", b"@",
    ];
    let mut dice = Rng::with_seed(11);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..50_000 {
        let token = dice.u64(1..=FencingToken::MAX.number());
        let mut value = written(token, "grüße/nightly").into_bytes();
        for _ in 0..dice.usize(0..4) {
            let at = dice.usize(0..=value.len());
            match dice.u8(0..4) {
                0 => drop(value.splice(at..at, WORDS[dice.usize(0..WORDS.len())].iter().copied())),
                1 => drop(value.drain(at..(at + dice.usize(0..8)).min(value.len()))),
                2 if at < value.len() => value[at] = dice.u8(..),
                _ => value.truncate(at),
            }
        }
        match FencingHeader::read(&value) {
            Ok(header) => {
                accepted += 1;
                assert_eq!(FencingHeader::read(header.value().as_bytes()), Ok(header));
            }
            Err(error) => {
                refused += 1;
                let line = error.to_string();
                assert!(
                    !line.chars().any(char::is_control) && line.len() < 500,
                    "{line:?}"
                );
            }
        }
    }
    assert!(
        accepted > 5_000 && refused > 5_000,
        "{accepted} accepted, {refused} refused"
    );
}

#[test]
fn what_is_no_item_of_the_rfc_is_refused() {
    for value in [
        "",
        "lease=\"a\"",
        "1;lease=\"a",
        "1;lease=\"a\",",
        "1;lease=\"a\" x",
        "1,2",
        "1;",
        "1;lease=\"ä\"",
        "1;lease=%\"%c3\"",
        "1;LEASE=\"a\"",
        "(1);lease=\"a\"",
        "1234567890123456;lease=\"a\"",
        "1;lease=\"a\", 2;lease=\"a\"",
        "+1;lease=\"a\"",
    ] {
        assert!(
            matches!(read(value), Err(HeaderError::NoItem { .. })),
            "{value}: {:?}",
            read(value)
        );
    }
}

#[test]
fn what_is_no_token_is_refused() {
    for bare in [
        "0",
        "-1",
        "1.0",
        "?1",
        "@1",
        ":MQ==:",
        "abc",
        "%\"1000000000000000\"",
        "\"\"",
        "\"1\"",
        "\"999999999999999\"",
        "\"+1000000000000000\"",
        "\"01000000000000000\"",
        "\"1000000000000000 \"",
        "\"9223372036854775808\"",
        "253402300800000",
        "999999999999999",
        "\"253402300799999\"",
        "\"99999999999999999999\"",
    ] {
        let value = format!("{bare};lease=\"a\"");
        assert!(
            matches!(read(&value), Err(HeaderError::NoToken { .. })),
            "{value}: {:?}",
            read(&value)
        );
    }
}

#[test]
fn lease_must_be_named_once_and_clearly() {
    assert_eq!(read("1"), Err(HeaderError::NoLease));
    for value in [
        "1;lease",
        "1;lease=a",
        "1;lease=1",
        "1;lease=\"a\";lease=\"b\"",
        "1;lease=\"a\";lease=\"a\"",
        "1;lease=x;lease=\"a\"",
    ] {
        assert_eq!(read(value), Err(HeaderError::LeaseUnclear), "{value}");
    }
    for value in [
        "1;lease=\"\"",
        "1;lease=\" a\"",
        "1;lease=\"a/../b\"",
        "1;lease=%\"a%0ab\"",
    ] {
        assert!(matches!(read(value), Err(HeaderError::Lease(_))), "{value}");
    }
}

#[test]
fn parameter_that_is_not_understood_is_refused() {
    let refused = read("1;lease=\"a\";until=5").unwrap_err();
    assert_eq!(
        refused,
        HeaderError::UnknownParameter {
            name: "until".to_owned()
        }
    );
}

#[test]
fn second_header_line_is_refused() {
    let mut headers = HeaderMap::new();
    assert_eq!(FencingHeader::find(&headers), Ok(None));
    headers.append(FENCING_TOKEN, header(5, "a").value());
    assert_eq!(FencingHeader::find(&headers), Ok(Some(header(5, "a"))));
    headers.append(FENCING_TOKEN, header(5, "a").value());
    assert_eq!(
        FencingHeader::find(&headers),
        Err(HeaderError::Repeated { times: 2 })
    );
}

#[test]
fn overlong_value_is_refused_before_it_is_read() {
    let value = format!("1;lease=\"{}\"", "a".repeat(2000));
    assert_eq!(read(&value), Err(HeaderError::TooLong { bytes: 2010 }));
}

#[test]
fn client_sets_one_header_while_authority_lasts_and_none_after() {
    let lease = LeaseName::new("a").unwrap();
    let token = FencingToken::new(5).unwrap();
    let until = Moment::from_millis(2);
    let since = Moment::from_millis(1);
    for authority in [
        Authority::Held { token, until },
        Authority::Doubtful { token, since, until },
        Authority::Ending { token, since, until },
    ] {
        let request = Request::put("/balance")
            .header(FENCING_TOKEN, HeaderValue::from_static("3;lease=\"a\""))
            .fencing_token(&lease, authority)
            .unwrap()
            .body(())
            .unwrap();
        assert_eq!(FencingHeader::find(request.headers()), Ok(Some(header(5, "a"))));
    }
    let refused = Request::put("/balance").fencing_token(&lease, Authority::None);
    assert_eq!(refused.unwrap_err(), AuthorityOver { lease });
}
