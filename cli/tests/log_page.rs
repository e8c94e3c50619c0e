//! The page of the log has what this command logs and says, beside what the library does.

use std::fs;
use std::path::Path;

/// The text of every source below `folder`.
fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                vec![fs::read_to_string(path).unwrap()]
            }
        })
        .collect()
}

/// What comes after each `call`, up to the end of it.
fn calls<'a>(source: &'a str, call: &'a str) -> impl Iterator<Item = &'a str> {
    let after = source.split(call).skip(1);
    after.map(|after| after.split_once(");").map_or(after, |(within, _)| within))
}

/// The texts in quotes that stand in it as they are.
fn quoted(call: &str) -> Vec<&str> {
    call.split('"').skip(1).step_by(2).collect()
}

#[test]
fn every_event_and_line_of_the_command_is_in_the_page_of_the_log() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../deploy/LOGS.md")).unwrap();
    let sources = sources(&root.join("src"));
    let (mut events, mut lines) = (0, 0);
    for source in &sources {
        let heard = [".say(", ".warn(", " line_of(form, "];
        for said in heard.into_iter().flat_map(|call| calls(source, call)) {
            // One that is handed on has its name elsewhere.
            let Some(event) = said.trim_start().strip_prefix('"') else {
                continue;
            };
            let (event, _) = event.split_once('"').unwrap();
            assert!(page.contains(&format!("\n| `{event}` |")), "{event}");
            events += 1;
        }
        for level in ["trace", "debug", "info", "warn", "error"] {
            for logged in calls(source, &format!("tracing::{level}!(")) {
                let line = quoted(logged).pop().expect("it has words");
                assert!(
                    page.contains(&format!("| {level} | `tenure` | {line} |")),
                    "{line}"
                );
                lines += 1;
            }
        }
    }
    assert!(events >= 25 && lines >= 2, "{events} events and {lines} lines");
}
