//! Where a store may be opened, and the one clear line where it may not.

use crate::common::child::{NAMESPACES_NEEDED, in_role, in_role_after, role};
use crate::common::{Asker, Scratch, grant};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tenure_core::{Certainty, Fault, Interest, LeaseStore, Leases, Scope, StoreError};
use tenure_sqlite::{MissingDirectory, SqliteFence, SqliteOptions, SqliteStore};

/// A user that owns nothing: `nobody`.
const NOBODY: u32 = 65_534;

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let store = match SqliteStore::open(&file) {
        Ok(store) => store,
        Err(error) => return println!("refused {:?}: {error}", error.fault),
    };
    let play = async {
        match role.as_str() {
            "opener" => println!("opened"),
            "taker" => {
                let _grant = grant(&store, &Asker::new("taker"), "job").await;
                println!("opened, and taken");
            }
            "watcher" => {
                let _watch = store
                    .watch(&Scope::Prefix(String::new()), Interest::Everything)
                    .await
                    .unwrap();
                println!(
                    "opened, and {} wakes it",
                    if is_woken() { "the kernel" } else { "nobody" }
                );
            }
            other => panic!("{other}"),
        }
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(play);
}

/// Whether this process has asked the kernel to tell it of a file.
pub fn is_woken() -> bool {
    let descriptors = fs::read_dir("/proc/self/fdinfo").unwrap();
    let asks =
        |info: fs::DirEntry| fs::read_to_string(info.path()).is_ok_and(|said| said.contains("inotify wd:"));
    descriptors.filter_map(Result::ok).any(asks)
}

fn refused(path: &Path) -> StoreError {
    let error = SqliteStore::open(path).unwrap_err();
    assert_eq!(error.certainty, Certainty::NotApplied);
    assert!(!error.message.contains('\n'), "{error}");
    error
}

