//! A network between servers of this machine that can be cut.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::layout::is_left_out;
use crate::process::spawn_child;
use crate::servers::nft_command;

/// What is between servers that were started with it: packets from one to another pass, or are dropped
/// without a word. Each of them still answers its clients, as a server of another data centre does.
///
/// It needs root, and the kernel's `nf_tables`. All servers stay on loopback. Each runs as a group of its
/// own, by which the kernel knows whose connection it is that begins; packets are dropped where they arrive,
/// as sent ones are lost. All of it is gone with this process, however that ends: the kernel removes the
/// table when the program that owns it dies.
#[derive(Clone)]
pub struct Network {
    table: Arc<Mutex<Table>>,
}

/// What is cut of a member that is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Everything between it and the others.
    Both,
    /// What it sends: it hears their requests, and its answers are lost.
    WhatItSends,
    /// What is sent to it: its requests arrive, and the answers are lost.
    WhatItHears,
}

/// Rules of the kernel, owned by a program.
struct Table {
    name: String,
    owner: Child,
    members: Vec<Member>,
    /// From whom, to whom: first ports.
    cuts: BTreeSet<(u16, u16)>,
    /// How often the rules were written.
    revision: u64,
}

/// A server, known by the first of its ports.
struct Member {
    ports: Vec<u16>,
}

