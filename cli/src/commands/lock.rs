//! `tenure lock`: flock(1) across machines.

use super::run::{Queue, Wishes, undertake};
use crate::arguments::{Again, LockArguments};
use crate::exit::Failure;
use crate::output::Voice;
use clap::ArgMatches;
use tenure::LeaseName;

/// Runs the command while this process holds the lock; answers the exit code.
pub(crate) async fn lock(
    arguments: LockArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let patience = arguments.patience(matches).unwrap_or_else(|error| error.exit());
    let wishes = Wishes {
        name: LeaseName::new(&arguments.lock)?,
        again: Again::Once,
        patience,
        queue: if arguments.is_fair() {
            Queue::Fair
        } else {
            Queue::None
        },
    };
    undertake(arguments.into_run(), wishes, store, voice).await
}
