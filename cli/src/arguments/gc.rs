use super::durations::duration;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use std::time::Duration;

/// Shortest time that `gc` takes for "nobody uses it": a week-end job's name is not to go over a long lunch.
const UNUSED_FOR_MIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Remove the records of leases and locks that nobody uses any more.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct GcArguments {
    /// For how long nobody must have used a name; a day at least
    #[arg(
        long,
        env = "TENURE_UNUSED_FOR",
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "30d",
        value_parser = long_duration
    )]
    pub(crate) unused_for: Duration,

    /// Only leases whose names begin with this text
    #[arg(
        long,
        env = "TENURE_PREFIX",
        hide_env_values = true,
        value_name = "TEXT",
        default_value = ""
    )]
    pub(crate) prefix: String,

    /// Only say which they are
    #[arg(
        long,
        env = "TENURE_DRY_RUN",
        hide_env_values = true,
        action = ArgAction::SetTrue,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) dry_run: bool,
}

fn long_duration(text: &str) -> Result<Duration, String> {
    let long = duration(text)?;
    if long < UNUSED_FOR_MIN {
        return Err("what was used within a day is no waste; write 1d or more".to_owned());
    }
    Ok(long)
}

const HELP: &str = "\
Removes only what nobody holds, by the store's clock, and what nobody has used for so long (and for ten of its own ttls).
A name that comes back begins with a greater token than it ever had. The history of terms that began or ended so long ago
goes, too, also of names in use. The marks of fences stay, and so does what cannot be understood (tenure doctor tells of it).
May run at any time, beside every service; a thousand records are looked at in one go. Of a quorum of Redis servers a
majority must answer; what one has that is away goes at a later gc. etcd keeps no time: there a gc notes what it finds
unused, by this machine's wall clock, and one that comes so long afterwards removes what has stayed so. Run it regularly.

Examples:
  tenure gc --dry-run
  tenure gc --unused-for 90d --prefix orders/
  @daily /usr/local/bin/tenure gc --quiet
        In a crontab, which finds it by its name only where it sets PATH. What the user may do besides: `remove` on MongoDB, DELETE on the leases of PostgreSQL and MySQL,
        DEL on Redis, STREAM.PURGE on NATS; to read and write PREFIX/unused/ on etcd.";
