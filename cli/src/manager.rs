//! What systemd is told, where it listens: that this process is ready, what it is doing, and that it ends.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The variable that names the socket; the command must not speak in this process's name.
pub(crate) const SOCKET: &str = "NOTIFY_SOCKET";

/// How long a manager that reads nothing may take to hear that this process is ready, which it may be waiting for: nothing is
/// held yet.
const READY_TIME_MAX: Duration = Duration::from_secs(2);

/// It takes part from now on.
pub(crate) fn ready() {
    tell("READY=1\nSTATUS=taking part\n", Some(READY_TIME_MAX));
}

/// What it is doing, for people.
pub(crate) fn status(text: &str) {
    tell(&format!("STATUS={text}\n"), None);
}

/// It ends.
pub(crate) fn stopping() {
    tell("STOPPING=1\n", None);
}

fn tell(text: &str, time_max: Option<Duration>) {
    if let Some(name) = std::env::var_os(SOCKET) {
        // Nobody listens where there is no service manager; and work goes on where it has gone deaf.
        let _ = send(&name, text, time_max);
    }
}

/// Sends it if the receiver's queue takes it within this time, or at once: it is full where nobody reads.
fn send(name: &OsStr, text: &str, time_max: Option<Duration>) -> io::Result<usize> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound()?;
    match time_max {
        Some(_) => socket.set_write_timeout(time_max)?,
        None => socket.set_nonblocking(true)?,
    }
    socket.send_to_addr(text.as_bytes(), &address?)
}
