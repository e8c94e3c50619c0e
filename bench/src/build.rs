//! A clean release build of the command: how long, how many crates, how large.

use std::process::Command;
use std::time::Instant;
use tenure_testkit::ScratchDir;

pub fn measure() {
    let folder = ScratchDir::new("bench-build");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    for (what, features) in [
        (
            "sqlite alone",
            &["--no-default-features", "--features", "sqlite"][..],
        ),
        ("default features", &[]),
    ] {
        let target = folder.join(what.replace(' ', "-"));
        let start = Instant::now();
        let status = Command::new(&cargo)
            .args(["build", "--release", "--quiet", "--locked", "-p", "tenure-cli"])
            .args(features)
            .env("CARGO_TARGET_DIR", &target)
            .status()
            .unwrap();
        assert!(status.success());
        let seconds = start.elapsed().as_secs();
        let tree = Command::new(&cargo)
            .args([
                "tree",
                "--quiet",
                "--prefix",
                "none",
                "--edges",
                "normal,build",
                "--no-dedupe",
                "-p",
                "tenure-cli",
            ])
            .args(features)
            .output()
            .unwrap();
        let crates: std::collections::BTreeSet<&[u8]> = tree
            .stdout
            .split(|byte| *byte == b'\n')
            .map(|line| line.split(|byte| *byte == b'(').next().unwrap_or(line))
            .filter(|line| !line.is_empty())
            .collect();
        let bytes = std::fs::metadata(target.join("release/tenure")).unwrap().len();
        println!(
            "tenure-cli, {what}: {seconds} s, {} crates, {:.1} MB",
            crates.len(),
            bytes_to_megabytes(bytes)
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "a file of some megabytes")]
fn bytes_to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}
