//! Every metric, declared once: what is exported, described, documented and drawn comes from this list.

use tenure_core::REFUSALS_METRIC;

/// What a metric is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// As it is now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, as it is exported.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// What it tells, in one sentence.
    pub help: &'static str,
    /// Its labels. `lease` is the name of an election's lease, and `*` for all locks of a process together,
    /// which may be a hundred thousand; every other label has a few fixed values.
    pub labels: &'static [&'static str],
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        help,
        labels,
    }
}

pub(super) const LEADER_STATUS: &str = "leader_status";
pub(super) const CANDIDATES: &str = "lease_candidates";
pub(super) const VALID_UNTIL: &str = "lease_valid_until_timestamp_seconds";
pub(super) const ATTEMPTS: &str = "lease_acquisition_attempts";
pub(super) const FAILURES: &str = "lease_acquisition_failures";
pub(super) const RENEWALS: &str = "lease_renewals";
pub(super) const RENEWAL_FAILURES: &str = "lease_renewal_failures";
pub(super) const RENEWAL_SECONDS: &str = "lease_renewal_seconds";
pub(super) const SLACK: &str = "lease_renewal_slack_seconds";
pub(super) const WORST_SLACK: &str = "lease_worst_slack_seconds";
pub(super) const TERM_SECONDS: &str = "lease_term_seconds";
pub(super) const TERMS: &str = "lease_terms";
pub(super) const TERMS_BEGUN: &str = "lease_terms_begun";
pub(super) const TERMS_ENDED: &str = "lease_terms_ended";
pub(super) const RELEASE_FAILURES: &str = "lease_release_failures";
pub(super) const DOUBTS: &str = "lease_doubts";
pub(super) const UNKNOWN: &str = "lease_unknown_outcomes";
pub(super) const REQUEST_SECONDS: &str = "lease_request_seconds";
pub(super) const UNREACHABLE_SINCE: &str = "lease_store_unreachable_since_timestamp_seconds";
pub(super) const REFUSALS_NOTED: &str = "lease_fence_refusals_noted";

/// All of them.
pub const METRICS: &[Metric] = &[
    metric(
        LEADER_STATUS,
        MetricKind::Gauge,
        &["lease"],
        "1 while this process leads, 0 while it does not; for locks, how many it holds.",
    ),
    metric(
        CANDIDATES,
        MetricKind::Gauge,
        &["lease"],
        "Above 0 while this process wants to lead or leads; of `tenure run` as long as it runs, also while it waits for its store and between its terms. 0 for a program that has an `Election` and neither campaigns nor leads. Not for locks.",
    ),
    metric(
        VALID_UNTIL,
        MetricKind::Gauge,
        &["lease"],
        "When the term ends unless it is renewed again, as Unix time; minus `time()` it is what remains. 0 without a term. Not for locks.",
    ),
    metric(
        ATTEMPTS,
        MetricKind::Counter,
        &["lease"],
        "Requests to acquire that were sent.",
    ),
    metric(
        FAILURES,
        MetricKind::Counter,
        &["lease", "reason"],
        "Requests to acquire that the store refused or did not answer, and of `tenure run` attempts to open it, by the kind of fault; an answer that another holds the lease is not counted.",
    ),
    metric(
        RENEWALS,
        MetricKind::Counter,
        &["lease"],
        "Renewals that extended a term.",
    ),
    metric(
        RENEWAL_FAILURES,
        MetricKind::Counter,
        &["lease", "reason"],
        "Renewals that failed, by the kind of fault; the term goes on until its deadline.",
    ),
    metric(
        RENEWAL_SECONDS,
        MetricKind::Histogram,
        &["lease"],
        "Time from sending a renewal to its answer.",
    ),
    metric(
        SLACK,
        MetricKind::Histogram,
        &["lease"],
        "Time that was left until the old deadline when a renewal was confirmed.",
    ),
    metric(
        WORST_SLACK,
        MetricKind::Gauge,
        &["lease"],
        "The least `lease_renewal_slack_seconds` of the current term; it does not recover before the next. Not for locks.",
    ),
    metric(
        TERM_SECONDS,
        MetricKind::Histogram,
        &["lease"],
        "How long a term lasted. Not for locks.",
    ),
    metric(
        TERMS,
        MetricKind::Gauge,
        &["lease"],
        "How many terms the lease has had, as its store counts: of any process, and as far as this one has heard. Not for locks.",
    ),
    metric(
        TERMS_BEGUN,
        MetricKind::Counter,
        &["lease", "after"],
        "Terms that began: `vacant` on a lease that was new or released, `expired` after a holder that did not come back.",
    ),
    metric(
        TERMS_ENDED,
        MetricKind::Counter,
        &["lease", "cause"],
        "Terms that ended: `given_back`, `succeeded`, `vanished`, `deadline`, `no_progress` or `max_hold`. All but the first are losses.",
    ),
    metric(
        RELEASE_FAILURES,
        MetricKind::Counter,
        &["lease", "reason"],
        "Releases that failed, by the kind of fault; each is sent again until the lease has surely expired, unless only a person can mend it.",
    ),
    metric(
        DOUBTS,
        MetricKind::Counter,
        &["lease"],
        "How often a term became doubtful: it was asked back or nears its longest hold, or no renewal came through until \
         the grace before its deadline.",
    ),
    metric(
        UNKNOWN,
        MetricKind::Counter,
        &["lease", "operation"],
        "Requests that the store may or may not have applied; each is resolved by asking again.",
    ),
    metric(
        REQUEST_SECONDS,
        MetricKind::Histogram,
        &["operation"],
        "Time from sending any request to its answer; requests that were given up are not counted.",
    ),
    metric(
        UNREACHABLE_SINCE,
        MetricKind::Gauge,
        &["lease"],
        "Since when no request, or of `tenure run` no attempt to open the store, has been answered, as Unix time; 0 while requests are answered, and when nothing has been asked for one ttl.",
    ),
    metric(
        REFUSALS_METRIC,
        MetricKind::Counter,
        &["reason"],
        "Writes that a fence in this process refused: `stale` (a later term has claimed), `unclaimed` (this term has not claimed), `foreign` (a token of another lease), `future` (a token that cannot have been granted yet).",
    ),
    metric(
        REFUSALS_NOTED,
        MetricKind::Gauge,
        &["lease"],
        "Writes that the fences of the lease have ever refused, in any process, as their marks tell: those at the `TENURE_FENCE` of the environment of `tenure run`, or else beside the lease. Where it may not read them, nothing is told. What the database itself refuses, in `tenure.enter` that `psql` calls or by a guarded table, no mark tells. A `tenure run` that leads looks every 15 s, or at longer intervals where that takes long, at the marks of all leases: beyond 100,000 marks, or 5 s, it is not told, which is logged. What `TENURE_FENCE` names is opened for each look and closed after it; on a server that is a login, each minute. Where that is refused, it is logged once and tried again after 15 min, then after pauses that double to a day.",
    ),
];
