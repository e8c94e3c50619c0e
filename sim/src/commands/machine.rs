//! Where a figure was measured: commit, compiler, machine.

use std::process::Command;

/// The circumstances that a figure means nothing without.
pub(crate) struct Circumstances {
    /// The commit, with a mark if the tree differs from it.
    pub(crate) commit: String,
    /// As the compiler names itself.
    pub(crate) compiler: String,
    /// Processor, cores, kernel.
    pub(crate) machine: String,
    /// The day, by the wall clock.
    pub(crate) date: String,
    /// How this program was built.
    pub(crate) build: &'static str,
}

impl Circumstances {
    /// Those of this run; what cannot be found out is said to be unknown.
    pub(crate) fn here() -> Self {
        let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let mark = match changed.as_deref() {
            Some("") => "",
            Some(_) => " with changes",
            None => " (unchanged or not: unknown)",
        };
        let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let kernel = output("uname", &["-sr"]).unwrap_or_else(unknown);
        Self {
            commit: commit.map_or_else(unknown, |commit| commit + mark),
            compiler: output("rustc", &["-V"]).unwrap_or_else(unknown),
            machine: format!("{}, {cores} cores, {kernel}", processor.unwrap_or_else(unknown)),
            date: output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(unknown),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
