//! What stands below the options in the help.

/// Paragraphs below the options are wrapped for the terminal, as clap wraps what it says of each option.
pub(super) fn with_flowing_help(command: clap::Command) -> clap::Command {
    let command = match command.get_after_help().map(|help| flowing(&help.to_string())) {
        Some(help) => command.after_help(help),
        None => command,
    };
    let command = match command
        .get_after_long_help()
        .map(|help| flowing(&help.to_string()))
    {
        Some(help) => command.after_long_help(help),
        None => command,
    };
    command.mut_subcommands(with_flowing_help)
}

/// The same text with each paragraph in one line: what is not indented, and what is said below an example.
/// Tables, and the examples themselves, keep their lines.
fn flowing(text: &str) -> String {
    const BELOW_AN_EXAMPLE: &str = "        ";
    let kind = |line: &str| match line {
        "" => None,
        _ if line.ends_with(':') => None,
        _ if line.starts_with(BELOW_AN_EXAMPLE) => Some(true),
        _ if line.starts_with(' ') => None,
        _ => Some(false),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut before = None;
    for line in text.lines() {
        let this = kind(line);
        match lines.last_mut() {
            Some(last) if this.is_some() && this == before => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
        before = this;
    }
    lines.join("\n")
}

pub(super) const TOP_HELP: &str = "\
Examples:
  export TENURE_STORE=postgres://db1/jobs             the same on every host; without it, a file of this user here
  tenure run nightly-settlement -- ./settle --all     waits its turn: several hosts run it one after the other
  tenure run --no-wait backup -- ./backup.sh          runs it unless another does; once a night: tenure run --help
  tenure lock --wait 12s orders/7 -- ./pay            like flock(1), for every host that shares the store
  tenure status                                       who holds what
  tenure step-down nightly-settlement                 hand over to a standby
  tenure gc --dry-run                                 which names nobody has used for 30 days
  tenure doctor                                       is this store safe to keep leases in?

Exit codes:
    0   done; `run`: the command ended with 0
    1   no: `doctor` found the store unsafe, `lock` did not get the lock (see -E), `step-down` did not see the term end,
        or its --token is not the current one, or who is called by --to does not wait in order or has not taken over
    2   wrong arguments
   65   a record that Tenure did not write, or that is damaged; it was left as it is
   69   the store is unreachable, locked, or does not answer, or too little of it to tell who holds a lease
   70   an internal fault, or a lack of processes, memory or open files to run the command
   73   the store is read-only
   74   the store's disk is full
   75   another candidate holds the lease (--no-wait), or still held it after --wait; see -E
   77   wrong credentials, or missing privileges
   78   wrong configuration: a name, a token, a timing, a ttl outside the store's range, a store URL, a trace file, a
        /proc of another PID namespace
   79   leadership or the lock was lost while the command ran, and the command was ended
   80   `fence`: refused, a later term has claimed, or an operator has raised the mark
   81   `fence`: refused, this term has not claimed
   82   `doctor`: the store can lose what it has confirmed: leases alone are not safe here, only fences protect
  126   the command cannot be executed
  127   the command was not found
  other the exit code of the command; 128 + n if signal n ended it

Every option is also an environment variable, named in brackets; the command line wins.
Authority is advice, the fence is the guarantee: have the data path refuse a token lower than the highest it has seen.";

pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  tenure completions bash > /etc/bash_completion.d/tenure
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish";
