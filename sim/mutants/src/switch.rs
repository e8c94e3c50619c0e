//! What every copied crate gets: the module that says which bug is switched on.

/// The environment variable that holds the number of the planted bug, counted from 1 in the order of the
/// rows; 0 or absent: none.
pub const SWITCH: &str = "TENURE_PLANTED_BUG";

/// The file name of the module, beside the crate's `lib.rs`.
pub(crate) const MODULE_FILE: &str = "planted.rs";

/// Added to the crate's `lib.rs`, at its end.
pub(crate) const MODULE_LINE: &str = "\nmod planted;\n";

/// The module itself. The environment is read once, so that asking costs one atomic load.
pub(crate) fn module() -> String {
    format!(
        r#"//! Which planted bug is switched on. This file exists in the copy for planted bugs only.

static SWITCHED_ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();

/// Whether the bug with this number is switched on.
pub(crate) fn is(number: u32) -> bool {{
    *SWITCHED_ON.get_or_init(|| match std::env::var("{SWITCH}") {{
        Ok(text) => text.parse().expect("{SWITCH} is the number of a planted bug"),
        Err(_) => 0,
    }}) == number
}}
"#
    )
}
