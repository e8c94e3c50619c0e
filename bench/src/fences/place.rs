//! Where the number of a fence is: made here, and opened by whoever writes it.

use super::etcd::EtcdRegister;
use super::http::{HttpRegister, serve_over_http};
use super::kind::Kind;
use super::memory::MemoryRegister;
use super::mongodb::{self, MongoRegister};
use super::mysql::{self, MysqlRegister};
use super::nats::NatsRegister;
use super::postgres::{self, PostgresRegister};
use super::redis::RedisRegister;
use super::register::Register;
use super::remote::{Remote, serve};
use super::sqlite::SqliteRegister;
use crate::server::Server;
use std::sync::Arc;
use tenure_testkit::ScratchDir;

/// How long a server keeps a transaction that a frozen writer has open, in seconds: where it would keep it
/// for ever, no leader could be succeeded, and where for a minute, every pause would be as long.
pub const TRANSACTION_LIFETIME_S: u32 = 3;

/// A number, and what it takes to keep it, for as long as this lives.
pub struct Place {
    /// The number, as this process has it.
    pub register: Arc<dyn Register>,
    /// Where a leader opens it that is a process of its own.
    pub address: String,
    _folder: ScratchDir,
    _server: Option<Server>,
}

impl Place {
    /// Starts what keeps the number of a kind, and makes the number.
    pub async fn start(kind: Kind) -> Self {
        let folder = ScratchDir::new("bench-fences");
        let marks = folder.join("marks").display().to_string();
        let server = match kind.server() {
            Some(server) => Some(Server::start(server).await),
            None => None,
        };
        let url = server
            .as_ref()
            .map_or_else(String::new, |server| server.url().to_owned());
        let address = match kind {
            Kind::Watermark => {
                // Its file is one process's, which is this one: the leaders come over a socket.
                let register: Arc<dyn Register> = Arc::new(MemoryRegister::open(&marks));
                let address = serve(Arc::clone(&register)).await.to_string();
                return Self {
                    register,
                    address,
                    _folder: folder,
                    _server: server,
                };
            }
            Kind::Http => serve_over_http(&marks).await,
            Kind::SqliteEnter | Kind::SqliteTable => folder.join("register.db").display().to_string(),
            Kind::MongoTransaction | Kind::MongoDocument => {
                mongodb::end_frozen_transactions_soon(&url).await;
                url
            }
            Kind::PostgresEnter | Kind::PostgresGuard => {
                postgres::make(kind, &url).await;
                url
            }
            Kind::MysqlEnter | Kind::MysqlGuard => {
                mysql::make(kind, &url).await;
                url
            }
            // The first write makes the number.
            Kind::RedisScript | Kind::EtcdTransaction | Kind::NatsMessage => url,
        };
        Self {
            register: open(kind, &address).await,
            address,
            _folder: folder,
            _server: server,
        }
    }
}

/// The register of a kind at an address.
pub async fn open(kind: Kind, address: &str) -> Arc<dyn Register> {
    match kind {
        Kind::Watermark => Arc::new(Remote::connect(address).await),
        Kind::Http => Arc::new(HttpRegister::new(address)),
        Kind::SqliteEnter | Kind::SqliteTable => Arc::new(SqliteRegister::open(kind, address).await),
        Kind::MongoTransaction | Kind::MongoDocument => Arc::new(MongoRegister::open(kind, address).await),
        Kind::PostgresEnter | Kind::PostgresGuard => Arc::new(PostgresRegister::open(kind, address).await),
        Kind::MysqlEnter | Kind::MysqlGuard => Arc::new(MysqlRegister::open(kind, address).await),
        Kind::RedisScript => Arc::new(RedisRegister::open(address).await),
        Kind::EtcdTransaction => Arc::new(EtcdRegister::open(address).await),
        Kind::NatsMessage => Arc::new(NatsRegister::open(address).await),
    }
}
