//! Where the kit keeps its files: `servers` in the build's target folder.

use std::env;
use std::path::{Path, PathBuf};

/// The command that installs every server the tests need.
pub const FETCH_COMMAND: &str = "cargo run -p tenure-testkit --bin testkit -- fetch";

/// The folder of installed servers, `target/servers`.
///
/// `CARGO_TARGET_DIR` is honoured; a relative one counts from the workspace's root, as tests run in the
/// folder of their package and `cargo` in the folder of its caller.
#[must_use]
pub fn servers_dir() -> PathBuf {
    let root = workspace_root();
    match env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
        Some(target) => root.join(target).join("servers"),
        None => root.join("target").join("servers"),
    }
}

/// Whether `TESTS_WITHOUT` names this: what the machine is known not to give, and whose tests are left out.
#[must_use]
pub fn is_left_out(need: &str) -> bool {
    let without = env::var("TESTS_WITHOUT").unwrap_or_default();
    without.split(',').any(|known| known.trim() == need)
}

fn workspace_root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .skip(1)
        .find(|folder| folder.join("Cargo.toml").is_file())
        .unwrap_or(package)
}
