use super::FenceError;
use crate::{FencingToken, ResourceName};
use std::collections::BTreeMap;

/// Most resources whose refusals are counted at once. Beyond it, refusals of further resources are not counted
/// until the others were noted; they are refused all the same.
const RESOURCES_MAX: usize = 1_024;

/// Under which name the fences count refusals for the `metrics` crate, with their feature of that name. Its label
/// `reason` is [`FenceError::reason`].
pub const REFUSALS_METRIC: &str = "lease_fence_refusals";

/// Refusals of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    /// How many.
    pub count: u64,
    /// The token of the last one.
    pub last: FencingToken,
}

/// Refusals that were counted in memory and are to be noted beside the mark.
///
/// A refused writer may try a million times a second, and the term that holds the mark must not pay for it: so a
/// fence counts here, and notes the sum at most once a second.
#[derive(Clone, Default, Debug)]
pub struct Refusals(BTreeMap<ResourceName, Refused>);

impl Refusals {
    /// Counts `error`, if it is a refusal.
    pub fn count(&mut self, error: &FenceError) {
        if let Some((resource, token)) = error.refused() {
            self.add(
                resource,
                Refused {
                    count: 1,
                    last: token,
                },
            );
        }
    }

    /// Puts back what was [taken](Self::take) and could not be noted: from before what has been counted since.
    pub fn put_back(&mut self, resource: &ResourceName, refused: Refused) {
        let last = self.0.get(resource).map_or(refused.last, |since| since.last);
        self.add(resource, Refused { last, ..refused });
    }

    fn add(&mut self, resource: &ResourceName, refused: Refused) {
        if let Some(sum) = self.0.get_mut(resource) {
            sum.count = sum.count.saturating_add(refused.count);
            sum.last = refused.last;
        } else if self.0.len() < RESOURCES_MAX {
            self.0.insert(resource.clone(), refused);
        }
    }

    /// Whether nothing is to be noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is to be noted; nothing is left.
    pub fn take(&mut self) -> impl Iterator<Item = (ResourceName, Refused)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
