use super::durations::duration;
use clap::Args;
use std::time::Duration;
use tenure::{Timing, TimingError, TimingOptions};

/// The timing of a lease.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timing")]
pub(crate) struct TimingArguments {
    /// How long the lease lasts from its last renewal, 100ms to 24h [default: 30s]
    ///
    /// After a crash the next candidate starts when it is over.
    #[arg(long, env = "TENURE_TTL", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,

    /// How often it is renewed [default: a third of the ttl]
    #[arg(long, env = "TENURE_RENEW", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) renew: Option<Duration>,

    /// How long the command may take to end after SIGTERM [default: a sixth of the ttl]
    ///
    /// When the lease cannot be renewed, SIGTERM comes this long before its deadline, and SIGKILL shortly
    /// before it.
    #[arg(long, env = "TENURE_GRACE", hide_env_values = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
}

/// The ttl where none is given.
pub(crate) const TTL_DEFAULT: Duration = Duration::from_secs(30);

impl TimingArguments {
    /// The timing they describe.
    ///
    /// # Errors
    /// Every violation at once.
    pub(crate) fn timing(&self) -> Result<Timing, TimingError> {
        TimingOptions {
            renew_every: self.renew,
            grace: self.grace,
            ..TimingOptions::new(self.ttl.unwrap_or(TTL_DEFAULT))
        }
        .check()
    }
}
