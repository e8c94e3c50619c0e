//! The copy in which the bugs are planted; the shipped sources are only read.

use crate::{Edit, Error, Row, manifest, rewrite, switch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crate whose program checks; with all that it needs, it makes up the copy.
const CHECKING_CRATE: &str = "sim";

/// Where the copy and what is built of it stand, from the root of the workspace.
const PLACE: &str = "target/mutants";

/// A copy of the needed crates with every bug planted behind its switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The root of the copied workspace.
    pub root: PathBuf,
    /// Where it is built: not in the workspace's own target folder, whose builds must not mix with it.
    pub target: PathBuf,
    /// The folders of the copied crates, from the root.
    pub crates: BTreeSet<String>,
}

/// Makes the copy, or brings the one of the last time up to date: what has not changed is not written, so
/// that cargo builds only the rest.
///
/// # Errors
/// Every row that is out of date or in another's way; a manifest or file that cannot be read or written.
pub fn copy(workspace: &Path, rows: &'static [Row]) -> Result<Copy, Vec<Error>> {
    let read = |file: &str| fs::read_to_string(workspace.join(file)).ok();
    rewrite::check_rows(rows, read)?;
    let crates = manifest::crates_needed(workspace, CHECKING_CRATE).map_err(|error| vec![error])?;
    let mut files = sources(workspace, &crates).map_err(|error| vec![error])?;
    plant(rows, &crates, &mut files)?;
    let root = workspace.join(PLACE).join("workspace");
    write_changed(&root, &files).map_err(|error| vec![error])?;
    Ok(Copy {
        root,
        target: workspace.join(PLACE).join("target"),
        crates,
    })
}

/// The files of these crates, by their path from the root, and a workspace of just these.
pub(crate) fn sources(
    workspace: &Path,
    crates: &BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    for folder in crates {
        for path in files_below(&workspace.join(folder))? {
            let content = fs::read(&path).map_err(|error| Error::system(&path, &error))?;
            files.insert(from_root(workspace, &path), content);
        }
    }
    let cut = manifest::cut(workspace, crates)?;
    files.insert("Cargo.toml".to_owned(), cut.into_bytes());
    if let Ok(content) = fs::read(workspace.join("Cargo.lock")) {
        files.insert("Cargo.lock".to_owned(), content);
    }
    Ok(files)
}

/// Rewrites what the rows name, and gives every crate concerned its switch.
fn plant(
    rows: &'static [Row],
    crates: &BTreeSet<String>,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), Vec<Error>> {
    let mut switched = BTreeSet::new();
    let mut named: BTreeMap<&'static str, &'static str> = BTreeMap::new();
    for row in rows {
        for Edit { file, .. } in row.edits {
            named.insert(file, row.name);
        }
    }
    for (file, row) in named {
        let owner = crates
            .iter()
            .find(|folder| file.starts_with(&format!("{folder}/src/")));
        let (Some(owner), Some(content)) = (owner, files.get_mut(file)) else {
            return Err(vec![Error::NoCrate { row, file }]);
        };
        let text = String::from_utf8_lossy(content).into_owned();
        *content = rewrite::rewrite(rows, file, &text)?.into_bytes();
        switched.insert((owner, file, row));
    }
    let owners: BTreeMap<&String, _> = switched
        .iter()
        .map(|(owner, file, row)| (*owner, (*file, *row)))
        .collect();
    for (owner, (file, row)) in owners {
        let Some(root) = files.get_mut(&format!("{owner}/src/lib.rs")) else {
            return Err(vec![Error::NoCrate { row, file }]);
        };
        root.extend_from_slice(switch::MODULE_LINE.as_bytes());
        let module = format!("{owner}/src/{}", switch::MODULE_FILE);
        files.insert(module, switch::module().into_bytes());
    }
    Ok(())
}

/// Makes `root` hold exactly these files. Cargo's own lock file may differ from what it was given: it drops
/// what the cut workspace does not need.
pub(crate) fn write_changed(root: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), Error> {
    fs::create_dir_all(root).map_err(|error| Error::system(root, &error))?;
    for path in files_below(root)? {
        if !files.contains_key(&from_root(root, &path)) {
            fs::remove_file(&path).map_err(|error| Error::system(&path, &error))?;
        }
    }
    for (file, content) in files {
        let path = root.join(file);
        if fs::read(&path).is_ok_and(|there| there == *content) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| Error::system(folder, &error))?;
        }
        fs::write(&path, content).map_err(|error| Error::system(&path, &error))?;
    }
    Ok(())
}

/// Every file below a folder, except what is built or hidden. Links are not followed.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| Error::system(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Error::system(&folder, &error))?;
            let kind = entry
                .file_type()
                .map_err(|error| Error::system(&folder, &error))?;
            let name = entry.file_name();
            if kind.is_file() {
                files.push(entry.path());
            } else if kind.is_dir() && name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                folders.push(entry.path());
            }
        }
    }
    Ok(files)
}

fn from_root(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
