use super::durations::duration;
use super::{TimingArguments, prevailing_of};
use clap::{ArgMatches, Args, ValueEnum};
use std::time::Duration;
use tenure::{Timing, TimingError};

/// Say in words what a timing promises, or everything that is wrong with it.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct ExplainArguments {
    /// A timing that has proved itself
    #[arg(long, env = "TENURE_PRESET", hide_env_values = true)]
    pub(crate) preset: Option<Preset>,

    /// The shortest advisable timing for a store whose slow requests take this long, 48min at most
    #[arg(
        long,
        env = "TENURE_ROUND_TRIP",
        hide_env_values = true,
        value_name = "DURATION",
        value_parser = advisable
    )]
    pub(crate) round_trip: Option<Duration>,

    /// How long, how often, how soon.
    #[command(flatten)]
    pub(crate) timing: TimingArguments,
}

/// A timing that has proved itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Preset {
    /// 30 s, renewed every 10 s: nightly jobs
    Batch,
    /// 15 s, renewed every 2 s: controllers
    Controller,
}

/// The slowest store there is a timing for: the longest ttl is thirty of its round trips.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(48 * 60);

fn advisable(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        round_trip if round_trip > ROUND_TRIP_MAX => Err(
            "48min is the most: a lease lasts thirty round trips at least, and 24h at most; take another store".to_owned(),
        ),
        round_trip => Ok(round_trip),
    }
}

impl ExplainArguments {
    /// The timing that is to be explained: what was typed beats what the environment says.
    ///
    /// # Errors
    /// A usage error where two were typed; every violation of the timing otherwise.
    pub(crate) fn timing(&self, matches: &ArgMatches) -> Result<Result<Timing, TimingError>, clap::Error> {
        let source = prevailing_of(
            matches,
            &[&["preset"], &["round_trip"], &["ttl", "renew", "grace"]],
        )?;
        Ok(match (source, self.preset, self.round_trip) {
            (Some("preset"), Some(Preset::Batch), _) => Ok(Timing::batch()),
            (Some("preset"), Some(Preset::Controller), _) => Ok(Timing::controller()),
            (Some("round_trip"), _, Some(round_trip)) => Ok(Timing::advised(round_trip)),
            _ => self.timing.timing(),
        })
    }
}

const HELP: &str = "\
Examples:
  tenure explain
  tenure explain --ttl 15s --grace 4s
  tenure explain --preset controller --output json
  tenure explain --round-trip 5ms";
