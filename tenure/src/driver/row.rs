//! A lease that goes from one to the next within a process, and how others get to have it.

use std::time::Duration;
use tenure_core::{FencingToken, Moment, WatchSource};

/// How often in a row a lease is handed on within a process, whatever time that takes, before it is released,
/// so that other processes, which only a release wakes, get to try: eight hand-overs of nine cost one request
/// instead of two.
pub(crate) const HAND_ONS: u32 = 8;

/// For how long it is handed on more often. Where each keeps it for less than a millisecond, waking another
/// process costs as much as many hand-overs, and letting them go first costs that other less than one that
/// keeps it for long.
pub(crate) const HAND_ONS_FOR: Duration = Duration::from_millis(20);

/// How long a process stands back where others are told of a release: they are to be woken, and to ask. Twice
/// the time that the release took comes to that, and where nobody else has taken the lease the last time, it
/// was too short or nobody wants it: it is twice as long and half as often then, up to the next two.
const STAND_BACK_TOLD: Duration = Duration::from_millis(2);
const STAND_BACK_TOLD_MAX: Duration = Duration::from_millis(16);

/// Most rows from one after which a process stands back to the next.
const ROWS_ALONE_MAX: u32 = 31;

/// How long it stands back where the store looks for others whether there was a release.
const STAND_BACK_LOOKED_FOR: Duration = Duration::from_millis(25);

/// Longest time for which a process stands back, however slow the store.
const STAND_BACK_MAX: Duration = Duration::from_millis(100);

/// Those of one process who have a lease one after another, without a release in between.
#[derive(Default)]
pub(super) struct Row {
    handed_on: u32,
    /// When it was handed on first.
    began: Moment,
    over: Option<Over>,
    /// After how many rows more the process stands back.
    rows_left: u32,
    /// As many were left after the last time.
    rows_alone: u32,
}

/// A row that has ended although somebody waits here.
struct Over {
    token: FencingToken,
    at: Moment,
    until: Option<Moment>,
}

impl Row {
    /// Whether the lease was last handed on.
    pub(super) fn goes_on(&self) -> bool {
        self.handed_on > 0
    }

    /// Whether one more may be in it, by its length.
    pub(super) fn has_room(&self, now: Moment) -> bool {
        self.handed_on < HAND_ONS || now.since(self.began) < HAND_ONS_FOR
    }

    /// The lease is handed on.
    pub(super) fn hand_on(&mut self, now: Moment) {
        if self.handed_on == 0 {
            self.began = now;
        }
        self.handed_on = self.handed_on.saturating_add(1);
    }

    /// The lease is not handed on.
    pub(super) fn end(&mut self) {
        self.handed_on = 0;
    }

    /// The term is released for others to try, although somebody waits here.
    pub(super) fn end_for_others(&mut self, token: FencingToken, now: Moment) {
        self.end();
        self.over = match self.rows_left {
            0 => Some(Over {
                token,
                at: now,
                until: None,
            }),
            _ => None,
        };
        self.rows_left = self.rows_left.saturating_sub(1);
    }

    /// The term was released. Until when whoever waits here is to let others go first, who would hardly ever
    /// be faster: they have to be told first. `None` where nobody can tell them.
    pub(super) fn stand_back(
        &mut self,
        token: FencingToken,
        now: Moment,
        watch: WatchSource,
    ) -> Option<Moment> {
        let least = match watch {
            WatchSource::Absent => return None,
            WatchSource::Poll => STAND_BACK_LOOKED_FOR,
            WatchSource::Push => (STAND_BACK_TOLD * (self.rows_alone + 1)).min(STAND_BACK_TOLD_MAX),
        };
        let over = self.over.as_mut().filter(|over| over.token == token)?;
        let pause = least + 2 * now.since(over.at);
        let until = now.after(pause.min(STAND_BACK_MAX));
        over.until = Some(until);
        Some(until)
    }

    pub(super) fn stands_back(&self, now: Moment) -> bool {
        let until = self.over.as_ref().and_then(|over| over.until);
        until.is_some_and(|until| now < until)
    }

    /// A term began here. Where it follows the one that ended the row, nobody else wants the lease, most
    /// likely: then the process stands back ever more seldom.
    pub(super) fn begin(&mut self, before: Option<FencingToken>) {
        let Some(over) = self.over.take() else { return };
        self.rows_alone = match before == Some(over.token) {
            true => (2 * self.rows_alone + 1).min(ROWS_ALONE_MAX),
            false => 0,
        };
        self.rows_left = self.rows_alone;
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS_ALONE_MAX, Row, STAND_BACK_LOOKED_FOR, STAND_BACK_TOLD, STAND_BACK_TOLD_MAX};
    use std::time::Duration;
    use tenure_core::{FencingToken, Moment, WatchSource};

    fn token(number: i64) -> FencingToken {
        FencingToken::from_signed(number).expect("a token")
    }

    /// How long the process stands back after its next row, and whether at all.
    fn after_a_row(row: &mut Row, ended: i64, watch: WatchSource) -> Option<Duration> {
        let now = Moment::ZERO.after(Duration::from_secs(7));
        row.hand_on(now);
        row.end_for_others(token(ended), now);
        assert!(!row.stands_back(now), "it is not released yet");
        let until = row.stand_back(token(ended), now, watch)?;
        assert!(row.stands_back(now) && !row.stands_back(until));
        Some(until.since(now))
    }

    #[test]
    fn a_process_stands_back_ever_more_seldom_and_for_longer_while_nobody_else_takes_the_lease() {
        let mut row = Row::default();
        let (mut ended, mut alone, mut pause) = (0, 0, STAND_BACK_TOLD);
        for _time in 0..9 {
            for _row in 0..alone {
                ended += 1;
                assert_eq!(after_a_row(&mut row, ended, WatchSource::Push), None);
                row.begin(Some(token(ended)));
            }
            ended += 1;
            assert_eq!(after_a_row(&mut row, ended, WatchSource::Push), Some(pause));
            row.begin(Some(token(ended)));
            (alone, pause) = (
                (2 * alone + 1).min(ROWS_ALONE_MAX),
                (2 * pause).min(STAND_BACK_TOLD_MAX),
            );
        }
        assert_eq!((alone, pause), (ROWS_ALONE_MAX, STAND_BACK_TOLD_MAX));
        for _row in 0..=alone {
            ended += 1;
            after_a_row(&mut row, ended, WatchSource::Push);
        }
        // Another had it in between.
        row.begin(Some(token(ended + 1)));
        ended += 2;
        assert_eq!(
            after_a_row(&mut row, ended, WatchSource::Push),
            Some(STAND_BACK_TOLD)
        );
    }

    #[test]
    fn a_process_stands_back_for_as_long_as_a_store_needs_to_tell_others() {
        let now = Moment::ZERO.after(Duration::from_secs(7));
        assert_eq!(after_a_row(&mut Row::default(), 1, WatchSource::Absent), None);
        let looked_for = after_a_row(&mut Row::default(), 1, WatchSource::Poll);
        assert_eq!(looked_for, Some(STAND_BACK_LOOKED_FOR));
        let mut row = Row::default();
        row.end_for_others(token(1), now);
        assert_eq!(
            row.stand_back(token(2), now, WatchSource::Push),
            None,
            "of another term"
        );
        let late = now.after(Duration::from_millis(5));
        let until = row.stand_back(token(1), late, WatchSource::Push);
        assert_eq!(
            until,
            Some(late.after(STAND_BACK_TOLD + Duration::from_millis(10)))
        );
    }
}
