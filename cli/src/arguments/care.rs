use super::durations::{duration, some_duration};
use super::{Again, is_on_command_line, prevailing};
use crate::supervise::{Health, Heartbeat, HookCommands, Page, Probe};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// What to do with a command that fails or is not well.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Care for the command")]
pub(crate) struct CareArguments {
    /// When the command ends by itself: end with its code, or campaign and run it again
    #[arg(
        long,
        env = "TENURE_RESTART",
        hide_env_values = true,
        value_enum,
        value_name = "WHEN",
        default_value = "no"
    )]
    pub(crate) restart: Restart,

    /// How long to stay out after the command has failed, so that another gets to try
    ///
    /// Doubled for each failure in a row, up to 64 times; a command that has run ten times as long begins
    /// anew.
    #[arg(long, env = "TENURE_COOLDOWN", hide_env_values = true, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) cooldown: Duration,

    /// Ask this while the command runs, by `/bin/sh -c`: when it fails repeatedly, the command is ended and
    /// another may lead
    #[arg(long, env = "TENURE_HEALTH_CMD", hide_env_values = true, value_name = "SHELL")]
    pub(crate) health_cmd: Option<String>,

    /// Ask for this page instead, http://HOST:PORT/PATH: well while it answers with 200 to 299
    #[arg(
        long,
        env = "TENURE_HEALTH_HTTP",
        hide_env_values = true,
        value_name = "URL",
        value_parser = PageParser
    )]
    pub(crate) health_http: Option<Page>,

    /// How often to ask it
    #[arg(long, env = "TENURE_HEALTH_EVERY", hide_env_values = true, value_name = "DURATION", value_parser = some_duration, default_value = "10s")]
    pub(crate) health_every: Duration,

    /// How long it may take; then it is killed, and has failed
    #[arg(long, env = "TENURE_HEALTH_TIMEOUT", hide_env_values = true, value_name = "DURATION", value_parser = some_duration, default_value = "5s")]
    pub(crate) health_timeout: Duration,

    /// How often in a row it must fail
    #[arg(
        long,
        env = "TENURE_HEALTH_RETRIES",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) health_retries: u32,

    /// The command must touch this file as a sign of life; it finds the path in TENURE_HEARTBEAT
    ///
    /// It is made if it is not there. A command that does not touch it for --heartbeat-within is ended, and
    /// another may lead.
    #[arg(
        long,
        env = "TENURE_HEARTBEAT_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) heartbeat_file: Option<PathBuf>,

    /// How often it must, counted from the command's start
    #[arg(long, env = "TENURE_HEARTBEAT_WITHIN", hide_env_values = true, value_name = "DURATION", value_parser = some_duration, default_value = "30s")]
    pub(crate) heartbeat_within: Duration,

    /// Run this by `/bin/sh -c` when a term begins, beside the command; it never holds it up
    #[arg(long, env = "TENURE_ON_ELECTED", hide_env_values = true, value_name = "SHELL")]
    pub(crate) on_elected: Option<String>,

    /// Run this by `/bin/sh -c` when a term has ended; TENURE_WHY says how
    #[arg(long, env = "TENURE_ON_LOST", hide_env_values = true, value_name = "SHELL")]
    pub(crate) on_lost: Option<String>,

    /// How long either may take; then it is killed. What fails is said, and changes nothing
    #[arg(long, env = "TENURE_HOOK_TIMEOUT", hide_env_values = true, value_name = "DURATION", value_parser = some_duration, default_value = "10s")]
    pub(crate) hook_timeout: Duration,
}

/// How often the command must touch its file, unless it is told otherwise.
const HEARTBEAT_WITHIN: Duration = Duration::from_secs(30);

/// How long a hook may take, unless it is told otherwise.
const HOOK_TIME_MAX: Duration = Duration::from_secs(10);