/// What the opener printed.
fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| {
        line.find("refused ")
            .or_else(|| line.find("opened"))
            .map(|at| &line[at..])
    });
    line.map(str::to_owned).unwrap_or_else(|| {
        panic!(
            "{NAMESPACES_NEEDED}\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Opens as a user whom permissions bind: root is bound by none.
fn opened_unprivileged(scratch: &Scratch, file: &Path) -> String {
    played_unprivileged(scratch, "opener", file)
}

fn played_unprivileged(scratch: &Scratch, role: &str, file: &Path) -> String {
    let program = scratch.directory().join("opener");
    // By a program: what this process has open for writing, a child that another test starts has open, too,
    // and then the copy cannot be run.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let mut command = in_role(module_path!(), role, file);
    if rustix_is_root() {
        let mut as_nobody = Command::new(&program);
        as_nobody.args(command.get_args()).uid(NOBODY).gid(NOBODY);
        for (key, value) in command.get_envs() {
            as_nobody.env(key, value.unwrap());
        }
        command = as_nobody;
    }
    answer(&mut command)
}

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A scratch directory that the unprivileged user may enter, with a directory of its own inside.
fn unprivileged_place(scratch: &Scratch) -> std::path::PathBuf {
    fs::set_permissions(scratch.directory(), Permissions::from_mode(0o755)).unwrap();
    let place = scratch.directory().join("place");
    fs::create_dir(&place).unwrap();
    give(&place);
    place
}

fn give(path: &Path) {
    if rustix_is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

#[test]
fn a_missing_directory_is_named_with_the_command_that_makes_it() {
    let scratch = Scratch::new();
    let path = scratch.directory().join("none/leases.db");
    let error = refused(&path);
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains("mkdir -p"), "{error}");
    assert!(
        !path.parent().unwrap().exists(),
        "it was made without being asked for"
    );
}

#[test]
fn a_default_path_gets_a_private_directory() {
    let scratch = Scratch::new();
    let path = scratch.directory().join("state/tenure/leases.db");
    let options = SqliteStore::options(&path).missing_directory(MissingDirectory::CreatePrivate);
    let _store = options.open().unwrap();
    let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_is_no_file_is_refused() {
    let scratch = Scratch::new();
    assert_eq!(refused(scratch.directory()).fault, Fault::Invalid);
    assert_eq!(refused(Path::new(":memory:")).fault, Fault::Invalid);
    assert_eq!(refused(Path::new("")).fault, Fault::Invalid);
    assert_eq!(refused(Path::new("/")).fault, Fault::Invalid);
}

/// SQLite would write into it, and leave a journal beside it.
#[test]
fn a_device_a_pipe_or_a_socket_is_refused_and_nothing_is_left_beside_it() {
    let scratch = Scratch::new();
    let place = scratch.directory().join("place");
    fs::create_dir(&place).unwrap();
    let [pipe, socket, device] = ["pipe", "socket", "device"].map(|name| place.join(name));
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(&socket).unwrap();
    symlink("/dev/null", &device).unwrap();
    for path in [&pipe, &socket, &device] {
        let error = refused(path);
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("no plain file"), "{error}");
        let Err(error) = SqliteFence::create(&SqliteOptions::new(path), Leases::Here) else {
            panic!("{} is taken for a database", path.display());
        };
        assert_eq!(error.fault, Fault::Invalid, "{error}");
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 3);
    assert!(!Path::new("/dev/null-journal").exists());
}

/// To make the directory would not help.
#[test]
fn a_path_that_no_directory_would_mend_is_told_with_another_way_out() {
    let scratch = Scratch::new();
    fs::write(scratch.file(), "").unwrap();
    let long = "l".repeat(300);
    for (path, part) in [
        (scratch.file().join("leases.db"), "is a file"),
        (scratch.file().join("inner/leases.db"), "is a file"),
        (scratch.directory().join(&long), "shorter"),
        (scratch.directory().join(&long).join("leases.db"), "shorter"),
        (scratch.directory().join("a\0b"), "a path that a file can have"),
        (
            scratch.directory().join("a\0b/leases.db"),
            "a path that a file can have",
        ),
    ] {
        let error = refused(&path);
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(part), "{error}");
        assert!(!error.message.contains("mkdir"), "{error}");
    }
}

#[test]
fn a_read_only_file_is_told() {
    let scratch = Scratch::new();
    let file = unprivileged_place(&scratch).join("leases.db");
    drop(SqliteStore::open(&file).unwrap());
    give(&file);
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let said = opened_unprivileged(&scratch, &file);
    assert!(said.starts_with("refused ReadOnly"), "{said}");
}

#[test]
fn a_directory_that_takes_no_new_files_is_told() {
    let scratch = Scratch::new();
    let place = unprivileged_place(&scratch);
    fs::set_permissions(&place, Permissions::from_mode(0o555)).unwrap();
    let said = opened_unprivileged(&scratch, &place.join("leases.db"));
    fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    assert!(said.starts_with("refused ReadOnly"), "{said}");
    assert!(said.contains("place"), "{said}");
}

/// As by `sudo tenure doctor` before the service has started: the wake file stays root's where only the
/// database is given to the service.
#[test]
fn a_wake_file_that_may_only_be_read_wakes_all_the_same() {
    let scratch = Scratch::new();
    let file = unprivileged_place(&scratch).join("leases.db");
    let taken = answer(&mut in_role(module_path!(), "taker", &file));
    assert_eq!(taken, "opened, and taken");
    let wake = file.with_file_name("leases.db-wake");
    fs::set_permissions(&wake, Permissions::from_mode(0o444)).unwrap();
    give(&file);
    let said = played_unprivileged(&scratch, "watcher", &file);
    assert_eq!(said, "opened, and the kernel wakes it");
}

/// As SQLite makes the log.
#[test]
fn a_wake_file_is_for_whoever_may_use_the_database_whoever_makes_it() {
    let scratch = Scratch::new();
    let file = unprivileged_place(&scratch).join("leases.db");
    drop(SqliteStore::open(&file).unwrap());
    give(&file);
    fs::set_permissions(&file, Permissions::from_mode(0o660)).unwrap();
    let taker = in_role(module_path!(), "taker", &file);
    let mut strict = Command::new("sh");
    strict.args(["-c", "umask 077 && exec \"$0\" \"$@\""]);
    strict.arg(taker.get_program()).args(taker.get_args());
    strict.envs(taker.get_envs().filter_map(|(key, value)| Some((key, value?))));
    assert_eq!(answer(&mut strict), "opened, and taken");
    let [database, wake] = ["leases.db", "leases.db-wake"].map(|beside| {
        let made = fs::metadata(file.with_file_name(beside)).unwrap();
        (made.uid(), made.gid(), made.mode() & 0o777)
    });
    assert_eq!(wake, database);
}

#[test]
fn a_file_or_directory_that_may_not_be_read_is_forbidden() {
    let scratch = Scratch::new();
    let place = unprivileged_place(&scratch);
    let file = place.join("leases.db");
    drop(SqliteStore::open(&file).unwrap());
    give(&file);
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    let said = opened_unprivileged(&scratch, &file);
    assert!(said.starts_with("refused Forbidden"), "{said}");
    fs::set_permissions(&place, Permissions::from_mode(0o000)).unwrap();
    let said = opened_unprivileged(&scratch, &file);
    fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    assert!(said.starts_with("refused Forbidden"), "{said}");
}

#[test]
fn a_read_only_file_system_is_told() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let directory = scratch.directory().display();
    let mount = format!("mount --bind '{directory}' '{directory}' && mount -o remount,bind,ro '{directory}'");
    let said = answer(&mut in_role_after(
        &mount,
        module_path!(),
        "opener",
        &scratch.file(),
    ));
    assert!(said.starts_with("refused ReadOnly"), "{said}");
}

#[tokio::test]
async fn a_symbolic_link_leads_to_the_same_store() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let link = scratch.directory().join("link.db");
    symlink(scratch.file(), &link).unwrap();
    let linked = SqliteStore::open(&link).unwrap();
    assert_eq!(linked.path(), store.path());
    let _granted = grant(&store, &Asker::new("first"), "job").await;
    let _held = crate::common::held(&linked, &Asker::new("second"), "job").await;
}

