//! `tenure lock`: flock(1) across machines.

use super::run::{Kind, Queue, Wishes, undertake};
use crate::arguments::{Again, LockArguments};
use crate::exit::{End, Failure};
use crate::output::Voice;
use clap::ArgMatches;
use tenure::LeaseName;

/// Runs the command while this process holds the lock; answers how to end.
pub(crate) async fn lock(
    mut arguments: LockArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<End, Failure> {
    arguments.settle(matches)?;
    let patience = arguments.patience(matches)?;
    let name = LeaseName::new(&arguments.lock)?;
    let queue = if arguments.is_fair() {
        Queue::Fair
    } else {
        Queue::None
    };
    let arguments = arguments.into_run();
    let wishes = Wishes {
        kind: Kind::Lock,
        name,
        candidate: arguments.label(matches),
        again: Again::Once,
        patience,
        queue,
    };
    undertake(arguments, wishes, store, voice).await
}
