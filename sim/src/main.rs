//! The one door to every proof of Tenure.

#![forbid(unsafe_code)]

mod commands;

fn main() -> std::process::ExitCode {
    commands::run()
}