/// Else the link's own file system would be judged, and what lies beside the file would lie beside the link,
/// where nobody looks who comes by the file's own path.
#[test]
fn a_symbolic_link_to_a_file_that_is_not_made_yet_leads_to_its_place() {
    let scratch = Scratch::new();
    let inner = scratch.directory().join("inner");
    fs::create_dir(&inner).unwrap();
    let [first, second] = ["first.db", "inner/second.db"].map(|part| scratch.directory().join(part));
    symlink("inner/second.db", &first).unwrap();
    symlink("../leases.db", &second).unwrap();
    let linked = SqliteStore::open(&first).unwrap();
    let store = scratch.open();
    assert_eq!(linked.path(), store.path());
    assert_eq!(store.path(), scratch.file().canonicalize().unwrap());
}

/// No crontab and no unit replaces it, and to make the directory of that name would not help.
#[test]
fn a_tilde_that_no_shell_has_replaced_is_told() {
    for path in ["~/leases.db", "~ada/jobs/leases.db"] {
        let error = refused(Path::new(path));
        assert_eq!(error.fault, Fault::Invalid);
        assert!(
            error.message.contains("tilde") && !error.message.contains("mkdir"),
            "{error}"
        );
    }
}

#[test]
fn symbolic_links_that_lead_nowhere_are_told() {
    let scratch = Scratch::new();
    let [circle, astray] = ["circle.db", "astray.db"].map(|part| scratch.directory().join(part));
    symlink("circle.db", &circle).unwrap();
    let error = refused(&circle);
    assert_eq!(error.fault, Fault::Invalid);
    assert!(error.message.contains("symbolic links"), "{error}");
    symlink("none/leases.db", &astray).unwrap();
    let error = refused(&astray);
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains("/none"), "{error}");
    assert!(error.message.contains("mkdir -p"), "{error}");
}
