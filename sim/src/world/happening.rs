use tenure_core::Change;

/// What happens next in a world. Small and plain: millions of them are sorted each second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A process asked to be woken.
    Wake { slot: u8, instance: u32 },
    /// A message arrives at the store.
    Arrives { message: u32 },
    /// A reply arrives at its process.
    Replies { message: u32 },
    /// A watch tells a process of a change.
    Hint {
        slot: u8,
        instance: u32,
        name: u8,
        change: Change,
        token: u64,
    },
    /// A watch is in place, from now on.
    WatchBegins { slot: u8, instance: u32 },
    /// A process begins to want a lease.
    Campaigns { slot: u8, instance: u32, name: u8 },
    /// A process ends its campaign.
    Withdraws { slot: u8, instance: u32, name: u8 },
    /// A leader's work takes its next step.
    Works { slot: u8, name: u8, serial: u32 },
    /// A write that was checked leaves its process.
    WriteLeaves { access: u32 },
    /// An access arrives at the register.
    Accesses { access: u32 },
    /// A leader's work ends in an orderly way.
    WorkEnds { slot: u8, name: u8, serial: u32 },
    /// A planned fault comes.
    Fault { ordinal: u32 },
    /// A process that stood still goes on.
    Resumes { slot: u8 },
    /// A killed process is started again.
    Starts { slot: u8, instance: u32 },
    /// A twin goes away.
    TwinEnds { slot: u8, instance: u32 },
    /// A partition ends.
    Heals { slot: u8, number: u32 },
    /// The store is back.
    StoreReturns,
    /// Every process looks, at the moment of the expiry.
    HerdLooks { name: u8 },
    /// The lease's record is cleaned up, if nobody has wanted it.
    CleansUp { name: u8 },
    /// The faults are over.
    Calm,
    /// Somebody must lead now.
    MustLead,
    /// The fault-free time ends; the short outage begins.
    QuietEnds,
    /// The short outage is over, and the leader is looked for again.
    OutageJudged,
    /// The run ends.
    Ends,
}

impl Happening {
    /// What it is and whom it concerns, for the trace hash.
    pub(crate) fn code(&self) -> u64 {
        let (kind, who, what) = match *self {
            Self::Wake { slot, instance } => (1, slot, instance),
            Self::Arrives { message } => (2, 0, message),
            Self::Replies { message } => (3, 0, message),
            Self::Hint {
                slot,
                name,
                change,
                token,
                ..
            } => {
                return 4
                    | u64::from(slot) << 8
                    | u64::from(name) << 16
                    | (change as u64) << 20
                    | token << 24;
            }
            Self::WatchBegins { slot, instance } => (5, slot, instance),
            Self::Campaigns { slot, instance, .. } => (6, slot, instance),
            Self::Works { slot, serial, .. } => (7, slot, serial),
            Self::WriteLeaves { access } => (8, 0, access),
            Self::Accesses { access } => (9, 0, access),
            Self::WorkEnds { slot, serial, .. } => (10, slot, serial),
            Self::Fault { ordinal } => (11, 0, ordinal),
            Self::Resumes { slot } => (12, slot, 0),
            Self::Starts { slot, instance } => (13, slot, instance),
            Self::TwinEnds { slot, instance } => (14, slot, instance),
            Self::Heals { slot, number } => (15, slot, number),
            Self::StoreReturns => (16, 0, 0),
            Self::HerdLooks { name } => (17, name, 0),
            Self::CleansUp { name } => (18, name, 0),
            Self::Calm => (19, 0, 0),
            Self::MustLead => (20, 0, 0),
            Self::QuietEnds => (21, 0, 0),
            Self::OutageJudged => (22, 0, 0),
            Self::Ends => (23, 0, 0),
            Self::Withdraws { slot, instance, .. } => (24, slot, instance),
        };
        kind | u64::from(who) << 8 | u64::from(what) << 16
    }
}
