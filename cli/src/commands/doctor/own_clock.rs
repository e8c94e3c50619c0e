//! How this machine's own clock is being corrected: by it a holder here counts, and a store whose server is
//! here.

use crate::supervise::{ClockCorrection, clock_correction};
use std::io;
use tenure::Timing;
use tenure::contract::{Finding, Verdict};

/// What helps, as [`TimingOptions`](tenure::TimingOptions) has it.
const NOT_SLEWED_FAST: &str = "have no clock corrected faster, here or on a server (chrony: maxslewrate 500, its default is 83333); \
                               until then only the fence protects";

/// What each tick of the kernel's is where nothing is corrected, in microseconds.
const TICK_US: f64 = 10_000.0;

/// The frequency is told in so many parts of a part of a million.
const FREQUENCY_PARTS: f64 = 65_536.0;

/// Parts of a million.
const MILLION: f64 = 1_000_000.0;

pub(super) fn look(timing: &Timing) -> Finding {
    let (verdict, detail) = judge(clock_correction(), timing.clock_rate_error_ppm());
    Finding {
        subject: "own clock's run".to_owned(),
        verdict,
        detail,
        repair: (verdict == Verdict::Bad).then(|| NOT_SLEWED_FAST.to_owned()),
    }
}

fn judge(correction: io::Result<ClockCorrection>, bound: u32) -> (Verdict, String) {
    let ClockCorrection { frequency, tick_us } = match correction {
        Ok(correction) => correction,
        // As in most containers: nothing is known by that.
        Err(error) => {
            let detail = format!(
                "what it is corrected by cannot be seen here ({error}); `chronyc tracking` on the host tells"
            );
            return (Verdict::Good, detail);
        }
    };
    let by = (tick_us - TICK_US) / TICK_US * MILLION + frequency / FREQUENCY_PARTS;
    // Whether a bad quartz is put right so, or an offset taken out, cannot be told from here.
    if by.abs() > f64::from(bound) {
        let detail =
            format!("is corrected by {by:+.0} parts of a million just now; the timing allows for {bound}");
        return (Verdict::Bad, detail);
    }
    let detail = format!("is corrected by {by:+.0} parts of a million just now, of {bound} allowed");
    (Verdict::Good, detail)
}

#[cfg(test)]
mod tests {
    use super::{ClockCorrection, judge};
    use std::io::{Error, ErrorKind};
    use tenure::contract::Verdict;

    fn judged(frequency: f64, tick_us: f64) -> (Verdict, String) {
        judge(Ok(ClockCorrection { frequency, tick_us }), 500)
    }

    #[test]
    fn a_clock_that_is_corrected_by_more_than_the_timing_allows_for_is_bad() {
        let part = 65_536.0;
        for (frequency, tick_us) in [
            (0.0, 10_000.0),
            (500.0 * part, 10_000.0),
            (-500.0 * part, 10_000.0),
            (-400.0 * part, 10_009.0),
        ] {
            assert_eq!(
                judged(frequency, tick_us).0,
                Verdict::Good,
                "{frequency} {tick_us}"
            );
        }
        // chrony takes an offset out by both.
        for (frequency, tick_us, told) in [
            (501.0 * part, 10_000.0, "+501 parts"),
            (-33.0 * part, 10_833.0, "+83267 parts"),
            (0.0, 9_000.0, "-100000 parts"),
        ] {
            let (verdict, detail) = judged(frequency, tick_us);
            assert_eq!(verdict, Verdict::Bad, "{detail}");
            assert!(detail.contains(told), "{detail}");
        }
    }

    #[test]
    fn a_clock_whose_correction_cannot_be_seen_is_not_called_bad() {
        let (verdict, detail) = judge(Err(Error::from(ErrorKind::PermissionDenied)), 500);
        assert_eq!(verdict, Verdict::Good);
        assert!(detail.contains("cannot be seen"), "{detail}");
    }
}
