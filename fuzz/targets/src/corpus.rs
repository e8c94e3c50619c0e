use crate::INPUT_BYTES_MAX;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most files that a corpus is read from: more are a mistake, and would be slow to replay.
const FILES_MAX: usize = 20_000;

/// The inputs of one target, in the order of their names, so that a seed means the same everywhere.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// Each with the file it came from.
    pub inputs: Vec<(PathBuf, Vec<u8>)>,
}

impl Corpus {
    /// Reads every file of `folder/name`; an absent folder is an empty corpus.
    ///
    /// # Errors
    /// A folder or file that cannot be read, more than 20,000 files, or a file over [`INPUT_BYTES_MAX`]:
    /// the finder would never make it, so nothing would be learnt from it.
    pub fn read(folder: &Path, name: &str) -> io::Result<Self> {
        let folder = folder.join(name);
        let mut paths = match fs::read_dir(&folder) {
            Ok(entries) => entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        if paths.len() > FILES_MAX {
            let message = format!(
                "{} has {} files; at most {FILES_MAX} are read: minimise it with cargo fuzz cmin",
                folder.display(),
                paths.len()
            );
            return Err(io::Error::other(message));
        }
        paths.sort();
        let mut inputs = Vec::with_capacity(paths.len());
        for path in paths {
            let input = fs::read(&path)?;
            if input.len() > INPUT_BYTES_MAX {
                let message = format!(
                    "{} has {} bytes; at most {INPUT_BYTES_MAX} are allowed: shorten or remove it",
                    path.display(),
                    input.len()
                );
                return Err(io::Error::other(message));
            }
            inputs.push((path, input));
        }
        Ok(Self { inputs })
    }
}
