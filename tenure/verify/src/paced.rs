use crate::clock;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// A scheduler that knows of time, and of being late.
///
/// - A patient keeper of time goes only when nobody else can.
/// - In half of the executions one task is late: most of the time it is passed over while another can go. A
///   random choice alone hardly ever leaves one task behind for long, as a busy machine does.
pub(crate) struct Paced<Inner> {
    inner: Inner,
    dice: u64,
    late: Option<TaskId>,
}

/// Of so many tasks, in the order of their beginning, one may be late: those of the first terms.
const MAY_BE_LATE: u64 = 12;

/// The late one goes in one of so many turns.
const LATE_TURNS: u64 = 16;

impl<Inner: Scheduler> Paced<Inner> {
    pub(crate) fn new(inner: Inner, seed: u64) -> Self {
        Self {
            inner,
            dice: seed,
            late: None,
        }
    }

    /// A random number by the method of `SplitMix64` (Steele, Lea, Flood 2014).
    fn throw(&mut self) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl<Inner: Scheduler> Scheduler for Paced<Inner> {
    fn new_execution(&mut self) -> Option<Schedule> {
        clock::forget_keeper();
        let throw = self.throw() % (2 * MAY_BE_LATE);
        self.late = usize::try_from(throw)
            .ok()
            .filter(|_| throw < MAY_BE_LATE)
            .map(TaskId::from);
        self.inner.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let mut chosen_from = runnable.to_vec();
        let late = self.late.filter(|_| !self.throw().is_multiple_of(LATE_TURNS));
        for passed_over in [clock::patient_keeper(), late] {
            if chosen_from.iter().any(|task| Some(task.id()) != passed_over) {
                chosen_from.retain(|task| Some(task.id()) != passed_over);
            }
        }
        self.inner.next_task(&chosen_from, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}
