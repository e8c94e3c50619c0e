//! Free loopback ports that stay free until they are used.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::layout::servers_dir;

/// A loopback TCP port that nobody listens on, reserved for this process until it ends.
///
/// Asking the system for any port and closing it again is a race: other tests get the same port, and so do
/// outgoing connections, which may sit on it just when a killed server is restarted. So ports come from below
/// the range of outgoing connections, and a file lock keeps other processes of this kit off them.
/// A stranger may still take the port; the servers of this kit then start again on another one.
///
/// # Panics
/// When no port of the range is free.
#[must_use]
pub fn free_port() -> u16 {
    reserve(FIRST..=LAST, &[0])
}

/// The same, of which the port so much higher is reserved, too: for a server that takes both.
///
/// # Panics
/// When no such pair of the range is free.
pub(crate) fn free_port_with(distance: u16) -> u16 {
    reserve(FIRST..=LAST - distance, &[0, distance])
}

fn reserve(range: RangeInclusive<u16>, distances: &[u16]) -> u16 {
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

    let folder = servers_dir().join("ports");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let lock = |port: u16| {
        let lock = File::create(folder.join(port.to_string())).expect("the target folder is writable");
        (lock.try_lock().is_ok() && nobody_listens(port)).then_some(lock)
    };
    let mut held = HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for port in candidates(&range) {
        let locks: Option<Vec<File>> = distances.iter().map(|distance| lock(port + distance)).collect();
        if let Some(locks) = locks {
            held.extend(locks);
            return port;
        }
    }
    panic!("every port of {range:?} on 127.0.0.1 is taken");
}

/// Asks by connecting. Binding would ask for more, but a process that is being forked just then holds the bound
/// socket until it runs its program, and the server that is to get the port finds it in use.
fn nobody_listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// All ports of the range, from an arbitrary one onwards: parallel test processes seldom try the same one.
fn candidates(range: &RangeInclusive<u16>) -> impl Iterator<Item = u16> {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    let (first, width) = (*range.start(), u32::from(range.end() - range.start()) + 1);
    let start = clock.wrapping_add(std::process::id().wrapping_mul(7919)) % width;
    (0..width).map(move |step| first + u16::try_from((start + step) % width).expect("the range fits a port"))
}

/// Below 32768, where Linux begins to hand out ports to outgoing connections, and above most known services.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;
