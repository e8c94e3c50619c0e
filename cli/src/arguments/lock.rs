use super::durations::seconds;
use super::flock::{FlockArguments, REFUSED};
use super::{CareArguments, MetricsArguments, Patience, RunArguments, TimingArguments, prevailing};
use clap::builder::BoolishValueParser;
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args};
use std::ffi::OsString;
use std::time::Duration;

/// Wait for a lock, then run a command while holding it: flock(1) across machines.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct LockArguments {
    /// Name of the lock: whoever uses the same name in the same store takes turns
    #[arg(value_name = "NAME")]
    pub(crate) lock: String,

    /// Label of this process in the record, for people [default: host name and process id]
    #[arg(long, env = "TENURE_CANDIDATE", hide_env_values = true, value_name = "ID")]
    candidate: Option<String>,

    /// Note in the record for the people who look; no secrets, at most 1024 bytes
    #[arg(
        long,
        env = "TENURE_NOTE",
        hide_env_values = true,
        value_name = "TEXT",
        default_value = ""
    )]
    note: String,

    /// Give up when the lock was not free for this time, such as 12s; a bare number is seconds, and 0 is
    /// --no-wait [default: never]
    #[arg(
        short = 'w',
        long,
        visible_alias = "timeout",
        env = "TENURE_WAIT",
        hide_env_values = true,
        value_name = "DURATION",
        value_parser = seconds
    )]
    wait: Option<Duration>,

    /// Try once; if another holds the lock, exit at once
    ///
    /// A NATS server does not tell whether a holder lives: there it takes until the holder renews, and if it
    /// does not, its ttl.
    #[arg(
        short = 'n',
        long,
        visible_aliases = ["nonblock", "nb"],
        env = "TENURE_NO_WAIT",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    no_wait: bool,

    /// First come, first served, among all who wait with this option
    ///
    /// A waiter that dies holds the queue up for its ttl at most. Costs three more requests, and five where
    /// others wait. With --no-wait, one look: the lock is taken if it is free and nobody waits for it in this
    /// order.
    #[arg(
        long,
        env = "TENURE_FAIR",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    fair: bool,

    /// Exit code when another holds the lock
    #[arg(
        short = 'E',
        long,
        env = "TENURE_LOCK_CONFLICT_EXIT_CODE",
        hide_env_values = true,
        value_name = "CODE",
        default_value_t = 1
    )]
    conflict_exit_code: u8,

    /// Leave the store's password in the TENURE_STORE that the command gets
    #[arg(
        long,
        env = "TENURE_SHARE_CREDENTIALS",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    share_credentials: bool,

    /// What flock(1) knows beside these.
    #[command(flatten)]
    flock: FlockArguments,

    /// Run this by /bin/sh -c, instead of CMD
    #[arg(
        short = 'c',
        long = "command",
        env = "TENURE_COMMAND",
        hide_env_values = true,
        value_name = "SHELL"
    )]
    shell: Option<OsString>,

    /// How long, how often, how soon.
    #[command(flatten)]
    timing: TimingArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    /// The command and its arguments; no shell is involved
    #[arg(
        last = true,
        required_unless_present = "shell",
        required_unless_present_any = REFUSED,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

impl LockArguments {
    /// How long to wait. No time is one attempt, as for flock(1).
    ///
    /// # Errors
    /// `--no-wait` with `--wait`.
    pub(crate) fn patience(&self, matches: &ArgMatches) -> Result<Patience, clap::Error> {
        let patience = Patience::of(self.wait, self.no_wait, matches)?;
        Ok(match patience {
            Patience::Limited(Duration::ZERO) => Patience::OneAttempt,
            some => some,
        })
    }

    /// Finds out what to run: one command, however it was given.
    ///
    /// # Errors
    /// Two were given, or an option of flock(1) that is of no use here.
    pub(crate) fn settle(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.flock.check()?;
        let Some(shell) = self.shell.take() else {
            return Ok(());
        };
        let twice = |_| {
            clap::Error::raw(
                ErrorKind::ArgumentConflict,
                "--command cannot be used with -- CMD\n",
            )
        };
        if prevailing(matches, "shell", "command").map_err(twice)? == Some("shell") {
            self.command = vec![SHELL.into(), "-c".into(), shell];
        }
        Ok(())
    }

    /// Whether there is an order among those who wait.
    pub(crate) fn is_fair(&self) -> bool {
        self.fair
    }

    /// What `tenure run` would be told: a lock for one command is one term of a lease.
    pub(crate) fn into_run(self) -> RunArguments {
        RunArguments {
            lease: Some(self.lock),
            name: None,
            timing: self.timing,
            candidate: self.candidate,
            note: self.note,
            no_history: true,
            priority: None,
            preempt: false,
            once: true,
            keep: false,
            wait: self.wait,
            no_wait: self.no_wait,
            linger: None,
            conflict_exit_code: self.conflict_exit_code,
            share_credentials: self.share_credentials,
            trace: None,
            care: CareArguments::default(),
            metrics: self.metrics,
            command: self.command,
        }
    }
}

/// Not what SHELL says: a line does the same for every user and on every host.
const SHELL: &str = "/bin/sh";

const HELP: &str = "\
The habits of flock(1), for every host that shares the store: waits for ever unless told otherwise, ends with the
command's exit code, and with 1 (see -E) if the lock was not to be had. Its options mean the same here; only the
command comes after --, or by -c. A lock is exclusive: -s is refused. Unlike flock, a lock has a ttl: it frees
itself when its host dies, and the command never outlives it. When it can no longer be extended, the command gets
SIGTERM, and SIGKILL before another may hold the lock; the exit code is 79 then.

The command gets TENURE_NAME, TENURE_TOKEN, TENURE_CANDIDATE and TENURE_STORE (without a password). TENURE_TOKEN is
greater each time the lock is taken: have the data path refuse a lower one than it has seen.

Examples:
  tenure lock orders/7 -- ./pay 7
        Waits its turn, runs the command, releases the lock.
  tenure lock -w 5 -E 75 orders/7 -c './check 7 && ./pay 7'
        Gives up with code 75 after five seconds; /bin/sh runs the line.
  tenure lock --fair printer -- lp report.pdf
        In the order in which they came.
  tenure lock -n -E 0 backup -- ./backup.sh
        Runs it only if nobody else does, which is no failure; its own failures are told.";
