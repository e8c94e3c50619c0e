use super::{excluded, is_on_command_line};
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, ArgMatches, Args, ValueEnum};

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Store, output and log")]
pub(crate) struct GlobalArguments {
    /// Where the leases are: sqlite:PATH, postgres://HOST/DATABASE, mysql://HOST/DATABASE,
    /// mongodb://HOST/DATABASE, redis://HOST, etcd://HOST, nats://HOST
    ///
    /// Default: an SQLite file of this user on this host, $XDG_STATE_HOME/tenure/leases.db or
    /// ~/.local/state/tenure/leases.db, and /var/lib/tenure/leases.db for root. What other users run does not
    /// see it: several on one host name a file that all of them may write, sqlite:/PATH. A password belongs
    /// into the environment variable, where `ps` does not show it.
    #[arg(
        long,
        global = true,
        env = "TENURE_STORE",
        hide_env_values = true,
        value_name = "URL",
        // A script's variable that is not set would stand for a store of this machine alone, on each of its
        // hosts.
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) store: Option<String>,

    /// Form of the output; of the messages on standard error, too
    #[arg(
        long,
        global = true,
        env = "TENURE_OUTPUT",
        hide_env_values = true,
        value_name = "FORM",
        default_value = "text"
    )]
    pub(crate) output: Form,

    /// Log more on standard error: -v what happens to a lease, -vv every renewal, -vvv everything; the
    /// variable is a number, 0 to 3
    #[arg(short, long, global = true, action = ArgAction::Count, env = "TENURE_VERBOSE", hide_env_values = true)]
    pub(crate) verbose: u8,

    /// Say nothing on standard error but errors
    #[arg(
        short,
        long,
        global = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new(),
        env = "TENURE_QUIET",
        hide_env_values = true
    )]
    pub(crate) quiet: bool,

    /// Log level, or levels by module, such as info or tenure=debug,mongodb=warn; overrides -v and -q
    #[arg(
        long,
        global = true,
        env = "TENURE_LOG",
        hide_env_values = true,
        value_name = "LEVEL"
    )]
    pub(crate) log: Option<String>,

    /// Form of the log [default: that of the output]
    #[arg(
        long,
        global = true,
        env = "TENURE_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORM"
    )]
    pub(crate) log_format: Option<Form>,
}

impl GlobalArguments {
    /// Finds out how much is to be said: what was typed beats what the environment says, and a level of the
    /// log beats both other options in the same place.
    ///
    /// # Errors
    /// `--quiet` and `--verbose` were both typed.
    pub(crate) fn settle(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let typed = |id| is_on_command_line(id, matches);
        let has_level = self.log.is_some();
        if has_level
            && !typed("log")
            && (self.quiet && typed("quiet") || self.verbose > 0 && typed("verbose"))
        {
            self.log = None;
        }
        if self.quiet && self.verbose > 0 {
            match (typed("quiet"), typed("verbose")) {
                (true, true) if self.log.is_none() => return Err(excluded("--quiet", "--verbose")),
                (false, true) => self.quiet = false,
                (true | false, _) => self.verbose = 0,
            }
        }
        Ok(())
    }
}

/// The form of what is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs: durations in milliseconds, tokens as numbers.
    Json,
}
