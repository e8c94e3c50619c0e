//! What the copy consists of: the crates that the simulator needs by path, and a workspace of just these.

use crate::Error;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// The folders, from the root, of the crate in `first` and of all that it needs by path, tests included:
/// cargo reads their manifests, too.
pub(crate) fn crates_needed(root: &Path, first: &str) -> Result<BTreeSet<String>, Error> {
    let workspace = read(&root.join("Cargo.toml"))?;
    let shared = table_in(&workspace, &["workspace", "dependencies"]);
    let mut needed = BTreeSet::new();
    let mut waiting = vec![first.to_owned()];
    while let Some(folder) = waiting.pop() {
        if !needed.insert(folder.clone()) {
            continue;
        }
        let manifest = read(&root.join(&folder).join("Cargo.toml"))?;
        for (name, dependency) in dependencies(&manifest) {
            let of_workspace = dependency.get("workspace").and_then(Value::as_bool) == Some(true);
            let (base, dependency) = if of_workspace {
                (
                    "",
                    shared.and_then(|shared| shared.get(name)).unwrap_or(dependency),
                )
            } else {
                (folder.as_str(), dependency)
            };
            if let Some(path) = dependency.get("path").and_then(Value::as_str) {
                waiting.push(plain(&Path::new(base).join(path)));
            }
        }
    }
    Ok(needed)
}

/// The workspace's manifest with these members only.
pub(crate) fn cut(root: &Path, members: &BTreeSet<String>) -> Result<String, Error> {
    let path = root.join("Cargo.toml");
    let mut manifest = read(&path)?;
    let workspace = manifest
        .get_mut("workspace")
        .and_then(Value::as_table_mut)
        .ok_or_else(|| Error::manifest(&path, "no [workspace] in it"))?;
    let members = members.iter().cloned().map(Value::String).collect();
    workspace.insert("members".to_owned(), Value::Array(members));
    workspace.remove("exclude");
    workspace.remove("default-members");
    toml::to_string(&manifest).map_err(|error| Error::manifest(&path, error.to_string()))
}

fn read(path: &Path) -> Result<Table, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::system(path, &error))?;
    text.parse::<Table>()
        .map_err(|error| Error::manifest(path, error.to_string()))
}

fn table_in<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter()
        .try_fold(table, |table, key| table.get(*key).and_then(Value::as_table))
}

/// The dependencies of a crate, of every kind and for every target.
fn dependencies(manifest: &Table) -> impl Iterator<Item = (&String, &Value)> {
    let targets = table_in(manifest, &["target"])
        .into_iter()
        .flat_map(Table::values);
    std::iter::once(manifest)
        .chain(targets.filter_map(Value::as_table))
        .flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|kind| table_in(table, &[kind]))
        })
        .flatten()
}

/// A path from the root without `.` and `..`, with slashes.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(part) => plain.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain.to_string_lossy().replace('\\', "/")
}
