use super::durations::some_duration;
use clap::Args;
use std::time::Duration;

/// Watch every lease live: who leads, how long each lease still lasts, who stands by, what changes.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopArguments {
    /// Only leases whose names begin with this text
    #[arg(long, env = "TENURE_PREFIX", hide_env_values = true, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// How often to look; each look reads every lease
    #[arg(long, env = "TENURE_TOP_EVERY", hide_env_values = true, value_name = "DURATION", value_parser = some_duration, default_value = "1s")]
    pub(crate) every: Duration,
}
