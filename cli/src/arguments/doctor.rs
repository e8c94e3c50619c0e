use super::TimingArguments;
use clap::Args;

/// Examine the store.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct DoctorArguments {
    /// The timing that is to suit the store.
    #[command(flatten)]
    pub(crate) timing: TimingArguments,
}

const HELP: &str = "\
Ends with 0 if leases are safe in this store, warnings or not; with 1 if they are not; with another code if
nothing could be examined.

Examples:
  tenure doctor
  tenure doctor --store mongodb://db1,db2,db3/jobs?replicaSet=rs0 --ttl 10s
  tenure doctor --output json";
