//! The thread that spawns every child.
//!
//! The parent-death signal fires when the spawning *thread* ends. Tests run on short-lived threads, and a
//! server shared by several tests must outlive the test that happened to start it; so one thread that lives
//! as long as the process does all the spawning.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};

use super::death::die_with_parent;

type Order = (Command, Sender<io::Result<Child>>);

/// Spawns a command whose process the kernel kills when this process ends, however it ends.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::Builder::new()
            .name("testkit-spawn".to_owned())
            .spawn(move || {
                for (mut command, reply) in inbox {
                    // The asker waits for the reply, so it is there to take it.
                    reply.send(command.spawn()).unwrap_or_default();
                }
            })
            .expect("the operating system grants a thread");
        orders
    });
    die_with_parent(&mut command);
    let (reply, answer) = mpsc::channel();
    orders
        .send((command, reply))
        .expect("the spawning thread ends with the process only");
    answer.recv().expect("the spawning thread answers every order")
}
