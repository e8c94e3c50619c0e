//! What may be said on the command line and in the environment.

mod care;
mod completions;
mod doctor;
mod durations;
mod explain;
mod fence;
mod flock;
mod gc;
mod global;
mod help;
mod history;
mod lock;
mod metrics;
mod run;
mod select;
mod status;
mod step_down;
mod store;
mod timing;
mod top;
mod wrong;

pub(crate) use care::{CareArguments, Restart};
pub(crate) use completions::completions;
pub(crate) use doctor::DoctorArguments;
pub(crate) use explain::ExplainArguments;
pub(crate) use fence::{FenceArguments, FenceDeed, FencePlaceArguments, TableArguments, TermArguments};
pub(crate) use gc::GcArguments;
pub(crate) use global::{Form, GlobalArguments};
pub(crate) use history::HistoryArguments;
pub(crate) use lock::LockArguments;
pub(crate) use metrics::MetricsArguments;
pub(crate) use run::{Again, Patience, RunArguments};
pub(crate) use select::{SelectArguments, Selection};
pub(crate) use status::StatusArguments;
pub(crate) use step_down::StepDownArguments;
pub(crate) use store::{StoreArguments, StoreDeed};
pub(crate) use timing::{TTL_DEFAULT, TimingArguments};
pub(crate) use top::TopArguments;
pub(crate) use wrong::in_one_line;

use clap::builder::{self, Resettable};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, Parser, Subcommand};
use help::{COMPLETIONS_HELP, TOP_HELP, with_flowing_help};
use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;

/// Runs a command while this process leads, and shows and tends leases.
///
/// A lease is a named seat in a store that a team already runs: exactly one candidate holds it at a time.
/// Each term has a token that is greater than every earlier one; the data path refuses an old one.
#[derive(Parser, Debug)]
#[command(name = "tenure", version, after_long_help = TOP_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Wait for the lease, then run a command while holding it
    Run(Box<RunArguments>),
    /// Wait for a lock, then run a command while holding it: flock(1) across machines
    Lock(Box<LockArguments>),
    /// Show leases: who holds them, with which token, for how much longer; and the marks of their fences
    Status(StatusArguments),
    /// Show leases and go on showing what changes
    Watch(SelectArguments),
    /// Watch every lease live, on a terminal: who leads, what is left, who stands by, what changes
    Top(TopArguments),
    /// Show who led when, by which token, and how it ended: the last twenty terms of a lease
    History(HistoryArguments),
    /// Ask the holder of a lease to end its work and let another take over
    StepDown(StepDownArguments),
    /// Claim, check, show and raise the marks that keep old terms out of the data
    Fence(FenceArguments),
    /// Remove the records of leases and locks that nobody uses any more; their next tokens still rise
    Gc(GcArguments),
    /// Say in words what a timing promises, or everything that is wrong with it
    Explain(ExplainArguments),
    /// Examine the store: reachability, privileges, durability, clock, round trip, advised ttl
    Doctor(DoctorArguments),
    /// Set the store up, where it needs that: PostgreSQL's schema, MySQL's tables and procedures
    Store(StoreArguments),
    /// Guard a command for the `tenure run` that starts this; not for people
    #[command(hide = true)]
    Warden {
        /// The number of the socket at whose other end the supervisor is
        #[arg(long)]
        socket: i32,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETIONS_HELP)]
    Completions {
        /// Which shell
        #[arg(value_enum, env = "TENURE_SHELL", hide_env_values = true)]
        shell: clap_complete::Shell,
    },
}

/// Variables of `run` and `lock` that a site sets for all of them: a command that is run inherits them.
const INHERITED: [&str; 5] = [
    "TENURE_TTL",
    "TENURE_RENEW",
    "TENURE_GRACE",
    "TENURE_NO_HISTORY",
    "TENURE_OTLP",
];

/// Variables that are about one call of `run` or `lock`: a `tenure` that its command runs must not take them
/// for its own.
pub(crate) fn own_variables() -> &'static [OsString] {
    static OWN: LazyLock<Vec<OsString>> = LazyLock::new(|| {
        let all = Cli::command();
        let commands = ["run", "lock"].map(|name| all.find_subcommand(name));
        let options = commands.into_iter().flatten().flat_map(clap::Command::get_opts);
        let variables = options.filter_map(|option| option.get_env().map(OsStr::to_os_string));
        variables
            .filter(|variable| INHERITED.iter().all(|inherited| variable != inherited))
            .collect()
    });
    &OWN
}

/// In which the work of a term is told the name of its lease.
const NAME: &str = "TENURE_NAME";

/// What the work of a term is told beside the name of the lease.
pub(crate) const TOKEN: &str = "TENURE_TOKEN";

/// The lease and the token of the term that this runs under, as its environment tells.
pub(crate) fn term_above() -> Option<(String, u64)> {
    let [name, token] = [NAME, TOKEN].map(|variable| std::env::var(variable).ok());
    Some((name?, token?.parse().ok()?))
}

