//! The server's clock, as its answers write it.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time as `2026-11-21T21:08:10.67Z`, in milliseconds since 1970. `None` for anything else, and for times
/// before.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()
}

/// What the clock of the stream's leader showed when it told this of the stream, in milliseconds.
pub(crate) fn told_ms(info: &Value) -> Option<u64> {
    info["ts"].as_str().and_then(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_of_the_server_are_read_and_others_are_not() {
        assert_eq!(milliseconds("1970-01-01T00:00:01.5Z"), Some(1_500));
        assert_eq!(
            milliseconds("2026-11-21T21:08:10.672711847Z"),
            Some(1_795_295_290_672)
        );
        for none in ["", "tomorrow", "0001-01-01T00:00:00Z", "2026-11-21"] {
            assert_eq!(milliseconds(none), None, "{none}");
        }
    }
}
