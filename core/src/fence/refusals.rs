use super::FenceError;
use crate::{FencingToken, ResourceName};
use std::collections::BTreeMap;

/// Most resources whose refusals are counted at once. Beyond it, refusals of further resources are not
/// counted until the others were noted; they are refused all the same.
const RESOURCES_MAX: usize = 1_024;

/// Under which name the fences count refusals for the `metrics` crate, with their feature of that name. Its
/// label `reason` is [`FenceError::reason`].
pub const REFUSALS_METRIC: &str = "lease_fence_refusals";

/// Refusals of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    /// How many.
    pub count: u64,
    /// The token of the last one.
    pub last: FencingToken,
}

/// Refusals that the log is still to be told of: of a fence's, whatever the resources, one line a second at
/// most. Whoever notes the sums tells of them, too, so that the end of a burst has its line.
#[derive(Clone, Default, Debug)]
pub struct UntoldRefusals(Option<RefusalLine>);

/// One line about refusals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalLine {
    /// How many there were since the last line.
    pub refusals: u64,
    /// The last of them.
    pub last: FenceError,
}

impl UntoldRefusals {
    /// One more.
    pub fn count(&mut self, refusal: &FenceError) {
        let before = self.0.as_ref().map_or(0, |line| line.refusals);
        self.0 = Some(RefusalLine {
            refusals: before.saturating_add(1),
            last: refusal.clone(),
        });
    }

    /// The line about them; nothing is left.
    pub fn take(&mut self) -> Option<RefusalLine> {
        self.0.take()
    }
}

/// Refusals that were counted in memory and are to be noted beside the mark.
///
/// A refused writer may try a million times a second, and the term that holds the mark must not pay for it:
/// so a fence counts here, and notes the sum and tells of it in the log at most once a second.
#[derive(Clone, Default, Debug)]
pub struct Refusals {
    counted: BTreeMap<ResourceName, Refused>,
    untold: UntoldRefusals,
}

impl Refusals {
    /// Counts `error`, if it is a refusal.
    pub fn count(&mut self, error: &FenceError) {
        if let Some((resource, token)) = error.refused() {
            self.untold.count(error);
            self.add(
                resource,
                Refused {
                    count: 1,
                    last: token,
                },
            );
        }
    }

    /// Puts back what was [taken](Self::take) and could not be noted: from before what has been counted
    /// since.
    pub fn put_back(&mut self, resource: &ResourceName, refused: Refused) {
        let last = self
            .counted
            .get(resource)
            .map_or(refused.last, |since| since.last);
        self.add(resource, Refused { last, ..refused });
    }

    fn add(&mut self, resource: &ResourceName, refused: Refused) {
        if let Some(sum) = self.counted.get_mut(resource) {
            sum.count = sum.count.saturating_add(refused.count);
            sum.last = refused.last;
        } else if self.counted.len() < RESOURCES_MAX {
            self.counted.insert(resource.clone(), refused);
        }
    }

    /// Whether nothing is to be noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// What is to be noted; nothing is left.
    pub fn take(&mut self) -> impl Iterator<Item = (ResourceName, Refused)> + use<> {
        std::mem::take(&mut self.counted).into_iter()
    }

    /// The line that tells of all that were counted since the last one.
    pub fn take_line(&mut self) -> Option<RefusalLine> {
        self.untold.take()
    }
}
