//! The scripts on marks.

use crate::script::{STILL_RULES, Script, with_token_max};
use std::sync::LazyLock;

/// Reads a mark with all that decides about it.
pub(super) static LOOK: LazyLock<Script> =
    LazyLock::new(|| on_marks(&[include_str!("../lua/fence_look.lua")]));
/// Raises a mark, if it is still as it was found.
pub(super) static RAISE: LazyLock<Script> =
    LazyLock::new(|| on_marks(&[include_str!("../lua/fence_raise.lua")]));
/// Reads a page of marks.
pub(super) static MARKS: LazyLock<Script> =
    LazyLock::new(|| on_marks(&[include_str!("../lua/fence_marks.lua")]));
/// Writes, if the term holds the mark.
pub(super) static WRITE: LazyLock<Script> = LazyLock::new(|| {
    on_marks(&[
        include_str!("../lua/fence_enter.lua"),
        include_str!("../lua/fence_write.lua"),
    ])
});
/// Counts refusals.
pub(super) static REFUSALS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/fence_refusals.lua").to_owned()));

fn on_marks(parts: &[&str]) -> Script {
    Script::new(text_on_marks(parts))
}

fn text_on_marks(parts: &[&str]) -> String {
    format!(
        "{}\n{STILL_RULES}\n{}",
        with_token_max(include_str!("../lua/fence_mark.lua")),
        parts.join("\n")
    )
}

/// The user's own script behind the fence: with `KEYS` and `ARGV` of its own, run only if the term holds the
/// mark.
pub(super) fn behind_the_fence(body: &str) -> Script {
    let enter = include_str!("../lua/fence_enter.lua");
    let guarded = text_on_marks(&[
        enter,
        include_str!("../lua/fence_failure.lua"),
        "local keys, arguments = {}, {}",
        "for place = 2, #KEYS do keys[place - 1] = KEYS[place] end",
        "for place = 3, #ARGV do arguments[place - 2] = ARGV[place] end",
        "local ran, answer = pcall(behind, keys, arguments)",
        "local failed = not ran and raised(answer) or failure(answer)",
        "if failed then",
        "still_fences()",
        "return { 'failed', now, 0, failed }",
        "end",
        "return admitted(answer)",
    ]);
    // First: it sees none of our names, and one of its own that it forgets to call local is refused as in any
    // other script.
    Script::new(format!(
        "local function behind(KEYS, ARGV)\n{body}\nend\n{guarded}"
    ))
}
