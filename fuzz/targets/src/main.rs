//! `tenure-fuzz`: replays every corpus, then looks further with seeded mutations. See `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenure_fuzz::command::run(tenure_fuzz::targets::ALL, std::env::args_os())
}
