//! A pooler in front of a PostgreSQL server.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::locate::{library_path, pgbouncer_program};
use super::{Postgres, unprivileged};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::ports::free_port;
use crate::process::Process;
use crate::scratch::ScratchDir;

/// PgBouncer in transaction mode: each transaction of a client may meet another server connection.
pub struct PgBouncer {
    port: u16,
    // Before the folder, as a running pooler would write into it.
    _process: Process,
    _folder: ScratchDir,
}

impl PgBouncer {
    /// Starts a pooler in front of `server`, with this many server connections for each database, and waits
    /// until it answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why it did not start.
    pub async fn start(server: &Postgres, connections: u32) -> Result<PgBouncer, Error> {
        Self::before(server.port(), connections).await
    }

    /// The same in front of whoever listens on this port of 127.0.0.1.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn before(upstream: u16, connections: u32) -> Result<PgBouncer, Error> {
        let (folder, port) = (ScratchDir::new("pgbouncer"), free_port());
        let configuration = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={upstream} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = {connections}\nmax_client_conn = 400\nserver_lifetime = 3600\n"
        );
        fs::write(&configuration, text).map_err(Error::system("writing pgbouncer.ini"))?;
        let mut command = Command::new(pgbouncer_program()?);
        command.arg(&configuration).env("LD_LIBRARY_PATH", library_path());
        unprivileged::run_in(&mut command, folder.path())?;
        let pooler = PgBouncer {
            port,
            _process: Process::spawn(command)?,
            _folder: folder,
        };
        let uri = pooler.uri_of("postgres");
        let look = || Postgres::execute_at(&uri, "SELECT 1");
        poll_until(START_TIMEOUT, "answer of PgBouncer", look).await?;
        Ok(pooler)
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// URL of a database through the pooler, as the superuser.
    #[must_use]
    pub fn uri_of(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }
}

/// Long, as a busy machine may need it.
const START_TIMEOUT: Duration = Duration::from_secs(60);
