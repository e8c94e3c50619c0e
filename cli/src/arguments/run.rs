use super::durations::{seconds, some_duration};
use super::{
    CareArguments, MetricsArguments, TOKEN, TimingArguments, is_on_command_line, own_label, prevailing,
};
use crate::exit::{Code, Failure};
use clap::builder::BoolishValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tenure::Priority;

/// Wait for the lease, then run a command while holding it.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct RunArguments {
    /// Name of the lease: whoever uses the same name in the same store takes turns
    #[arg(value_name = "NAME")]
    pub(crate) lease: Option<String>,

    /// Name of the lease, if not given as NAME
    #[arg(
        long = "name",
        env = "TENURE_NAME",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) name: Option<String>,

    /// Label of this candidate, for people [default: host name and process id]
    #[arg(long, env = "TENURE_CANDIDATE", hide_env_values = true, value_name = "ID")]
    pub(super) candidate: Option<String>,

    /// Note in the record for the people who look; no secrets, at most 1024 bytes
    #[arg(
        long,
        env = "TENURE_NOTE",
        hide_env_values = true,
        value_name = "TEXT",
        default_value = ""
    )]
    pub(crate) note: String,

    /// Wait in order: the highest priority first, and of equals who came first; 0: never lead [default: no
    /// order]
    ///
    /// From 0 to 1000. Counts among the candidates that give one: whoever gives none takes the lease whenever
    /// it is free. `tenure step-down --to` calls one of them to the front.
    #[arg(
        long,
        env = "TENURE_PRIORITY",
        hide_env_values = true,
        value_name = "N",
        value_parser = clap::value_parser!(Priority)
    )]
    pub(crate) priority: Option<Priority>,

    /// While leading, step down for a candidate of a higher priority that waits
    #[arg(
        long,
        env = "TENURE_PREEMPT",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) preempt: bool,

    /// End when the command ends, or when leadership ends while it runs (the default)
    #[arg(
        long,
        env = "TENURE_ONCE",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) once: bool,

    /// When leadership ends while the command runs, go back to waiting, and run it again when elected
    ///
    /// A command that ends by itself ends this one too, with its exit code, unless --restart says otherwise.
    #[arg(
        long,
        env = "TENURE_KEEP",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) keep: bool,

    /// Give up when the lease was not won after this time, such as 45s; a bare number is seconds [default:
    /// never]
    #[arg(long, env = "TENURE_WAIT", hide_env_values = true, value_name = "DURATION", value_parser = seconds)]
    pub(crate) wait: Option<Duration>,

    /// Try once; if another holds the lease, exit at once
    ///
    /// A NATS server does not tell whether a holder lives: there it takes until the holder renews, and if it
    /// does not, its ttl.
    #[arg(
        long,
        env = "TENURE_NO_WAIT",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) no_wait: bool,

    /// Keep the lease for so long after the command has ended by itself, also when it has failed
    ///
    /// For what several hosts start at a set time: one whose clock is late finds the lease held, and does not
    /// run it again. The exit code is the command's all the same; TERM, INT and QUIT, and whoever asks the
    /// holder to step down, end it sooner. Others that start it again, as while the store is away, must not
    /// do so for longer.
    #[arg(long, env = "TENURE_LINGER", hide_env_values = true, value_name = "DURATION", value_parser = some_duration)]
    pub(crate) linger: Option<Duration>,

    /// Exit code when another holds the lease
    #[arg(
        short = 'E',
        long,
        env = "TENURE_CONFLICT_EXIT_CODE",
        hide_env_values = true,
        value_name = "CODE",
        default_value_t = Code::Held.number()
    )]
    pub(crate) conflict_exit_code: u8,

    /// Leave the store's password in the TENURE_STORE that the command gets
    #[arg(
        long,
        env = "TENURE_SHARE_CREDENTIALS",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) share_credentials: bool,

    /// Record every step of the election in a new file, which `tenure-sim replay` replays
    ///
    /// The file is created for you alone; one that exists is refused. It holds names, ids and notes, never
    /// the store's URL or a password. If it cannot be written, recording stops with a warning, and nothing
    /// else.
    #[arg(long, env = "TENURE_TRACE", hide_env_values = true, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Do not note in the store when terms began and how they ended
    ///
    /// `tenure history` shows the last twenty of a lease. Each costs five requests, beside the work.
    #[arg(
        long,
        env = "TENURE_NO_HISTORY",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) no_history: bool,

    /// How long, how often, how soon.
    #[command(flatten)]
    pub(crate) timing: TimingArguments,

    /// What to do with a command that fails or is not well.
    #[command(flatten)]
    pub(crate) care: CareArguments,

    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,

    /// The command and its arguments; no shell is involved
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What to do when leadership ends while the command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    /// End, with a code of its own.
    Once,
    /// Go back to waiting.
    Keep,
}

/// How long to wait for the lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// As long as it takes.
    Endless,
    /// So long.
    Limited(Duration),
    /// One attempt.
    OneAttempt,
}

