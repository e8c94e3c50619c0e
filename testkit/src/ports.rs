//! Free loopback ports that stay free until they are used.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// A loopback TCP port that nobody listens on, reserved for this process until it ends.
///
/// Asking the system for any port and closing it again is a race: other tests get the same port, and so do
/// outgoing connections, which may sit on it just when a killed server is restarted. So ports come from
/// outside the range of outgoing connections, and a reservation keeps other processes of this kit off them,
/// whoever's they are and of whatever copy of the sources. A stranger may still take the port; the servers of
/// this kit then start again on another one.
///
/// # Panics
/// When no port of the range is free.
#[must_use]
pub fn free_port() -> u16 {
    reserve(outside(outgoing(), 0), &[0])
}

/// The same, of which the port so much higher is reserved, too: for a server that takes both.
///
/// # Panics
/// When no such pair of the range is free.
pub(crate) fn free_port_with(distance: u16) -> u16 {
    let range = outside(outgoing(), distance);
    reserve(*range.start()..=range.end() - distance, &[0, distance])
}

fn reserve(range: RangeInclusive<u16>, distances: &[u16]) -> u16 {
    static HELD: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

    let lock = |port: u16| named(port).filter(|_ours| nobody_listens(port));
    let mut held = HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for port in candidates(&range) {
        let locks: Option<Vec<UnixDatagram>> =
            distances.iter().map(|distance| lock(port + distance)).collect();
        if let Some(locks) = locks {
            held.extend(locks);
            return port;
        }
    }
    panic!("every port of {range:?} on 127.0.0.1 is taken");
}

/// A reservation: a name that is bound once among all that share the machine's ports, and that the system
/// frees when its process ends, however that ends. It is of no file, so that it needs no folder that
/// everybody can write.
fn named(port: u16) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("tenure-testkit-port-{port}")).expect("a short name");
    UnixDatagram::bind_addr(&name).ok()
}

/// Asks by connecting. Binding would ask for more, but a process that is being forked just then holds the
/// bound socket until it runs its program, and the server that is to get the port finds it in use.
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

/// Which ports the system hands out to outgoing connections.
fn outgoing() -> RangeInclusive<u16> {
    let told = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bounds = told.split_whitespace().map_while(|bound| bound.parse().ok());
    match (bounds.next(), bounds.next()) {
        (Some(first), Some(last)) => first..=last,
        _ => 32_768..=60_999,
    }
}

/// A range that is none of theirs, and wider than `distance`: the usual one, or else the wider of what is
/// left below and above. Where nothing is left, the usual one: most of the time nobody is met there.
fn outside(theirs: RangeInclusive<u16>, distance: u16) -> RangeInclusive<u16> {
    let meets = |range: &RangeInclusive<u16>| range.start() <= theirs.end() && theirs.start() <= range.end();
    let usual = FIRST..=LAST;
    let below = UNPRIVILEGED..=theirs.start().saturating_sub(1);
    let above = theirs.end().saturating_add(1)..=u16::MAX;
    let left = [below, above].into_iter().filter(|range| !meets(range));
    let wider = left.max_by_key(|range| range.len());
    match wider {
        Some(wider) if meets(&usual) && wider.len() > usize::from(distance) + PORTS_MIN => wider,
        _ => usual,
    }
}

/// Below 32768, where Linux begins to hand out ports to outgoing connections, and above most known services.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// The first that anybody may listen on.
const UNPRIVILEGED: u16 = 1_024;

/// As many as are surely enough for all tests at a time.
const PORTS_MIN: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_for_servers_are_none_of_outgoing_connections_where_enough_are_left() {
        assert_eq!(outside(32_768..=60_999, 10_000), 20_000..=31_999);
        assert_eq!(outside(15_000..=61_000, 10_000), 1_024..=14_999);
        assert_eq!(outside(10_000..=65_535, 0), 1_024..=9_999);
        assert_eq!(outside(1_024..=40_000, 10_000), 40_001..=65_535);
        for (theirs, distance) in [(10_000..=65_535, 10_000), (1_024..=65_535, 0), (0..=u16::MAX, 0)] {
            assert_eq!(outside(theirs, distance), 20_000..=31_999);
        }
    }

    #[test]
    fn reserved_port_is_nobody_elses() {
        let port = free_port();
        assert!(named(port).is_none(), "the name of {port} can be bound again");
    }
}
