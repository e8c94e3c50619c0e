//! Options of flock(1) that mean nothing here: one is heeded anyway, the others say what to do instead.

use clap::error::ErrorKind;
use clap::{ArgAction, Args};

/// Options that a line which was written for flock(1) may have.
#[derive(Args, Clone, Debug)]
pub(crate) struct FlockArguments {
    /// As it is anyway: a lock is exclusive
    #[arg(short = 'x', visible_short_alias = 'e', long, action = ArgAction::SetTrue)]
    exclusive: bool,

    /// Refused.
    #[arg(short = 's', long, hide = true, action = ArgAction::SetTrue)]
    shared: bool,

    /// Refused.
    #[arg(short = 'u', long, hide = true, action = ArgAction::SetTrue)]
    unlock: bool,

    /// Refused.
    #[arg(short = 'o', long, hide = true, action = ArgAction::SetTrue)]
    close: bool,

    /// Refused.
    #[arg(short = 'F', long, hide = true, action = ArgAction::SetTrue)]
    no_fork: bool,
}

impl FlockArguments {
    /// Accepts what is as it is anyway.
    ///
    /// # Errors
    /// An option asks for what a lock across machines cannot do, or need not.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let refused = [
            (self.shared, SHARED),
            (self.unlock, UNLOCK),
            (self.close, CLOSE),
            (self.no_fork, NO_FORK),
        ];
        match refused.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, why)) => Err(clap::Error::raw(ErrorKind::ArgumentConflict, why)),
        }
    }
}

/// The options that are refused: each says so itself, also where no command was given.
pub(super) const REFUSED: [&str; 4] = ["shared", "unlock", "close", "no_fork"];

const SHARED: &str = "--shared: a lock is exclusive here; without the option, readers take turns, too\n";
const UNLOCK: &str =
    "--unlock: a lock is released when its command ends; to ask its holder: tenure step-down NAME\n";
const CLOSE: &str = "--close: a lock is no file that a command inherits, and ends with all that the command started; leave it out\n";
const NO_FORK: &str = "--no-fork: somebody must extend the lock beside the command; leave it out\n";