impl RunArguments {
    /// The lease's name, as given.
    ///
    /// # Errors
    /// None was given, or two were.
    pub(crate) fn given_name(&self, matches: &ArgMatches) -> Result<String, Failure> {
        if self.lease.is_some() && self.name.is_some() {
            prevailing(matches, "lease", "name").map_err(|_| {
                Failure::new(
                    Code::Usage,
                    "the lease is named twice: as NAME and by --name; give one",
                )
            })?;
        }
        // It would wait for what its own parent holds, for ever.
        if let (None, Some(name), Some(ValueSource::EnvVariable), Some(_)) = (
            &self.lease,
            &self.name,
            matches.value_source("name"),
            super::variable(TOKEN),
        ) {
            return Err(Failure::new(
                Code::Usage,
                format!(
                    "lease \"{name}\": it is named by TENURE_NAME alone, which beside {TOKEN} is the lease that this runs under: \
                     it would never be free; name another: tenure run NAME -- CMD"
                ),
            ));
        }
        let by_option = matches.value_source("name") == Some(ValueSource::CommandLine);
        let chosen = if by_option { &self.name } else { &self.lease };
        chosen.clone().or_else(|| self.name.clone()).ok_or_else(|| {
            Failure::new(
                Code::Usage,
                "no lease is named; write: tenure run NAME -- CMD, or set TENURE_NAME",
            )
        })
    }

    /// The label of this candidate, if it was given one.
    pub(crate) fn label(&self, matches: &ArgMatches) -> Option<String> {
        own_label(self.candidate.clone(), matches)
    }

    /// What to do when leadership ends.
    ///
    /// # Errors
    /// Both were asked for.
    pub(crate) fn again(&self, matches: &ArgMatches) -> Result<Again, clap::Error> {
        let both = self.once && self.keep;
        let keeps = self.keep && (!both || prevailing(matches, "once", "keep")? == Some("keep"));
        Ok(if keeps { Again::Keep } else { Again::Once })
    }

    /// How long to wait, and whether in order: what was typed beats what the environment says.
    ///
    /// # Errors
    /// `--no-wait` with `--wait` or `--priority`, or `--preempt` without the latter.
    pub(crate) fn patience(&mut self, matches: &ArgMatches) -> Result<Patience, clap::Error> {
        // Not clap's to find out: a variable that says no counts as given there.
        if self.priority.is_some() && self.no_wait {
            match prevailing(matches, "priority", "no_wait")? {
                Some("no_wait") => self.priority = None,
                Some(_) | None => self.no_wait = false,
            }
        }
        if self.preempt && self.priority.is_none() {
            if is_on_command_line("preempt", matches) {
                let text = "--preempt needs --priority\n";
                return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text));
            }
            self.preempt = false;
        }
        Patience::of(self.wait, self.no_wait, matches)
    }
}

impl Patience {
    /// What `--wait` and `--no-wait` come to.
    ///
    /// # Errors
    /// Both were asked for.
    pub(super) fn of(
        wait: Option<Duration>,
        no_wait: bool,
        matches: &ArgMatches,
    ) -> Result<Self, clap::Error> {
        let limited = wait.map_or(Self::Endless, Self::Limited);
        if !no_wait {
            return Ok(limited);
        }
        let impatient = wait.is_none() || prevailing(matches, "wait", "no_wait")? == Some("no_wait");
        Ok(if impatient { Self::OneAttempt } else { limited })
    }
}

const HELP: &str = "\
The command gets TENURE_NAME, TENURE_TOKEN, TENURE_CANDIDATE and TENURE_STORE (without a password). It should hand
its token to the data path with every write, which refuses a lower one than it has seen. What variables say of the
store, timing, telemetry and log holds for a tenure that it runs, too; what they say of this lease and command does not.

It runs below a warden, a small process of its own. When leadership becomes doubtful, is lost or is asked back, the
command and all that it started get SIGTERM, and SIGKILL before the lease can pass to another. The lease is given back
when nothing of it is left, at once then, also when tenure itself was killed.
Of signals to tenure, TERM, INT and QUIT are forwarded and followed by SIGKILL after the grace; HUP, USR1, USR2
and WINCH are forwarded. Under systemd it says when it is ready, and who it is waiting for.

Examples:
  tenure run nightly-settlement -- ./settle --all
        Waits its turn, runs the job, gives the lease back. The next in turn runs it, too.
  tenure run --quiet --wait 45s -E 0 --linger 5m backup -- ./backup.sh
        Once a night, in the crontab of three hosts with PATH and TENURE_STORE: the others end with 0, silently, when they have
        waited for longer than the term of one that was killed. The lease is kept for longer than that and than their
        clocks differ; else a host whose cron fires after the job's end runs it again.
  tenure run --keep --restart always --ttl 15s consumer -- ./consume --from orders
        One consumer at a time, for ever: also when it has ended, it is run again, here or where its next turn is.
  tenure run --restart on-failure --cooldown 30s --health-cmd 'curl -fs localhost:8080/health' worker -- ./worker
        Ends a worker that is not well, and leaves the next term to another host.
  tenure run --wait 10m --ttl 5s migrate -- ./migrate
        Gives up with code 75 after ten minutes.
  tenure run --trace trace-$$.jsonl consumer -- ./consume
        Keeps what the election saw and did, to find out later why.";
