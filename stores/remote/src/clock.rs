//! A server's clock beside ours, as far as requests can tell. Ours decides nothing: it is only the measure.

use crate::findings::{good, warning};
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_core::Finding;

/// Servers whose clocks differ by more shift every expiry by as much when another one judges it.
pub const SKEW_MAX_MS: i64 = 500;

/// How often a clock is asked for at most: the first request may have dialled, and any may have stalled.
const ASKS_MAX: usize = 3;

/// With no more doubt it is asked for no further time.
const DOUBT_ENOUGH_MS: i64 = 100;

/// How far a server's clock is ahead of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// If the server looked at its clock in the middle of the request, which is the best guess.
    pub ms: i64,
    /// So much more or less it may be: half of the time that the request took, which may have stalled on
    /// either way.
    pub doubt_ms: i64,
}

impl Ahead {
    /// Of a server that shows `theirs_ms` in an answer that has just come, to what was sent at `sent_ms`; in
    /// milliseconds since 1970.
    #[must_use]
    pub fn of(theirs_ms: i64, sent_ms: i64) -> Self {
        Self::between(theirs_ms, sent_ms, now_ms())
    }

    fn between(theirs_ms: i64, sent_ms: i64, answered_ms: i64) -> Self {
        Self {
            ms: theirs_ms - i64::midpoint(sent_ms, answered_ms),
            doubt_ms: (answered_ms - sent_ms).unsigned_abs().div_ceil(2).cast_signed(),
        }
    }

    /// What several requests tell together, the one that took least: `ask` answers with what the server shows
    /// in milliseconds since 1970.
    ///
    /// # Errors
    /// The first request failed.
    pub async fn asked<E, Asking>(ask: impl Fn() -> Asking) -> Result<Self, E>
    where
        Asking: Future<Output = Result<i64, E>>,
    {
        let once = || async {
            let sent = now_ms();
            ask().await.map(|theirs_ms| Self::of(theirs_ms, sent))
        };
        let mut best = once().await?;
        for _ask in 1..ASKS_MAX {
            if best.doubt_ms <= DOUBT_ENOUGH_MS {
                break;
            }
            let Ok(next) = once().await else { break };
            if next.doubt_ms < best.doubt_ms {
                best = next;
            }
        }
        Ok(best)
    }

    /// Whether the server's clock and ours are apart.
    #[must_use]
    pub fn skew(self) -> Skew {
        Skew::of(&[self, OURS])
    }

    /// In words, of a server that is asked alone.
    #[must_use]
    pub fn told(self) -> String {
        let Self { ms, doubt_ms } = self;
        format!("the server's is {ms} ms ahead of ours, give or take {doubt_ms} ms (which decides nothing)")
    }
}

/// This machine's own clock.
const OURS: Ahead = Ahead { ms: 0, doubt_ms: 0 };

/// Whether clocks are as far apart as shifts an expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skew {
    /// They are not, as far as requests can tell.
    Small,
    /// They are, wherever the requests lost their time.
    Large,
    /// A request took so long that it could hide as much.
    Unknown,
}

impl Skew {
    /// Of these clocks; fewer than two are not apart.
    #[must_use]
    pub fn of(clocks: &[Ahead]) -> Self {
        let latest = clocks.iter().map(|clock| clock.ms - clock.doubt_ms).max();
        let earliest = clocks.iter().map(|clock| clock.ms + clock.doubt_ms).min();
        let apart_at_least = latest
            .zip(earliest)
            .map_or(0, |(latest, earliest)| latest - earliest);
        if apart_at_least > SKEW_MAX_MS {
            return Self::Large;
        }
        match clocks.iter().any(|clock| clock.doubt_ms > SKEW_MAX_MS) {
            true => Self::Unknown,
            false => Self::Small,
        }
    }
}

/// What is found of the clock of a server that is asked alone. `shifts` says what a large skew does.
#[must_use]
pub fn finding(clock: Ahead, shifts: &str) -> Finding {
    const SUBJECT: &str = "clock";
    let detail = clock.told();
    match clock.skew() {
        Skew::Small => good(SUBJECT, detail),
        Skew::Large => warning(
            SUBJECT,
            format!("{detail}; {shifts}"),
            "synchronise the clocks of all servers (ntpd, or chrony with maxslewrate 500), or take ttls far longer",
        ),
        Skew::Unknown => warning(SUBJECT, format!("{detail}: {UNKNOWN}"), ASK_NEARER),
    }
}

