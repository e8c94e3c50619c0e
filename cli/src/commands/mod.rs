//! One file per command.

mod doctor;
mod ends;
mod explain;
pub(crate) mod fence;
mod gc;
mod hints;
mod history;
mod lock;
mod look;
mod run;
mod status;
mod step_down;
mod store;
mod successor;
mod top;
mod watch;

use crate::arguments::{Cli, Command, completions};
use crate::exit::{End, Failure};
use crate::output::{self, Voice};
use crate::place::Place;
use crate::warden;
use clap::ArgMatches;
use tenure::SharedStore;

/// Does what `cli` says; answers how to end. `matches` are those of the subcommand.
pub(crate) async fn run(cli: Cli, matches: &ArgMatches, voice: Voice) -> Result<End, Failure> {
    let form = cli.global.output;
    let store = cli.global.store.as_deref();
    let code = match cli.command {
        Command::Run(arguments) => return run::run(*arguments, matches, store, voice).await,
        Command::Lock(arguments) => return lock::lock(*arguments, matches, store, voice).await,
        Command::Status(arguments) => status::status(&arguments, matches, store, form).await,
        Command::Watch(arguments) => watch::watch(&arguments, matches, store, form, voice).await,
        Command::Top(arguments) => top::top(&arguments, store).await,
        Command::History(arguments) => history::history(&arguments, store, form).await,
        Command::StepDown(arguments) => step_down::step_down(&arguments, matches, store, form, voice).await,
        Command::Fence(arguments) => fence::fence(&arguments, matches, store, voice).await,
        Command::Gc(arguments) => gc::gc(&arguments, store, form, voice).await,
        Command::Explain(arguments) => explain::explain(&arguments, matches, form, voice),
        Command::Doctor(arguments) => return doctor::doctor(&arguments, store, form).await,
        Command::Store(arguments) => store::store(&arguments, store, form).await,
        Command::Warden { socket, command } => warden::guard(socket, &command).await,
        Command::Completions { shell } => {
            output::print(&completions(shell))?;
            Ok(0)
        }
    };
    code.map(End::Code)
}

async fn open(store: Option<&str>) -> Result<SharedStore, Failure> {
    Ok(Place::find(store)?.open().await?)
}
