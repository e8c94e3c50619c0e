use crate::watermark::Watermark;
use std::fmt;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fault, Fence, FenceError, Mark, MarkPage, ResourceName, StoreError, Term,
};

/// What the file of a watermark held when it was looked at: [`Watermark::look`]. For people, and for no
/// decision.
///
/// Nothing can be claimed or bumped here, and what a check here refuses is not counted in the file.
pub struct WatermarkView(pub(crate) Watermark);

impl Fence for WatermarkView {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        _term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(std::future::ready(Err(only_looked_at(resource))))
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        self.0.check(resource, term)
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        self.0.mark(resource)
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        self.0.marks(after)
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        Box::pin(std::future::ready(Err(only_looked_at(&bump.resource))))
    }

    fn count_refusal(&self, _refusal: &FenceError) {}

    fn note_refusals(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl fmt::Debug for WatermarkView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatermarkView").finish_non_exhaustive()
    }
}

fn only_looked_at(resource: &ResourceName) -> FenceError {
    FenceError::Store(StoreError::not_applied(
        Fault::ReadOnly,
        format!("fence \"{resource}\": the watermark was only looked at; open it to raise a mark"),
    ))
}
