//! Scripts by which shells complete what is typed.

use super::Cli;
use clap::{ArgGroup, Command, CommandFactory};

/// The script for a shell: with what people type, and without what is refused or for Tenure alone.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(&Cli::command()), "tenure", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The same command without what is hidden, which completions would offer.
fn shown(command: &Command) -> Command {
    let arguments = command.get_arguments();
    let (hidden, arguments): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.is_hide_set());
    // Another argument may name them: it is required where they are not there.
    let named = hidden
        .into_iter()
        .map(|argument| ArgGroup::new(argument.get_id().clone()));
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let shown_command = Command::new(command.get_name().to_owned())
        .args(arguments)
        .groups(named)
        .subcommands(commands.map(shown));
    match (command.get_version(), command.get_about()) {
        (Some(version), Some(about)) => shown_command.version(version.to_owned()).about(about.clone()),
        (_, Some(about)) => shown_command.about(about.clone()),
        (_, None) => shown_command,
    }
}
