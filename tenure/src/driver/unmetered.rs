//! In place of metrics, where they are not compiled in.

use std::time::Duration;
use tenure_core::{Event, LeaseName, Operation, Reply};

pub(crate) struct Meter;

pub(crate) struct About;

impl Meter {
    pub(crate) fn of_election(_name: &LeaseName) -> Self {
        Self
    }

    pub(crate) fn of_locks() -> Self {
        Self
    }

    pub(crate) fn of_nothing() -> Self {
        Self
    }

    pub(crate) fn sent(&self, _operation: &Operation) {}

    pub(crate) fn answered(&mut self, _about: &About, _reply: Option<&Reply>, _took: Duration) {}

    pub(crate) fn counts_failure(&self, _about: &About, _reply: Option<&Reply>) {}

    pub(crate) fn tells_of_an_outage(&self) -> bool {
        false
    }

    pub(crate) fn nobody_asks(&mut self, _patience: Duration) {}

    pub(crate) fn wanted(&mut self, _name: &LeaseName, _is_wanted: bool) {}

    pub(crate) fn event(&mut self, _event: &Event) {}
}

impl About {
    pub(crate) fn of(_operation: &Operation) -> Self {
        Self
    }

    pub(crate) fn name(&self) -> Option<&LeaseName> {
        None
    }
}
