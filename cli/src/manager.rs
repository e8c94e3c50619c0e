//! What systemd is told, where it listens: that this process is ready, what it is doing, that it goes on, and
//! that it ends.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The variable that names the socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The variables that say how often this process must tell that it goes on, in microseconds, and which
/// process that is.
const WATCHDOG: &str = "WATCHDOG_USEC";
const WATCHED: &str = "WATCHDOG_PID";

/// What is for this process alone: the command must not speak in its name.
pub(crate) const VARIABLES: [&str; 3] = [SOCKET, WATCHDOG, WATCHED];

/// How often it is told in that time.
const LIFE_PART: u32 = 2;

/// How long a manager that reads nothing may take to hear that this process is ready, which it may be waiting
/// for: nothing is held yet.
const READY_TIME_MAX: Duration = Duration::from_secs(2);

/// It takes part from now on.
pub(crate) fn ready() {
    Notice::of_being_ready().tell();
}

/// What it is doing, for people.
pub(crate) fn status(text: &str) {
    Notice::of_status(text).tell();
}

/// It ends.
pub(crate) fn stopping() {
    Notice::of_the_end().tell();
}

/// From here on the manager hears that this process goes on, where it wants to: from the thread that
/// supervises, which would hear neither a signal nor the end of the command if it hung.
pub(crate) fn tell_life() {
    if let Some(time_max) = silence_max() {
        tokio::spawn(async move {
            loop {
                Notice::of_life().tell();
                tokio::time::sleep(time_max / LIFE_PART).await;
            }
        });
    }
}

/// How long this process may be silent, if that is watched.
fn silence_max() -> Option<Duration> {
    let told = |variable| std::env::var(variable).ok();
    let is_for_another = told(WATCHED).is_some_and(|process| process != std::process::id().to_string());
    let microseconds: u64 = told(WATCHDOG)?.parse().ok()?;
    (microseconds > 0 && !is_for_another).then(|| Duration::from_micros(microseconds))
}

/// Something to be told.
struct Notice {
    text: String,
    /// How long the receiver's queue, which is full where nobody reads, may take to accept it; at once, or it
    /// is not told.
    time_max: Option<Duration>,
}

impl Notice {
    fn of_being_ready() -> Self {
        Self {
            text: "READY=1\nSTATUS=taking part\n".to_owned(),
            time_max: Some(READY_TIME_MAX),
        }
    }

    fn of_status(text: &str) -> Self {
        Self {
            text: format!("STATUS={text}\n"),
            time_max: None,
        }
    }

    fn of_life() -> Self {
        Self {
            text: "WATCHDOG=1\n".to_owned(),
            time_max: None,
        }
    }

    fn of_the_end() -> Self {
        Self {
            text: "STOPPING=1\n".to_owned(),
            time_max: None,
        }
    }

    fn tell(&self) {
        if let Some(name) = std::env::var_os(SOCKET) {
            // Nobody listens where there is no service manager; and work goes on where it has gone deaf.
            let _ = self.sender().and_then(|sender| self.send(&sender, &name));
        }
    }

    /// What waits for as long as this may.
    fn sender(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        match self.time_max {
            Some(_) => socket.set_write_timeout(self.time_max)?,
            None => socket.set_nonblocking(true)?,
        }
        Ok(socket)
    }

    fn send(&self, sender: &UnixDatagram, name: &OsStr) -> io::Result<usize> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(name),
        };
        sender.send_to_addr(self.text.as_bytes(), &address?)
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;
    use std::io::ErrorKind;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::time::Duration;

    /// The time is the system's to keep, by what the socket says. Where it says nothing, a send that waits
    /// would never end.
    #[test]
    fn a_manager_that_reads_nothing_costs_two_seconds_before_anything_is_held_and_nothing_later() {
        let name = format!("@tenure-deaf-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        let _manager = UnixDatagram::bind_addr(&address).unwrap();
        let [ready, status, end] = [
            Notice::of_being_ready(),
            Notice::of_status("full"),
            Notice::of_the_end(),
        ];
        let send = |notice: &Notice| notice.send(&notice.sender().unwrap(), name.as_ref());
        while send(&status).is_ok() {}
        for (notice, time_max) in [(ready, Some(Duration::from_secs(2))), (status, None), (end, None)] {
            assert_eq!(notice.sender().unwrap().write_timeout().unwrap(), time_max);
            assert_eq!(send(&notice).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}