/// What is to be said where nothing can be told of clocks.
pub const UNKNOWN: &str = "requests took so long that they would hide a clock that is wrong";

/// What is to be done there.
pub const ASK_NEARER: &str = "run `tenure doctor` nearer to the servers, or when they are less busy";

/// This machine's wall clock, in milliseconds since 1970; only ever shown.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{ASKS_MAX, Ahead, DOUBT_ENOUGH_MS, SKEW_MAX_MS, Skew, finding, now_ms};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tenure_core::Verdict;

    /// How often a machine may stall in each request that is to be quick.
    const TRIES_MAX: usize = 20;

    fn clock(ms: i64, doubt_ms: i64) -> Ahead {
        Ahead { ms, doubt_ms }
    }

    /// The server looked as soon as it was asked, or just before it answered: both are the same clock.
    #[test]
    fn request_that_stalls_makes_no_clock_wrong_and_none_right() {
        for theirs_ms in [10_000, 13_000] {
            let stalled = Ahead::between(theirs_ms, 10_000, 13_000);
            assert!(stalled.ms.abs() > SKEW_MAX_MS, "{stalled:?}");
            assert_eq!(stalled.skew(), Skew::Unknown);
            let quick = Ahead::between(10_000, 9_999, 10_001);
            assert_eq!(quick.skew(), Skew::Small);
            assert_eq!(Skew::of(&[quick, stalled]), Skew::Unknown);
        }
    }

    #[test]
    fn clock_that_is_wrong_is_so_also_in_the_answer_to_a_request_that_stalled() {
        for theirs_ms in [10_000 - SKEW_MAX_MS - 2, 13_000 + SKEW_MAX_MS + 2] {
            let wrong = Ahead::between(theirs_ms, 10_000, 13_000);
            assert_eq!(wrong.skew(), Skew::Large, "{wrong:?}");
            let quick = Ahead::between(10_000, 10_000, 10_000);
            assert_eq!(Skew::of(&[wrong, quick]), Skew::Large);
        }
    }

    #[test]
    fn clock_that_nobody_can_tell_is_not_told_as_good() {
        let verdict = |clock| finding(clock, "it shifts expiries").verdict;
        assert_eq!(verdict(clock(0, SKEW_MAX_MS)), Verdict::Good);
        assert_eq!(verdict(clock(0, SKEW_MAX_MS + 1)), Verdict::Warning);
        let unknown = finding(clock(0, SKEW_MAX_MS + 1), "it shifts expiries");
        assert!(unknown.detail.contains("took so long"), "{unknown:?}");
        let wrong = finding(clock(SKEW_MAX_MS + 2, 1), "it shifts expiries");
        assert_eq!(wrong.verdict, Verdict::Warning);
        assert!(wrong.detail.ends_with("it shifts expiries"), "{wrong:?}");
    }

    /// As one that dials before it asks.
    #[tokio::test]
    async fn clock_whose_first_request_was_slow_is_asked_for_again() {
        let slow = Duration::from_millis(DOUBT_ENOUGH_MS.unsigned_abs() * 3);
        for _try in 0..TRIES_MAX {
            let asks = AtomicUsize::new(0);
            let ask = || async {
                if asks.fetch_add(1, Ordering::SeqCst) == 0 {
                    tokio::time::sleep(slow).await;
                }
                Ok::<_, ()>(now_ms())
            };
            let clock = Ahead::asked(ask).await.expect("an answer");
            let asks = asks.load(Ordering::SeqCst);
            assert!((2..=ASKS_MAX).contains(&asks), "{asks}");
            if clock.doubt_ms <= DOUBT_ENOUGH_MS {
                return;
            }
        }
        panic!("what the slow request told was kept");
    }

    #[tokio::test]
    async fn clock_that_answered_once_is_told_though_it_is_silent_then() {
        let slow = Duration::from_millis(DOUBT_ENOUGH_MS.unsigned_abs() * 3);
        let asks = AtomicUsize::new(0);
        let ask = || async {
            tokio::time::sleep(slow).await;
            match asks.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(now_ms()),
                _ => Err("silent"),
            }
        };
        assert!(Ahead::asked(ask).await.is_ok());
        assert_eq!(asks.load(Ordering::SeqCst), 2);
    }
}
