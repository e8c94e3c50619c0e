use super::{excluded, prevailing};
use clap::builder::BoolishValueParser;
use clap::{ArgAction, ArgMatches, Args};
use tenure::tooling::History;

/// Which leases.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct SelectArguments {
    /// Names of leases [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Only leases whose names begin with this text
    #[arg(long, env = "TENURE_PREFIX", hide_env_values = true, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// Also what Tenure keeps by itself: places in queues, and the records of past terms
    #[arg(
        long,
        env = "TENURE_ALL",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) all: bool,
}

impl SelectArguments {
    /// The names, or the prefix: what was typed beats what the environment says.
    ///
    /// # Errors
    /// Both were typed.
    pub(crate) fn selection(&self, matches: &ArgMatches) -> Result<Selection, clap::Error> {
        if self.names.is_empty() {
            let prefix = self.prefix.clone().unwrap_or_default();
            let housekeeping = self.all || History::is_of_housekeeping(&prefix);
            return Ok(Selection::Prefix { prefix, housekeeping });
        }
        prevailing(matches, "names", "prefix").map_err(|_| excluded("NAME", "--prefix"))?;
        Ok(Selection::Names(self.names.clone()))
    }
}

/// Which leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// These.
    Names(Vec<String>),
    /// All whose names begin so; with an empty text, all.
    Prefix {
        /// The text.
        prefix: String,
        /// Whether what Tenure keeps by itself is among them.
        housekeeping: bool,
    },
}

const HELP: &str = "\
Ends with 65 if one of the records cannot be understood; the others are shown all the same.

Examples:
  tenure status
  tenure status nightly-settlement --output json
  tenure watch --prefix billing/";
