use clap::Args;

/// Show who led when, by which token, and how it ended.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct HistoryArguments {
    /// Name of the lease
    #[arg(value_name = "NAME", env = "TENURE_NAME", hide_env_values = true)]
    pub(crate) name: String,
}

const HELP: &str = "\
`tenure run` keeps it beside the lease, unless it is told --no-history. A holder that was killed or cut off has said
nothing of its end. A help for people, not for decisions: a term may be missing.

Examples:
  tenure history nightly-settlement
  tenure history nightly-settlement --output json";
