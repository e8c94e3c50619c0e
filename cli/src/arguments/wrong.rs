//! Wrong arguments, in one line: what is wrong, where it is from, and the way out.

use super::definitions;
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use std::ffi::OsString;

/// What is wrong with the arguments, for people and in the `error` of JSON.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    told(error, &Understood::of(std::env::args_os()))
}

/// The arguments as far as they can be understood.
struct Understood {
    /// Which command is named: `fence claim`, or none.
    command: Vec<String>,
    matches: Option<ArgMatches>,
}

impl Understood {
    fn of(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let lenient = definitions().ignore_errors(true);
        let mut matches = lenient.try_get_matches_from(arguments).ok();
        let mut command = Vec::new();
        while let Some((name, below)) = matches.as_mut().and_then(ArgMatches::remove_subcommand) {
            command.push(name);
            matches = Some(below);
        }
        Self { command, matches }
    }

    /// `run` or `lock`, which run a command.
    fn runs(&self) -> Option<&str> {
        let first = self.command.first().map(String::as_str);
        first.filter(|command| ["run", "lock"].contains(command))
    }

    /// `tenure run --help`.
    fn help(&self) -> String {
        let words = ["tenure"]
            .into_iter()
            .chain(self.command.iter().map(String::as_str));
        words.chain(["--help"]).collect::<Vec<_>>().join(" ")
    }

    /// The variable that has given this option, as clap shows it, where it was not typed.
    fn variable(&self, shown: &str) -> Option<String> {
        let mut definitions = definitions();
        // Before that, options cannot be shown, and those of every command are not among each one's.
        definitions.build();
        let mut named = self.command.iter();
        let command = named.try_fold(&definitions, |above, name| above.find_subcommand(name))?;
        let option = command
            .get_arguments()
            .find(|option| option.to_string() == shown)?;
        let source = self.matches.as_ref()?.value_source(option.get_id().as_str());
        let is_given = source == Some(ValueSource::EnvVariable);
        let variable = option.get_env().filter(|_| is_given)?;
        Some(variable.to_string_lossy().into_owned())
    }
}

fn told(error: &clap::Error, understood: &Understood) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let line = match (error.kind(), context(ContextKind::InvalidArg), understood.runs()) {
        (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _, _) => {
            return format!("no command is named; {} lists them", understood.help());
        }
        (ErrorKind::UnknownArgument, Some(word), Some(runs)) if !word.starts_with('-') => {
            return format!(
                "{word:?} is one word too many: the command that is to be run comes behind --, as in tenure {runs} NAME -- {word}"
            );
        }
        (ErrorKind::MissingRequiredArgument, _, runs) => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.as_slice(),
                _ => &[],
            };
            let lacks_command = missing.iter().any(|missing| missing.contains("<CMD>"));
            match (missing, runs) {
                (_, Some(runs)) if lacks_command => {
                    return format!(
                        "there is no command to run; it comes behind --, as in tenure {runs} NAME -- CMD"
                    );
                }
                // Said by what has looked itself.
                ([], _) => plain(error),
                (missing, _) => format!("{} is missing", missing.join(", ")),
            }
        }
        _ => plain(error),
    };
    let line = line.replace(
        "invalid digit found in string",
        "that is no whole number; write digits alone",
    );
    let variable = context(ContextKind::InvalidArg).and_then(|option| understood.variable(option));
    match variable {
        Some(variable) => format!("{line} (from {variable})"),
        // One that says the way out itself needs no other.
        None if line.contains(';') || line.contains(" needs ") => line,
        None => format!("{line}; see {}", understood.help()),
    }
}

/// clap's own words, without its hints and the usage.
fn plain(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let what = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = what.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(words: &[&str]) -> String {
        let words = ["tenure"].iter().chain(words).map(OsString::from);
        let error = definitions().try_get_matches_from(words.clone()).unwrap_err();
        told(&error, &Understood::of(words))
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line_with_the_way_out() {
        for (words, line) in [
            (&[][..], "no command is named; tenure --help lists them"),
            (
                &["run", "job", "echo", "hi"],
                "\"echo\" is one word too many: the command that is to be run comes behind --, as in tenure run NAME -- echo",
            ),
            (
                &["lock", "job"],
                "there is no command to run; it comes behind --, as in tenure lock NAME -- CMD",
            ),
            (
                &["fence", "claim"],
                "<RESOURCE> is missing; see tenure fence claim --help",
            ),
            (
                &["--store", "status", "fence", "claim"],
                "<RESOURCE> is missing; see tenure fence claim --help",
            ),
            (&["--log", "run"], "no command is named; tenure --help lists them"),
            (&["fence"], "no command is named; tenure fence --help lists them"),
            (
                &["run", "-E", "many", "job", "--", "true"],
                "invalid value 'many' for '--conflict-exit-code <CODE>': that is no whole number; write digits alone",
            ),
            (
                &["run", "--ttl", "-5s", "job", "--", "true"],
                "unexpected argument '-5' found; see tenure run --help",
            ),
            (
                &["--no-such-option"],
                "unexpected argument '--no-such-option' found; see tenure --help",
            ),
        ] {
            assert_eq!(told_of(words), line, "{words:?}");
        }
    }
}
