//! A file system that a program serves (FUSE): this one.
//!
//! It has one empty file, of which it tells what `stat` and `statfs` ask. That is all that is looked at
//! before a file is opened; it opens none. Numbers and layouts are the kernel's, of `linux/fuse.h`.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DEVICE: &str = "/dev/fuse";

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

/// Before what each request says of itself.
const HEADER_BYTES: usize = 40;

/// The least that the kernel wants to have room for.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;

const ROOT: u64 = 1;
const FILE: u64 = 2;

const NO_SUCH_FILE: i32 = 2;
const NOT_PERMITTED: i32 = 13;

/// Mounts it at `directory`, with one file of this name, for as long as this process runs: in namespaces of
/// its own, so that it is gone with them.
///
/// # Panics
/// Where the kernel has no FUSE, or the process may not mount.
pub fn served_by_a_program(directory: &Path, file_name: &OsStr) {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE);
    let device =
        device.unwrap_or_else(|error| panic!("{DEVICE}: {error}; modprobe fuse, and let this user open it"));
    let mounting = device.try_clone().expect("a descriptor is left");
    let name = file_name.as_bytes().to_vec();
    std::thread::spawn(move || serve(device, &name));
    // The device is the command's own standard input.
    let mounted = Command::new("mount")
        .args([
            "-i",
            "-t",
            "fuse",
            "-o",
            "fd=0,rootmode=40000,user_id=0,group_id=0",
            "tenure-test",
        ])
        .arg(directory)
        .stdin(Stdio::from(mounting))
        .status();
    assert!(mounted.is_ok_and(|status| status.success()), "mount -t fuse");
}

fn serve(mut device: File, file_name: &[u8]) {
    let mut request = vec![0; REQUEST_BYTES_MAX];
    loop {
        let length = match device.read(&mut request) {
            Ok(length) => length,
            // It is not mounted yet.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(_unmounted) => return,
        };
        let (header, body) = request[..length].split_at(HEADER_BYTES);
        let [opcode, node] = [4, 16].map(|at| &header[at..]);
        let opcode = opcode.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let node = node.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let answer = match opcode {
            FORGET | BATCH_FORGET => continue,
            INIT => Ok(init()),
            STATFS => Ok(vec![0; 80]),
            GETATTR => Ok([vec![0; 16], attributes(node)].concat()),
            LOOKUP if body.strip_suffix(&[0]) == Some(file_name) => Ok(entry()),
            LOOKUP => Err(NO_SUCH_FILE),
            _ => Err(NOT_PERMITTED),
        };
        let (error, answer) = match answer {
            Ok(answer) => (0, answer),
            Err(error) => (-error, Vec::new()),
        };
        let length = u32::try_from(16 + answer.len()).expect("it is some hundred bytes");
        let unique = &header[8..16];
        let message = [
            &length.to_ne_bytes()[..],
            &i32::to_ne_bytes(error)[..],
            unique,
            &answer,
        ]
        .concat();
        // Who asked may be gone.
        let _written = device.write_all(&message);
    }
}

/// Protocol 7.31, in which requests and answers have these layouts.
fn init() -> Vec<u8> {
    let mut answer: Vec<u8> = [7_u32, 31].into_iter().flat_map(u32::to_ne_bytes).collect();
    answer.resize(64, 0);
    answer
}

fn entry() -> Vec<u8> {
    let mut answer = FILE.to_ne_bytes().to_vec();
    answer.resize(40, 0);
    answer.extend(attributes(FILE));
    answer
}

fn attributes(node: u64) -> Vec<u8> {
    let mode: u32 = match node {
        ROOT => 0o40_755,
        _ => 0o100_644,
    };
    let mut answer = node.to_ne_bytes().to_vec();
    answer.resize(60, 0);
    answer.extend(mode.to_ne_bytes());
    // One link.
    answer.extend(1_u32.to_ne_bytes());
    answer.resize(88, 0);
    answer
}