impl CareArguments {
    /// Finds out what was meant. A variable may be set for all that run on a host, and says nothing where it
    /// is empty; what the command line says must have an effect.
    ///
    /// # Errors
    /// An option without effect, a shell command without words, or two probes in the same place.
    pub(crate) fn settle(&mut self, again: Again, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (option, command) in [
            ("health_cmd", &mut self.health_cmd),
            ("on_elected", &mut self.on_elected),
            ("on_lost", &mut self.on_lost),
        ] {
            if command.as_ref().is_some_and(|words| words.trim().is_empty()) {
                if is_on_command_line(option, matches) {
                    let text = format!("--{} is empty; give it a command\n", option.replace('_', "-"));
                    return Err(clap::Error::raw(ErrorKind::InvalidValue, text));
                }
                *command = None;
            }
        }
        if self.health_cmd.is_some() && self.health_http.is_some() {
            match prevailing(matches, "health_cmd", "health_http")? {
                Some("health_http") => self.health_cmd = None,
                Some(_) | None => self.health_http = None,
            }
        }
        self.have_effect(again, matches)
    }

    fn have_effect(&self, again: Again, matches: &ArgMatches) -> Result<(), clap::Error> {
        let is_asked = self.health_cmd.is_some() || self.health_http.is_some();
        let has_hook = self.on_elected.is_some() || self.on_lost.is_some();
        let may_come_again = again == Again::Keep || is_on_command_line("restart", matches);
        let probes = "--health-cmd or --health-http";
        for (option, has_effect, needed) in [
            ("health_every", is_asked, probes),
            ("health_timeout", is_asked, probes),
            ("health_retries", is_asked, probes),
            (
                "heartbeat_within",
                self.heartbeat_file.is_some(),
                "--heartbeat-file",
            ),
            ("hook_timeout", has_hook, "--on-elected or --on-lost"),
            (
                "cooldown",
                may_come_again || self.restart != Restart::No,
                "--restart or --keep",
            ),
        ] {
            if !has_effect && is_on_command_line(option, matches) {
                let text = format!("--{} needs {needed}\n", option.replace('_', "-"));
                return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text));
            }
        }
        Ok(())
    }

    /// How to find out whether the command is well, if anything is asked.
    pub(crate) fn health(&self) -> Option<Health> {
        let shell = self.health_cmd.clone().map(Probe::Shell);
        Some(Health {
            probe: shell.or_else(|| self.health_http.clone().map(Probe::Page))?,
            every: self.health_every,
            time_max: self.health_timeout,
            failures_max: self.health_retries,
        })
    }
}

impl CareArguments {
    /// What the command is to touch, if anything.
    pub(crate) fn heartbeat(&self) -> Option<Heartbeat> {
        Some(Heartbeat {
            file: self.heartbeat_file.clone()?,
            within: self.heartbeat_within,
        })
    }

    /// Whom to tell of terms.
    pub(crate) fn hooks(&self) -> HookCommands {
        HookCommands {
            on_elected: self.on_elected.clone(),
            on_lost: self.on_lost.clone(),
            time_max: self.hook_timeout,
        }
    }
}

/// Reads the URL of a page. What is refused is not quoted: it may hold a password.
#[derive(Clone)]
struct PageParser;

impl TypedValueParser for PageParser {
    type Value = Page;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<Page, clap::Error> {
        Page::parse(&value.to_string_lossy())
            .map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, format!("--health-http: {why}\n")))
    }
}

/// When a command that has ended by itself is run again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Restart {
    /// Never: its exit code is this one's.
    No,
    /// When its exit code is not 0, or a signal ended it.
    OnFailure,
    /// Whenever it ends.
    Always,
}

impl Default for CareArguments {
    fn default() -> Self {
        Self {
            restart: Restart::No,
            cooldown: Duration::from_secs(5),
            health_cmd: None,
            health_http: None,
            health_every: Duration::from_secs(10),
            health_timeout: Duration::from_secs(5),
            health_retries: 3,
            heartbeat_file: None,
            heartbeat_within: HEARTBEAT_WITHIN,
            on_elected: None,
            on_lost: None,
            hook_timeout: HOOK_TIME_MAX,
        }
    }
}