impl Network {
    /// One without members.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or [`Error::System`] where this is not root or the kernel has no such tables.
    pub fn new() -> Result<Network, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let doing = "making a network that can be cut, for which root is needed";
        if !rustix::process::geteuid().is_root() {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(Error::system(doing)(source));
        }
        let mut command = nft_command()?;
        command
            .arg("--interactive")
            // Where it would keep what it was told.
            .env("HOME", "/nonexistent")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut table = Table {
            name: format!("tenure_testkit_{}_{count}", std::process::id()),
            owner: spawn_child(command).map_err(Error::system(doing))?,
            members: Vec::new(),
            cuts: BTreeSet::new(),
            revision: 0,
        };
        let name = &table.name;
        table.write(vec![
            format!("add table ip {name} {{ flags owner; }}"),
            format!("add set ip {name} members {{ type inet_service; }}"),
            format!("add chain ip {name} output {{ type filter hook output priority 0; }}"),
            format!("add chain ip {name} input {{ type filter hook input priority 0; }}"),
        ])?;
        Ok(Network {
            table: Arc::new(Mutex::new(table)),
        })
    }

    /// One for a test, or nothing where `TESTS_WITHOUT` names `root`.
    ///
    /// # Panics
    /// Where there is none, with the way out.
    #[must_use]
    pub fn unless_left_out() -> Option<Network> {
        match Network::new() {
            Ok(network) => Some(network),
            Err(_) if is_left_out("root") => {
                eprintln!("NOT RUN: TESTS_WITHOUT names root");
                None
            }
            Err(error) => panic!("{error}; run it as root, or leave it out with TESTS_WITHOUT=root"),
        }
    }

    /// Has the server that a command starts be a member, which listens on these ports: from its first start
    /// on, under the first's name.
    pub(crate) fn join(&self, command: &mut Command, ports: &[u16]) -> Result<(), Error> {
        let mut table = self.table();
        let first = ports[0];
        command.gid(group(first));
        if table.members.iter().any(|member| member.ports == ports) {
            return Ok(());
        }
        let (name, group, listed) = (&table.name, group(first), listed(ports));
        // Who begins a connection is known by its group, and then by its port: what is answered has no group.
        let begins =
            format!("add rule ip {name} output tcp dport @members tcp flags & (syn | ack) == syn meta skgid");
        let connection = "{ tcp sport . tcp dport }";
        let added = vec![
            format!(
                "add set ip {name} from_{first} {{ type inet_service . inet_service; size {CONNECTIONS_MAX}; flags dynamic; }}"
            ),
            format!("add set ip {name} ports_{first} {{ type inet_service; elements = {{ {listed} }}; }}"),
            format!("add element ip {name} members {{ {listed} }}"),
            format!("{begins} {group} add @from_{first} {connection}"),
            format!("{begins} != {group} delete @from_{first} {connection}"),
        ];
        table.write(added)?;
        table.members.push(Member {
            ports: ports.to_vec(),
        });
        Ok(())
    }

    /// Drops this between a member and all others.
    ///
    /// # Panics
    /// When it is no member.
    pub fn cut_off(&self, member: &str, cut: Cut) {
        let mut table = self.table();
        let alone = table.known(member);
        let others: Vec<u16> = table.members.iter().map(|other| other.ports[0]).collect();
        for other in others.into_iter().filter(|other| *other != alone) {
            if cut != Cut::WhatItHears {
                table.cuts.insert((alone, other));
            }
            if cut != Cut::WhatItSends {
                table.cuts.insert((other, alone));
            }
        }
        table.rewrite();
    }

    /// Lets everything pass again.
    ///
    /// # Panics
    /// When the kernel does not.
    pub fn heal(&self) {
        let mut table = self.table();
        table.cuts.clear();
        table.rewrite();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The first port of the member that listens there.
    fn known(&self, address: &str) -> u16 {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port: u16 = port.unwrap_or_else(|| panic!("{address} has a port"));
        let found = self.members.iter().find(|member| member.ports.contains(&port));
        found
            .unwrap_or_else(|| panic!("{address} is a member of the network"))
            .ports[0]
    }

    /// Has the kernel do as the cuts say.
    fn rewrite(&mut self) {
        self.write(Vec::new())
            .expect("the kernel took rules like these before");
    }

    /// Has the kernel take commands, and the present cuts, all at once; returns when it has.
    fn write(&mut self, mut commands: Vec<String>) -> Result<(), Error> {
        self.revision += 1;
        let (name, revision) = (&self.name, self.revision);
        commands.push(format!("flush chain ip {name} input"));
        for (from, to) in &self.cuts {
            let rule = format!("add rule ip {name} input");
            commands.push(format!(
                "{rule} tcp dport @ports_{to} tcp sport . tcp dport @from_{from} drop"
            ));
            commands.push(format!(
                "{rule} tcp sport @ports_{from} tcp dport . tcp sport @from_{to} drop"
            ));
        }
        // Where this is found, all of it is in force.
        let mark = format!("revision {revision}");
        commands.push(format!("add rule ip {name} input counter comment \"{mark}\""));
        let doing = format!("writing rules of the table {name}");
        let mut commands = commands.join("; ");
        commands.push('\n');
        let input = self.owner.stdin.as_mut().expect("it is piped");
        input
            .write_all(commands.as_bytes())
            .map_err(Error::system(doing.clone()))?;
        let deadline = Instant::now() + WRITING_TIMEOUT;
        loop {
            let is_last_look = Instant::now() >= deadline;
            let mut asking = nft_command()?;
            asking
                .args(["list", "chain", "ip", name, "input"])
                .stdin(Stdio::null());
            let told = asking.output().map_err(Error::system(doing.clone()))?;
            let refusal = String::from_utf8_lossy(&told.stderr);
            match String::from_utf8_lossy(&told.stdout).contains(&mark) {
                true => return Ok(()),
                // A root of a container may not.
                false if is_last_look || refusal.contains("not permitted") => {
                    return Err(Error::system(doing)(io::Error::other(refusal.into_owned())));
                }
                false => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.table().name)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // The table goes with it. One that has ended already needs no end.
        let _ended = self.owner.kill();
        let _reaped = self.owner.wait();
    }
}

/// The group as which a member runs: as unique as its port.
fn group(port: u16) -> u32 {
    u32::from(port)
}

fn listed(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    ports.join(", ")
}

/// More than there are ports for connections to two members.
const CONNECTIONS_MAX: u32 = 131_072;
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Long, as a loaded machine may need it.
const WRITING_TIMEOUT: Duration = Duration::from_secs(30);
