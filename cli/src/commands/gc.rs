//! `tenure gc`.

use super::look::answer;
use crate::arguments::{Form, GcArguments};
use crate::exit::Failure;
use crate::output::{self, Voice, clean};
use crate::place::Place;
use serde_json::json;
use std::time::{Duration, Instant};
use tenure::LeaseName;
use tenure::contract::{Purge, Purging};

/// Records that are looked at in one go.
const PAGE: u16 = 1_000;

/// How often it is said how far the clean-up has come.
const SAY_EVERY: Duration = Duration::from_secs(2);

/// Removes the records that nobody uses, or says which they are.
pub(crate) async fn gc(
    arguments: &GcArguments,
    store: Option<&str>,
    form: Form,
    voice: Voice,
) -> Result<u8, Failure> {
    let place = Place::find(store)?;
    if place.unused().is_some() {
        return done(0, 0, arguments.dry_run, form, voice);
    }
    let store = place.open_to_purge().await?;
    let mut page = Purge {
        prefix: arguments.prefix.clone(),
        after: None,
        limit: PAGE,
        unused_for: arguments.unused_for,
        purging: if arguments.dry_run {
            Purging::OnlyLooks
        } else {
            Purging::Removes
        },
    };
    let (mut unused, mut removed, mut said_at) = (0_u64, 0_u64, Instant::now());
    loop {
        let purged = answer(store.purge(&page)).await?;
        unused += u64::try_from(purged.unused.len()).unwrap_or(u64::MAX);
        removed += purged.removed;
        if arguments.dry_run {
            output::print(&lines_of(&purged.unused, form))?;
        }
        let Some(next) = purged.next else { break };
        if said_at.elapsed() >= SAY_EVERY {
            said_at = Instant::now();
            let text = format!(
                "cleaned up to \"{next}\": {removed} of {} removed so far",
                records(unused)
            );
            let fields = json!({"next": String::from_utf8_lossy(next.as_bytes()), "unused": unused, "removed": removed});
            voice.say("cleaned", &text, fields);
        }
        // The names only rise, so that this comes to an end.
        page.after = Some(next);
    }
    if store.notes_first() {
        let text = match arguments.dry_run {
            true => {
                "this store keeps no time: only what a gc without --dry-run has noted before can be told to be unused"
            }
            false => {
                "this store keeps no time: what was unused for the first time is noted, and goes at a later gc"
            }
        };
        voice.say("noted", text, json!({}));
    }
    done(unused, removed, arguments.dry_run, form, voice)
}

/// Says what came of it.
fn done(unused: u64, removed: u64, is_dry: bool, form: Form, voice: Voice) -> Result<u8, Failure> {
    match (form, is_dry) {
        (Form::Text | Form::Json, true) => {
            let text = format!("{}; nothing was removed", records(unused));
            voice.say("looked", &text, json!({"unused": unused}));
        }
        (Form::Json, false) => {
            output::print(&format!("{}\n", json!({"unused": unused, "removed": removed})))?
        }
        // Cron mails what is printed.
        (Form::Text, false) if voice.is_quiet() => {}
        (Form::Text, false) => output::print(&format!("{} removed\n", records(removed)))?,
    }
    Ok(0)
}

fn records(number: u64) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} unused record{ending}")
}

/// A line for each name.
fn lines_of(names: &[LeaseName], form: Form) -> String {
    let line = |name: &LeaseName| match form {
        Form::Text => format!("{}\n", clean(name.as_str())),
        Form::Json => format!("{}\n", json!({"name": name.as_str()})),
    };
    names.iter().map(line).collect()
}
