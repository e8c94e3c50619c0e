//! Handing a descriptor to tokio's poller: the one step of this crate that the compiler cannot check.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has tokio tell when `descriptor` can be read.
///
/// # Panics
/// Outside a tokio runtime whose I/O driver is enabled.
pub(crate) fn register(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>, Errno> {
    #[expect(unsafe_code, reason = "tokio asks its caller to vouch for the descriptor")]
    // SAFETY: an `OwnedFd` is open, always answers with the same descriptor, and closes it only when it is
    // dropped. The `AsyncFd` owns it, deregisters before dropping it, and nothing here takes it out or
    // replaces it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(|_| Errno::IO)
}
