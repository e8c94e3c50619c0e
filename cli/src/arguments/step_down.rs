use super::durations::seconds;
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args};
use std::time::Duration;

/// Ask the holder of a lease to end its work and let another take over.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct StepDownArguments {
    /// Name of the lease
    #[arg(value_name = "NAME", env = "TENURE_NAME", hide_env_values = true)]
    pub(crate) name: String,

    /// Only if this is the token of the current term
    #[arg(long, env = "TENURE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<u64>,

    /// Vacate the lease at once, without the holder; only a fence protects from what the holder still writes
    #[arg(
        long,
        env = "TENURE_FORCE",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) force: bool,

    /// Hand over to this candidate, which waits with --priority: its turn is next, before any other of them
    #[arg(
        long,
        env = "TENURE_SUCCESSOR",
        hide_env_values = true,
        value_name = "CANDIDATE"
    )]
    pub(crate) to: Option<String>,

    /// How long to wait for the end of the term, such as 5m; a bare number is seconds [default: twice the
    /// ttl]
    #[arg(
        long,
        env = "TENURE_STEP_DOWN_WAIT",
        hide_env_values = true,
        value_name = "DURATION",
        value_parser = seconds
    )]
    pub(crate) wait: Option<Duration>,
}

impl StepDownArguments {
    /// The token that the term must have; `None` for any.
    ///
    /// The environment of a command that `tenure run` started holds a token, too: it counts for the lease of
    /// that command, and for no other.
    pub(crate) fn wanted_token(&self, matches: &ArgMatches) -> Option<u64> {
        let inherited = matches.value_source("token") == Some(ValueSource::EnvVariable);
        let theirs = super::variable("TENURE_NAME").is_some_and(|name| *name != *self.name);
        self.token.filter(|_| !(inherited && theirs))
    }
}

const HELP: &str = "\
The holder learns of the wish with its next renewal, ends its work, and gives the lease back; a standby then takes
over. Ends with 1 if the term has not ended after --wait, or --token is not the current one; with --to also if nobody of
that name waits, or it does not lead after --wait: a candidate without --priority takes the lease whenever it is free.
A term that merely expired is told as such: its holder has not answered, and only a fence keeps its late writes out.
Where nobody holds the lease it ends with 0, also where nobody ever has: a name that is mistyped is told as never taken.

Examples:
  tenure step-down nightly-settlement
  tenure step-down nightly-settlement --to host-7
  tenure step-down nightly-settlement --token 1763712000123 --wait 5m
  tenure step-down nightly-settlement --force
        For a holder that is known to be dead or cut off.";
