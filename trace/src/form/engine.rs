//! What goes into an engine and what comes out.

use super::{choice, record};
use tenure_core::{Cause, Command, Departure, Event, Input, Operation, Reply, Request, Wake, WakeReason};

choice!(Input {
    "tick" => Tick,
    "answer" => Answer { request, reply },
    "watch" => Watch(event),
    "command" => Command(command),
});
choice!(Reply {
    "acquired" => Acquired(result),
    "renewed" => Renewed(results),
    "released" => Released(results),
    "looked" => Looked(result),
});
choice!(Command {
    "campaign" => Campaign { name, note, progress_within, max_hold },
    "withdraw" => Withdraw { name },
    "step_down" => StepDown { name, token },
    "work_ended" => WorkEnded { name, token },
    "hand_on" => HandOn { name, token, note, progress_within, max_hold },
    "deadline_seen" => DeadlineSeen { name, token },
    "extend" => Extend { name, token },
    "progress" => Progress { name, token, at },
});

record!(Request {
    id,
    give_up_at,
    operation
});
choice!(Operation {
    "acquire" => Acquire(acquire),
    "renew" => Renew(renewals),
    "release" => Release(releases),
    "look" => Look(name),
});
record!(Wake { at, why });
choice!(WakeReason {
    "deadline" => Deadline,
    "doubt" => Doubt,
    "renewal" => Renewal,
    "attempt" => Attempt,
    "departure" => Departure,
    "request_timeout" => RequestTimeout,
});

choice!(Cause {
    "given_back" => GivenBack,
    "succeeded" => Succeeded { token, by },
    "vanished" => Vanished,
    "deadline" => Deadline(error),
    "no_progress" => NoProgress(idle_for),
    "max_hold" => MaxHold(max),
});
choice!(Departure {
    "answered" => Answered(released),
    "unconfirmed" => Unconfirmed { error, remaining },
});
choice!(Event {
    "standby" => Standby { lease, twin },
    "attempt_failed" => AttemptFailed { name, error, retry_in },
    "campaign_ended" => CampaignEnded { name, error },
    "withdrawn" => Withdrawn { name },
    "acquired" => Acquired { name, grant, until, round_trip },
    "renewed" => Renewed { name, token, until, round_trip, slack },
    "renewal_failed" => RenewalFailed { name, token, error, remaining },
    "doubted" => Doubted { name, token, remaining },
    "reassured" => Reassured { name, token },
    "stuck" => Stuck { name, token, idle_for },
    "asked_to_step_down" => AskedToStepDown { name, token },
    "ended" => Ended { name, token, cause },
    "release_failed" => ReleaseFailed { name, token, error, remaining },
    "departed" => Departed { name, token, departure },
});
