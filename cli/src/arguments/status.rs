use super::{FencePlaceArguments, SelectArguments};
use clap::Args;

/// Show leases, and the marks of their fences.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatusArguments {
    /// Which leases.
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Where the marks are.
    #[command(flatten)]
    pub(crate) place: FencePlaceArguments,
}
