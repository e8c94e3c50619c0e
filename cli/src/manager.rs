//! What systemd is told, where it listens: that this process is ready, what it is doing, and that it ends.

use sd_notify::NotifyState;

/// The variable that names the socket; the command must not speak in this process's name.
pub(crate) const SOCKET: &str = "NOTIFY_SOCKET";

/// It takes part from now on.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("taking part")]);
}

/// What it is doing, for people.
pub(crate) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// It ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState]) {
    // Nobody listens where there is no service manager; and work goes on where it has gone deaf.
    let _ = sd_notify::notify(states);
}
