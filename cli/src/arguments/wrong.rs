//! Wrong arguments, in one line: what is wrong, where it is from, and the way out.

use super::definitions;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// What is wrong with the arguments, for people and in the `error` of JSON.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    told(error, &Typed::new(&typed))
}

/// What was typed, up to the command that is to be run.
struct Typed {
    words: Vec<String>,
}

impl Typed {
    fn new(words: &[OsString]) -> Self {
        let own = words.iter().take_while(|word| *word != "--");
        Self {
            words: own.map(|word| word.to_string_lossy().into_owned()).collect(),
        }
    }

    /// The first word that is no option: `run`, of `fence claim` the first.
    fn subcommand(&self) -> Option<&str> {
        let known = definitions();
        let words = self.words.iter().map(String::as_str);
        words
            .into_iter()
            .find(|word| known.get_subcommands().any(|command| command.get_name() == *word))
    }

    /// `tenure run --help`.
    fn help(&self) -> String {
        match self.subcommand() {
            Some(command) => format!("tenure {command} --help"),
            None => "tenure --help".to_owned(),
        }
    }

    /// Whether this option, as clap shows it, was typed; where it was not, a variable has given it.
    fn has(&self, option: &clap::Arg) -> bool {
        let long = option.get_long_and_visible_aliases().unwrap_or_default();
        let long = long.into_iter().any(|long| {
            let long = format!("--{long}");
            let is = |word: &String| word == &long || word.starts_with(&format!("{long}="));
            self.words.iter().any(is)
        });
        // Beside others, as in -nE 75.
        let short = option.get_short_and_visible_aliases().unwrap_or_default();
        let is_short = |word: &&String| word.starts_with('-') && !word.starts_with("--");
        let mut bundles = self.words.iter().filter(is_short);
        long || bundles.any(|word| word.chars().any(|letter| short.contains(&letter)))
    }

    /// The variable that this option, as clap shows it, was given by.
    fn variable(&self, shown: &str) -> Option<String> {
        let mut known = definitions();
        // Before that, options cannot be shown.
        known.build();
        let command = self.subcommand().and_then(|name| known.find_subcommand(name));
        let command = command.unwrap_or(&known);
        let below = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let mut options = command.get_arguments().chain(below).chain(known.get_arguments());
        let option = options.find(|option| option.to_string() == shown)?;
        let variable = option.get_env()?.to_string_lossy().into_owned();
        (!self.has(option) && std::env::var_os(&variable).is_some()).then_some(variable)
    }
}

fn told(error: &clap::Error, typed: &Typed) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let runs = matches!(typed.subcommand(), Some("run" | "lock"));
    let line = match (error.kind(), context(ContextKind::InvalidArg)) {
        (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            return format!("no command is named; {} lists them", typed.help());
        }
        (ErrorKind::UnknownArgument, Some(word)) if runs && !word.starts_with('-') => {
            return format!(
                "{word:?} is one word too many: the command that is to be run comes behind --, as in tenure {} NAME -- {word}",
                typed.subcommand().unwrap_or_default()
            );
        }
        (ErrorKind::MissingRequiredArgument, _) => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.as_slice(),
                _ => &[],
            };
            let lacks_command = missing.iter().any(|missing| missing.contains("<CMD>"));
            if runs && lacks_command {
                return format!(
                    "there is no command to run; it comes behind --, as in tenure {} NAME -- CMD",
                    typed.subcommand().unwrap_or_default()
                );
            }
            match missing {
                // Said by what has looked itself.
                [] => plain(error),
                missing => format!("{} is missing", missing.join(", ")),
            }
        }
        _ => plain(error),
    };
    let line = line.replace(
        "invalid digit found in string",
        "that is no whole number; write digits alone",
    );
    let variable = context(ContextKind::InvalidArg).and_then(|option| typed.variable(option));
    match variable {
        Some(variable) => format!("{line} (from {variable})"),
        // One that says the way out itself needs no other.
        None if line.contains(';') || line.contains(" needs ") => line,
        None => format!("{line}; see {}", typed.help()),
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
        let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
        let arguments = std::iter::once(OsString::from("tenure")).chain(typed.clone());
        let error = definitions().try_get_matches_from(arguments).unwrap_err();
        told(&error, &Typed::new(&typed))
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
                "<RESOURCE> is missing; see tenure fence --help",
            ),
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
