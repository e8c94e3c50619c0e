use crate::message::{Answer, Ask};
use tenure_core::Certainty;

/// What happens in one move, for the trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Label {
    ClockTicks,
    Wakes,
    AnswerArrives { ask: Ask, answer: Answer },
    ErrorArrives { ask: Ask, certainty: Certainty },
    LateAnswerArrives { answer: Answer },
    Campaigns,
    Withdraws,
    StepsDown,
    WorkEnds { token: u8 },
    HandsOn { token: u8 },
    Crashes,
    Restart,
    Applied,
    LateArrives,
    StoreTick,
    Told,
    Claims,
    Writes,
    Outdated,
}
