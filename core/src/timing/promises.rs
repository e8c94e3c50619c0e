use super::Timing;
use std::fmt;
use std::time::Duration;

/// What a timing promises, in numbers and in words (its `Display`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Promises {
    /// The timing itself.
    pub timing: Timing,
    /// Longest outage of the store, beginning at the worst moment, that does not even bring doubt.
    pub outage_unnoticed: Duration,
    /// Longest outage of the store, beginning at the worst moment, that does not end the term.
    pub outage_survived: Duration,
    /// How much any clock may be too fast or too slow, in parts per million.
    pub clock_rate_error_ppm: u32,
    /// Longest time from a leader's crash to the next term, while the store answers. Where nobody judges
    /// expiry but observers ([`Timekeeper::Observer`](crate::Timekeeper::Observer)) it holds for a standby
    /// whose watch shows it every renewal; one that only looks begins to count at its next look, up to a ttl
    /// later. A store of sessions ([`Timekeeper::Session`](crate::Timekeeper::Session)) that changes its own
    /// leader lets them last up to a ttl more.
    pub takeover_after_crash: Duration,
    /// Longest time from the end of the work to the next term when the leader gives up its lease, without
    /// the store's three round trips (release, watch event, acquire).
    pub hand_over: Duration,
    /// Requests that a leader sends in a minute, rounded up.
    pub leader_requests_per_minute: u64,
    /// Requests that an idle standby sends in a minute, rounded up, without those of its watch.
    pub standby_requests_per_minute: u64,
}

impl Promises {
    pub(super) fn of(timing: &Timing) -> Self {
        let Timing {
            ttl,
            renew_every,
            retry_every,
            request_timeout,
            grace,
            spread,
            ..
        } = *timing;
        let trust = timing.trust(ttl);
        // The outage begins just before a renewal is sent. When it ends, a request may still hang for the
        // whole time-out, and the next follows after the retry interval.
        let survived = trust.saturating_sub(renew_every + retry_every + request_timeout);
        let whole = ttl.duration();
        // Where the renewals do not divide the ttl, a standby finds the lease renewed up to an interval ago.
        let divides = whole
            .as_nanos()
            .saturating_sub(renew_every.as_nanos() * (whole.as_nanos() / renew_every.as_nanos()))
            < Duration::from_millis(10).as_nanos();
        let look = if divides { whole } else { whole - renew_every };
        Self {
            timing: *timing,
            outage_unnoticed: survived.saturating_sub(grace),
            outage_survived: survived,
            clock_rate_error_ppm: timing.clock_rate_error_ppm,
            takeover_after_crash: timing.lasts_at_most(ttl) + spread + request_timeout,
            hand_over: timing.wake_spread(),
            leader_requests_per_minute: per_minute(renew_every),
            standby_requests_per_minute: per_minute(look),
        }
    }
}

fn per_minute(interval: Duration) -> u64 {
    let minute = Duration::from_secs(60).as_nanos();
    u64::try_from(minute.div_ceil(interval.as_nanos().max(1))).unwrap_or(u64::MAX)
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timing {
            ttl,
            renew_every,
            request_timeout,
            grace,
            ..
        } = self.timing;
        let trust = self.timing.trust(ttl);
        writeln!(
            f,
            "A lease lasts {ttl} and is renewed every {}; each request may take {}.",
            shown(renew_every),
            shown(request_timeout)
        )?;
        writeln!(
            f,
            "A leader trusts it for {} from before each renewal was sent, and doubts it {} before that ends.",
            shown(trust),
            shown(grace)
        )?;
        writeln!(
            f,
            "Outage tolerated: {} of an unreachable store go unnoticed, {} do not end the term, whenever they begin.",
            shown(self.outage_unnoticed),
            shown(self.outage_survived)
        )?;
        writeln!(
            f,
            "Clock-rate error tolerated: every clock may be up to {} ppm too fast or too slow.",
            self.clock_rate_error_ppm
        )?;
        writeln!(
            f,
            "Take-over after a crash: within {} at worst, while the store answers; {ttl} more where etcd's own leader has just \
             changed, or a candidate of NATS has just begun to look.",
            shown(self.takeover_after_crash)
        )?;
        writeln!(
            f,
            "Graceful hand-over: within {} and three round trips after the work has ended.",
            shown(self.hand_over)
        )?;
        write!(
            f,
            "Requests: {} a minute by the leader, {} a minute by each standby, beside its watch.",
            self.leader_requests_per_minute, self.standby_requests_per_minute
        )
    }
}

/// Rounded down to whole milliseconds: a promise with nanoseconds would be noise.
pub(super) fn shown(duration: Duration) -> String {
    format!(
        "{:?}",
        Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    )
}