/// The label that this candidate was given. In the work of a term a variable tells that term's: as a label of
/// its own it would make one candidate of all that the work runs, with one place in a queue.
fn own_label(given: Option<String>, matches: &ArgMatches) -> Option<String> {
    let is_inherited =
        matches.value_source("candidate") == Some(ValueSource::EnvVariable) && variable(TOKEN).is_some();
    given.filter(|_| !is_inherited)
}

/// What is understood. A variable that is empty says nothing: it may be set for all that run on a host, and
/// be none here. (That of a place is refused where it would have to name one.)
pub(crate) fn definitions() -> clap::Command {
    with_flowing_help(without_empty_variables(Cli::command()))
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let heed = |option: clap::Arg| match option.get_env() {
        // One that is not set stays: the help names it.
        Some(name) if is_empty(name) => option.env(Resettable::<builder::OsStr>::Reset),
        Some(_) | None => option,
    };
    command.mut_args(heed).mut_subcommands(without_empty_variables)
}

/// Whether a variable is there and says nothing.
pub(crate) fn is_empty(variable: &OsStr) -> bool {
    std::env::var_os(variable).is_some_and(|value| value.is_empty())
}

/// A variable that says something.
pub(crate) fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The same error, without the URL that somebody has given in the place of something else: it may hold a
/// password.
pub(crate) fn without_urls(mut error: clap::Error) -> clap::Error {
    for kind in [
        ContextKind::InvalidArg,
        ContextKind::InvalidValue,
        ContextKind::InvalidSubcommand,
    ] {
        let is_url = |text: &str| text.contains("://") || text.contains('@');
        if matches!(error.get(kind), Some(ContextValue::String(text)) if is_url(text)) {
            let shown = "(not shown: this looks like a URL; use --store for one)";
            error.insert(kind, ContextValue::String(shown.to_owned()));
        }
    }
    error
}

/// Whether the output is to be JSON, as far as arguments say that cannot be understood.
pub(crate) fn ask_for_json() -> bool {
    let own = std::env::args_os().take_while(|word| word != "--");
    let words: Vec<String> = own.map(|word| word.to_string_lossy().into_owned()).collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == "--output");
    let apart = pairs.map(|pair| pair[1].as_str());
    let joined = words.iter().filter_map(|word| word.strip_prefix("--output="));
    match apart.chain(joined).last() {
        Some(form) => form == "json",
        None => std::env::var_os("TENURE_OUTPUT").is_some_and(|form| form == "json"),
    }
}

/// Whether this option was given there, and not by a variable.
fn is_on_command_line(id: &str, matches: &ArgMatches) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Which of two options that exclude each other counts: one on the command line beats one in the environment.
///
/// # Errors
/// A usage error when both were given in the same place.
pub(crate) fn prevailing<'a>(
    matches: &ArgMatches,
    first: &'a str,
    second: &'a str,
) -> Result<Option<&'a str>, clap::Error> {
    prevailing_of(matches, &[&[first], &[second]])
}

/// As [`prevailing`], of sets of options that go together and exclude those of the others: one of the set
/// that counts.
///
/// # Errors
/// A usage error when some of two sets were given in the same place, and none of any set in a better one.
fn prevailing_of<'a>(matches: &ArgMatches, sets: &[&[&'a str]]) -> Result<Option<&'a str>, clap::Error> {
    let source = |id: &&str| matches.value_source(id);
    let best = |set: &&[&'a str]| set.iter().copied().rev().max_by_key(source);
    let best = sets.iter().filter_map(best);
    let mut given: Vec<&str> = best
        .filter(|id| source(id) > Some(ValueSource::DefaultValue))
        .collect();
    let first_source = given.iter().map(source).max();
    given.retain(|id| Some(source(id)) == first_source);
    match given[..] {
        [first, second, ..] => {
            let [first, second] = [first, second].map(|id| format!("--{}", id.replace('_', "-")));
            Err(excluded(&first, &second))
        }
        [first] => Ok(Some(first)),
        [] => Ok(None),
    }
}

/// Of two arguments that exclude each other, as they are typed.
fn excluded(first: &str, second: &str) -> clap::Error {
    clap::Error::raw(
        clap::error::ErrorKind::ArgumentConflict,
        format!("{first} cannot be used with {second}\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_agree_with_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_is_an_environment_variable_whose_value_is_not_shown() {
        let mut command = Cli::command();
        command.build();
        let mut commands: Vec<&clap::Command> = command.get_subcommands().collect();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            // The warden is started by `tenure run` alone, which tells it everything.
            if command.get_name() == "help" || command.is_hide_set() {
                continue;
            }
            for option in command.get_opts().filter(|option| option.get_id() != "help") {
                let shown = format!("tenure {} --{}", command.get_name(), option.get_id());
                let variable = option
                    .get_env()
                    .unwrap_or_else(|| panic!("{shown} has no variable"));
                assert!(variable.to_string_lossy().starts_with("TENURE_"), "{shown}");
                assert!(
                    option.is_hide_env_values_set(),
                    "{shown}: help shows what may be a secret"
                );
            }
        }
    }
}
