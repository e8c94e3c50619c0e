//! Who is to take over: a candidate that waits in order, called to the front.

use super::look::answer;
use crate::exit::{Code, Failure};
use crate::output::{clean, unless_url};
use tenure::tooling::Standby;
use tenure::{LeaseName, SharedStore};

/// Most candidates that are named in a message.
const NAMED_MAX: usize = 10;

/// Has this candidate go next.
///
/// # Errors
/// Nobody of this name waits, or it may not lead: nobody was asked for anything.
pub(super) async fn call(store: &SharedStore, name: &LeaseName, candidate: &str) -> Result<(), Failure> {
    let standbys = answer(Standby::list(store, name)).await?;
    let (shown, refused) = (unless_url(candidate), |why| Err(Failure::new(Code::No, why)));
    let Some(standby) = standbys
        .iter()
        .find(|standby| standby.candidate().as_str() == candidate)
    else {
        return Err(waits_not(name, candidate, &standbys));
    };
    if !standby.priority.may_lead() {
        return refused(format!(
            "lease \"{name}\": candidate \"{shown}\" has priority 0, and never leads"
        ));
    }
    if answer(standby.call(store)).await? {
        return Ok(());
    }
    refused(format!("lease \"{name}\": candidate \"{shown}\" has just left"))
}

/// This candidate is none of those who wait.
pub(super) fn waits_not(name: &LeaseName, candidate: &str, standbys: &[Standby]) -> Failure {
    let (shown, standbys) = (unless_url(candidate), those_who_wait(standbys));
    let why = format!("lease \"{name}\": no candidate \"{shown}\" waits in order; {standbys}");
    Failure::new(Code::No, why)
}

fn those_who_wait(standbys: &[Standby]) -> String {
    let named = standbys.iter().take(NAMED_MAX);
    let named: Vec<String> = named
        .map(|standby| {
            format!(
                "{} (priority {})",
                clean(standby.candidate().as_str()),
                standby.priority
            )
        })
        .collect();
    match standbys.len() {
        0 => "nobody does: candidates do with --priority".to_owned(),
        1..=NAMED_MAX => format!("those who do: {}", named.join(", ")),
        number => format!(
            "those who do: {}, and {} more",
            named.join(", "),
            number - NAMED_MAX
        ),
    }
}
