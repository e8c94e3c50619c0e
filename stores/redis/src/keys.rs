//! Which keys and channels the records of one place have.

use tenure_core::{LeaseName, ResourceName};

/// The names of everything under one prefix.
///
/// The prefix is in braces: a cluster then keeps all of it in one slot, so that a script may touch several
/// keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// Keys are those of one database by themselves. Messages are not: who listens in any database hears them
    /// all.
    database: u16,
}

impl Keys {
    /// `prefix` without braces.
    pub(crate) fn new(prefix: &str, database: u16) -> Self {
        Self {
            prefix: format!("{{{prefix}}}"),
            database,
        }
    }

    /// The sorted set of all names, by which they are listed in order.
    pub(crate) fn index(&self) -> String {
        format!("{}:leases", self.prefix)
    }

    /// What the key of every record begins with.
    pub(crate) fn records(&self) -> String {
        format!("{}:lease:", self.prefix)
    }

    /// The record of a lease.
    pub(crate) fn record(&self, name: &LeaseName) -> String {
        format!("{}:lease:{name}", self.prefix)
    }

    /// The highest token of the records that a clean-up of a quorum has removed.
    pub(crate) fn removed(&self) -> String {
        format!("{}:leases:removed", self.prefix)
    }

    /// What is kept of which store it is. Named as what a user's own keys must not be.
    pub(crate) fn store(&self) -> String {
        format!("{}:leases:store", self.prefix)
    }

    /// What a member of a quorum keeps of who the members are.
    pub(crate) fn membership(&self) -> String {
        format!("{}:quorum", self.prefix)
    }

    /// What the channel of every lease begins with, whatever its database.
    pub(crate) fn all_channels(&self) -> String {
        format!("{}:changes:", self.prefix)
    }

    /// What the channel of every lease of this database begins with. No name begins with a slash.
    pub(crate) fn channels(&self) -> String {
        match self.database {
            0 => self.all_channels(),
            database => format!("{}/{database}/", self.all_channels()),
        }
    }

    /// The sorted set of all fenced resources, by which they are listed in order.
    pub(crate) fn marks(&self) -> String {
        format!("{}:fences", self.prefix)
    }

    /// What the key of every mark begins with.
    pub(crate) fn mark_keys(&self) -> String {
        format!("{}:fence:", self.prefix)
    }

    /// The mark of a resource.
    pub(crate) fn mark(&self, resource: &ResourceName) -> String {
        format!("{}:fence:{resource}", self.prefix)
    }

    /// What the key of all counts of refusals begins with.
    pub(crate) fn refusal_keys(&self) -> String {
        format!("{}:refusals:", self.prefix)
    }

    /// Where refusals of a resource are counted.
    pub(crate) fn refusals(&self, resource: &ResourceName) -> String {
        format!("{}:refusals:{resource}", self.prefix)
    }

    /// Where changes of a lease are told.
    pub(crate) fn channel(&self, name: &LeaseName) -> String {
        format!("{}{name}", self.channels())
    }
}
