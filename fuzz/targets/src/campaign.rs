use crate::{Corpus, Finding, Mutator, Target, execute};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How hard to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Mutated inputs to execute, beside the corpus itself.
    pub executions: u64,
    /// What the mutations are a function of.
    pub seed: u64,
}

/// An input that broke a promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where the input is saved.
    pub path: PathBuf,
    /// What it broke.
    pub finding: Finding,
}

/// What became of one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The target.
    pub name: &'static str,
    /// Inputs executed, the corpus included.
    pub executions: u64,
    /// Inputs in the corpus.
    pub corpus: usize,
    /// How long it took.
    pub took: Duration,
    /// The first finding; the target is left at it.
    pub found: Option<Found>,
}

/// How many executions pass between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

/// Replays a target's corpus, then executes mutations of it, until one breaks a promise.
///
/// The input that does is saved in `findings` under a name of its content. `progress` is told how many
/// executions have been made since it was told last.
///
/// # Errors
/// The finding's input cannot be saved.
pub fn run(
    target: &Target,
    corpus: &Corpus,
    effort: Effort,
    findings: &Path,
    mut progress: impl FnMut(u64),
) -> io::Result<Outcome> {
    let began = Instant::now();
    let mut executions = 0;
    let mut caught = None;
    for (path, input) in &corpus.inputs {
        executions += 1;
        if let Some(finding) = execute(target, input) {
            // It has a file already.
            let path = path.clone();
            caught = Some(Found { path, finding });
            break;
        }
    }
    if caught.is_none() {
        let bases: Vec<&[u8]> = corpus.inputs.iter().map(|(_, input)| input.as_slice()).collect();
        let mut mutator = Mutator::new(effort.seed);
        for done in 1..=effort.executions {
            executions += 1;
            let input = mutator.next(&bases, target.dictionary);
            if let Some(finding) = execute(target, &input) {
                let path = save(target, &input, findings)?;
                caught = Some(Found { path, finding });
                break;
            }
            if done % PROGRESS_EVERY == 0 {
                progress(PROGRESS_EVERY);
            }
        }
    }
    Ok(Outcome {
        name: target.name,
        executions,
        corpus: corpus.inputs.len(),
        took: began.elapsed(),
        found: caught,
    })
}

fn save(target: &Target, input: &[u8], findings: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(findings)?;
    let path = findings.join(format!("{}-{:016x}", target.name, name_of(input)));
    fs::write(&path, input)?;
    Ok(path)
}

/// FNV-1a: names need no more than to differ.
fn name_of(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
