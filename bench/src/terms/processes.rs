//! SQLite: there is no server and no network. The store is in processes of its own, which share the file;
//! they are what is killed and frozen, in the middle of whatever they do. Their contenders are here, and
//! believe by this process's clock.

use super::relay::{Relay, answer};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tenure::LeaseStore;
use tenure::sqlite::SqliteStore;
use tenure_conformance::terms::{Campaign, Deployment, Process, Promise, Seen, run};
use tenure_testkit::ScratchDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const PROCESSES: usize = 4;

/// How long a process may take to listen, on a loaded machine.
const START_TIME_MAX: Duration = Duration::from_secs(60);

struct Stores {
    file: PathBuf,
    running: Vec<Option<tenure_testkit::Process>>,
    ports: Vec<Arc<AtomicU16>>,
}

impl Stores {
    fn start(&mut self, member: usize) {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("terms-store").arg("--file").arg(&self.file);
        let process = tenure_testkit::Process::spawn(command).expect("a process");
        let line = process
            .wait_for_line(LISTENING, START_TIME_MAX)
            .expect("it listens");
        let port = line.text.trim_start_matches(LISTENING).trim().parse();
        self.ports[member].store(port.expect("a port"), Ordering::SeqCst);
        self.running[member] = Some(process);
    }

    fn running(&self, member: usize) -> &tenure_testkit::Process {
        self.running[member].as_ref().expect("it was not killed")
    }
}

impl Deployment for Stores {
    fn members(&self) -> usize {
        self.running.len()
    }

    fn kill(&mut self, member: usize) {
        self.running[member] = None;
    }

    async fn restart(&mut self, member: usize) {
        self.start(member);
    }

    fn freeze(&mut self, member: usize) {
        self.running(member).freeze();
    }

    fn thaw(&mut self, member: usize) {
        self.running(member).thaw();
    }
}

pub async fn measure(terms: u64) -> Seen {
    let folder = ScratchDir::new("bench-terms");
    let file = folder.join("leases.db");
    let traits = SqliteStore::open(&file).expect("a file").traits();
    let mut stores = Stores {
        file,
        running: Vec::new(),
        ports: Vec::new(),
    };
    let mut processes = Vec::new();
    for member in 0..PROCESSES {
        let port = Arc::new(AtomicU16::new(0));
        stores.running.push(None);
        stores.ports.push(Arc::clone(&port));
        stores.start(member);
        processes.push(Process {
            store: Arc::new(Relay::new(port, traits.clone())),
            ways: Vec::new(),
        });
    }
    let campaign = Campaign {
        terms,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(800),
        leases: 48,
        commands: &[],
        // There are no others.
        faults_per_harm: 4,
        harmed_max: 2,
        // Longer than the ttl: then whoever waits for the answer has given it up.
        harm_time_max: Duration::from_millis(1_500),
    };
    run(&campaign, &mut stores, processes).await
}

/// What a process says when it can be asked, before its port.
const LISTENING: &str = "listening at";

/// The process of a store: answers until it is killed.
pub async fn serve(file: &Path) {
    let store = Arc::new(SqliteStore::open(file).expect("a file"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    println!(
        "{LISTENING} {}",
        listener.local_addr().expect("it listens").port()
    );
    loop {
        let (caller, _) = listener.accept().await.expect("a connection");
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            // A caller that is gone wants no answer; what it asked for is done.
            let _gone = serve_one(&store, caller).await;
        });
    }
}

async fn serve_one(store: &SqliteStore, caller: TcpStream) -> std::io::Result<()> {
    let mut caller = BufReader::new(caller);
    let mut line = String::new();
    while caller.read_line(&mut line).await? > 0 {
        let answer = answer(store, &line).await;
        caller.write_all(format!("{answer}\n").as_bytes()).await?;
        line.clear();
    }
    Ok(())
}
