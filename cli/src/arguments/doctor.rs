use super::TimingArguments;
use super::durations::duration;
use clap::Args;
use std::time::Duration;

/// Examine the store.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct DoctorArguments {
    /// How long to watch the store's clock for steps and drift: it takes a lease of its own meanwhile; 0s:
    /// not at all
    ///
    /// With 0s nothing is taken or renewed: whether a lease is to be had is told only as far as the store
    /// knows it without that, and the advised ttl goes by reads alone.
    #[arg(long, env = "TENURE_CLOCK_FOR", hide_env_values = true, value_name = "DURATION", default_value = "2s", value_parser = watched)]
    pub(crate) clock_for: Duration,

    /// The timing that is to suit the store.
    #[command(flatten)]
    pub(crate) timing: TimingArguments,
}

/// Longest watch of a clock.
const CLOCK_FOR_MAX: Duration = Duration::from_secs(3600);

fn watched(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    match time <= CLOCK_FOR_MAX {
        true => Ok(time),
        false => Err("an hour is the most; call it again and again for more".to_owned()),
    }
}

const HELP: &str = "\
Ends with 0 if leases are safe in this store, warnings or not; with 1 if they are not, or cannot work; with 82 if the
store can lose what it has confirmed, so that two may lead and only fences protect: where every write is fenced, let
82 pass; with another code if nothing could be examined.

Examples:
  tenure doctor
  tenure doctor --store mongodb://db1,db2,db3/jobs?replicaSet=rs0 --ttl 10s
  tenure doctor --clock-for 10m
  tenure doctor --output json";
