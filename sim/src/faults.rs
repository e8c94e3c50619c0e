//! What is done to the system under test, counted by kind.

macro_rules! faults {
    ($($(#[$doc:meta])* $kind:ident => $name:literal,)*) => {
        /// A kind of fault, or of rough use.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)*
        }

        impl FaultKind {
            /// Every kind, in the order of the report.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in reports: lower case, words joined by hyphens.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

faults! {
    /// A request never reached the store.
    RequestLost => "request-lost",
    /// A request was applied, and its reply never arrived.
    ReplyLost => "reply-lost",
    /// A request or a reply took most of the request time-out, or longer.
    Delay => "delay",
    /// A request was overtaken by later ones of its process.
    Reordering => "reordering",
    /// A request was applied twice within moments, and answered twice.
    Duplicate => "duplicate",
    /// A copy of a request was applied long after, across ends of terms.
    LateDuplicate => "late-duplicate",
    /// A process and the store could not reach each other.
    PartitionBothWays => "partition-both-ways",
    /// What a process sent did not arrive; what it was sent did.
    PartitionToStore => "partition-to-store",
    /// What a process was sent did not arrive; what it sent did.
    PartitionFromStore => "partition-from-store",
    /// A process was killed.
    Crash => "crash",
    /// A killed process was started again with the same id.
    Restart => "restart-same-name",
    /// A second process ran with the id of a living one.
    Twin => "twin",
    /// A process stood still for less than the ttl.
    PauseShort => "pause-short",
    /// A process stood still for longer than the ttl.
    PausePastTtl => "pause-past-ttl",
    /// A machine slept: its clock went on, its connections died.
    Suspend => "suspend",
    /// A machine's memory was frozen and its clock with it. Breaks *Rate*.
    FrozenClock => "frozen-clock",
    /// A clock's rate jumped to an edge of what is allowed, or beyond it where *Rate* is broken; back to
    /// right is not counted.
    RateDrift => "rate-drift",
    /// The store's clock stepped forward.
    StoreStepForward => "store-step-forward",
    /// The store's clock stepped back.
    StoreStepBack => "store-step-back",
    /// A process woke later than it had asked for.
    LateWake => "late-wake",
    /// The store went away and came back on a node with another clock.
    StoreFailover => "store-failover",
    /// A fail-over of the store extended every held lease by its ttl.
    FailoverRefresh => "failover-ttl-refresh",
    /// A fail-over of the store lost the latest writes that it had acknowledged. Breaks *Store*.
    TailLoss => "tail-loss",
    /// The store came back empty. Breaks *Store*.
    StoreWipe => "store-wipe",
    /// The store came back as it had been some time ago. Breaks *Store*.
    StoreRestore => "store-restore",
    /// A watch broke, and began again with a gap.
    WatchGap => "watch-gap",
    /// A watch told the same twice.
    WatchDuplicate => "watch-duplicate",
    /// A watch lagged.
    WatchDelay => "watch-delay",
    /// A watch left something out and did not say so.
    WatchLoss => "watch-loss",
    /// Every request took most of the request time-out for a while.
    SlowStore => "slow-store",
    /// The store was too busy and applied nothing.
    Busy => "busy",
    /// The store could not be reached, and said so at once.
    Unreachable => "unreachable",
    /// The store refused for a reason that only a person can mend.
    Misconfiguration => "misconfiguration",
    /// The leader was killed, and whoever stood by was told so at the very moment of the expiry: each looks
    /// within the spread of a hand-over.
    Herd => "herd-at-expiry",
    /// An operator released the lease under its holder.
    ForcedRelease => "forced-release",
    /// An operator asked the holder to step down.
    AskedToStepDown => "asked-to-step-down",
    /// A leader's work hung.
    StuckWork => "stuck-work",
    /// A leader's write left late: the process stood still between its check and its write.
    LateWrite => "late-write",
    /// A process withdrew its campaign.
    Withdrawal => "withdrawal",
    /// Nobody wanted the lease for long, and its record was cleaned up.
    DelayedDeletion => "delayed-deletion",
    /// The store granted another ttl than it was asked for.
    OtherTtl => "other-ttl-granted",
    /// What was read was from the past, and not as it is now: an operator's wish for an earlier term, or a
    /// read that decides nothing.
    StaleRead => "stale-read",
    /// The store did not answer for as long as the timing says that costs nothing.
    ShortOutage => "short-outage",
    /// A request was applied, its connection died before the answer, and its process was told of an error.
    AppliedThenError => "applied-then-error",
}

/// How often each kind happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl Default for FaultCounts {
    fn default() -> Self {
        Self([0; FaultKind::ALL.len()])
    }
}

impl FaultCounts {
    /// Counts one more.
    pub fn add(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }

    /// How often this kind happened.
    #[must_use]
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    /// Takes over what another run counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Every kind that happened more rarely than once in [`TERMS_PER_FAULT`] of these terms, with its count.
    #[must_use]
    pub fn below_floor(&self, terms: u64) -> Vec<(FaultKind, u64)> {
        let floor = terms / TERMS_PER_FAULT;
        let all = FaultKind::ALL.iter().map(|kind| (*kind, self.of(*kind)));
        all.filter(|(_, count)| *count < floor).collect()
    }
}

/// Each kind of fault must happen at least once in this many terms, or a campaign fails: one that injects
/// nothing proves nothing.
pub const TERMS_PER_FAULT: u64 = 100;
