//! Finding the server that rules the records, and connecting to it.

use crate::admission::Admission;
use crate::alone::Quorate;
use crate::fault::{Deed, code, repeats, store_error};
use crate::keys::Keys;
use crate::not_greeted::silent;
use crate::one_store::{Greeting, OneStore};
use crate::sentinels::Guide;
use crate::url::{Credentials, Host, Security, Set, StoreUrl, invalid};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo, RedisError, TlsCertificates, Value,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::{RenewedFiles, TlsParts};

/// How long one connection may take, its handshake included.
pub(crate) const CONNECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a member of a cluster may send us on.
const REDIRECTIONS_MAX: usize = 3;

/// What a server answers that has fewer databases than the URL's, and a cluster that has one.
const NO_DATABASE: [&str; 2] = [
    "DB index is out of range",
    "SELECT is not allowed in cluster mode",
];

/// What a server answers that has as many clients as it takes, those of a cluster's own links included.
const NO_ROOM: &str = "max number of clients";

/// Oldest server with what the scripts and the connection use: Redis 6.2. Every Valkey has it.
const VERSION_MIN: (u32, u32) = (6, 2);

/// Where the server that rules the records is to be found.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) url: StoreUrl,
    pub(crate) keys: Keys,
    /// What the sentinels say. All connections of a store share it.
    pub(crate) guide: Arc<Guide>,
    /// The member of a cluster to dial first: a place in the URL's list. All connections of a store share it.
    pub(crate) first_member: Arc<AtomicUsize>,
    /// The one that was met first. All connections of a store share it.
    pub(crate) store: Arc<OneStore>,
    files: RenewedFiles,
    /// Of a member of a quorum.
    pub(crate) admission: Option<Admission>,
}

/// A connection to the server that rules the records.
#[derive(Clone)]
pub(crate) struct Dialled {
    pub(crate) connection: MultiplexedConnection,
    /// The server has closed it.
    ended: Arc<AtomicBool>,
    guide: Arc<Guide>,
    /// It is known to be of the one store.
    recognised: Arc<AtomicBool>,
    store: Arc<OneStore>,
    /// Of whom, where it is a member of a quorum and was dialled as a server by itself.
    pub(crate) quorate: Option<Quorate>,
    pub(crate) greeting: Arc<Greeting>,
    pub(crate) host: Host,
    pub(crate) hello: Hello,
}

impl Dialled {
    /// Whether it is of no use any more: the server has closed it, the sentinels name another one, or it was
    /// made when nobody knew yet of which store the server must be.
    pub(crate) fn is_over(&self) -> bool {
        let is_unknown = || self.store.is_known() && !self.recognised.load(Ordering::Relaxed);
        self.ended.load(Ordering::Relaxed) || self.guide.names_another(&self.host) || is_unknown()
    }

    /// Whether it is known to be of the one store, or a member of a quorum, which that is known of otherwise.
    pub(crate) fn is_recognised(&self, is_known: bool) {
        self.recognised.store(is_known, Ordering::Relaxed);
    }
}

/// What a server says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) clustered: bool,
    replica: bool,
    sentinel: bool,
}

impl Target {
    pub(crate) fn new(url: StoreUrl, keys: Keys, admission: Option<Admission>) -> Self {
        Self {
            url,
            keys,
            guide: Arc::default(),
            first_member: Arc::default(),
            store: Arc::default(),
            files: RenewedFiles::default(),
            admission,
        }
    }

    /// The same, with another guide.
    pub(crate) fn guided_by(&self, guide: Arc<Guide>) -> Self {
        Self {
            guide,
            ..self.clone()
        }
    }

    pub(crate) fn set(&self) -> &Set {
        &self.url.set
    }

    /// Connects to the server that rules the records now.
    ///
    /// # Errors
    /// Not applied: nothing of a request was sent.
    pub(crate) async fn connect(&self) -> Result<Dialled, StoreError> {
        // Boxed: within the futures of those who connect, it would be more than the compiler lays out in one
        // another.
        match &self.url.set {
            Set::Sentinels { primary } => Box::pin(self.connect_to_primary(primary)).await,
            Set::Server | Set::Independent => Box::pin(self.connect_to_member()).await,
        }
    }

    /// Connects to this server, or to where it sends us.
    pub(crate) async fn dial_ruler(&self, host: Host) -> Result<Dialled, StoreError> {
        let mut dialled = self.dial_one(host).await?;
        // A replica of a cluster sends on to the primary of its slots.
        if dialled.hello.replica && !dialled.hello.clustered {
            return Err(self.is_replica(&mut dialled).await);
        }
        for _redirection in 0..REDIRECTIONS_MAX {
            if !dialled.hello.clustered {
                return Ok(dialled);
            }
            match self.redirection(&mut dialled).await? {
                Some(host) => dialled = self.dial_one(host).await?,
                None => return Ok(dialled),
            }
        }
        Err(StoreError::not_applied(
            Fault::Unreachable,
            format!(
                "the cluster at {} sends from member to member; its slots are moving",
                self.url.shown()
            ),
        ))
    }

    async fn dial_one(&self, host: Host) -> Result<Dialled, StoreError> {
        let ended = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&ended);
        // One bound, below, for all of it: a second one of the driver's would tell the same silence in other
        // words, now and then.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    tell.store(true, Ordering::Relaxed);
                }
                Ok::<(), ()>(())
            });
        let client = self.client(&host, &self.url.credentials, ProtocolVersion::RESP3)?;
        let connecting = async {
            let connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            let (mut asked, hello) = (connection.clone(), redis::cmd("HELLO"));
            let (hello, greeting) = tokio::join!(
                hello.query_async::<Value>(&mut asked),
                self.greeting(connection.clone())
            );
            Ok((connection, hello?, greeting))
        };
        let (connection, hello, greeting) = match tokio::time::timeout(CONNECTION_TIME_MAX, connecting).await
        {
            Ok(connected) => connected.map_err(|error| self.not_greeted(&error, &host))?,
            Err(_late) => return Err(self.nobody_greets(&host)),
        };
        self.files.are_of_use();
        let hello = Hello::read(&hello);
        hello.check_version(&host)?;
        if hello.sentinel {
            return Err(invalid(&format!(
                "the server at {host} is a sentinel, which keeps no leases; write redis+sentinel://…?primary=NAME, with the name \
                 of what it watches"
            )));
        }
        Ok(Dialled {
            connection,
            ended,
            guide: Arc::clone(&self.guide),
            recognised: Arc::default(),
            store: Arc::clone(&self.store),
            quorate: None,
            greeting: Arc::new(greeting),
            host,
            hello,
        })
    }

    /// A connection for messages, to a server that was found before.
    pub(crate) async fn listen(&self, host: &Host) -> Result<PubSub, StoreError> {
        let client = self.client(host, &self.url.credentials, ProtocolVersion::RESP2)?;
        match tokio::time::timeout(CONNECTION_TIME_MAX, client.get_async_pubsub()).await {
            Ok(connected) => connected.map_err(|error| self.not_greeted(&error, host)),
            Err(_late) => Err(self.nobody_greets(host)),
        }
    }

    pub(crate) fn client(
        &self,
        host: &Host,
        credentials: &Credentials,
        protocol: ProtocolVersion,
    ) -> Result<Client, StoreError> {
        let address = match self.url.security {
            Security::Plain => ConnectionAddr::Tcp(host.name.clone(), host.port),
            Security::Tls => {
                // Refused if the program has chosen one before; then that one is used.
                let _chosen_before = rustls::crypto::ring::default_provider().install_default();
                ConnectionAddr::TcpTls {
                    host: host.name.clone(),
                    port: host.port,
                    insecure: false,
                    tls_params: None,
                }
            }
        };
        let mut settings = RedisConnectionInfo::default()
            .set_skip_set_lib_name()
            .set_protocol(protocol);
        if let Some(user) = &credentials.user {
            settings = settings.set_username(user);
        }
        // Whoever is named without a password is let in without one, or not at all: the driver would send
        // nobody's name, and the server take it for its default user.
        let named = credentials.user.as_deref().map(|_| "");
        if let Some(password) = credentials.password.as_deref().or(named) {
            settings = settings.set_password(password);
        }
        let info = address
            .into_connection_info()
            .map_err(|error| self.failed(&error, host))?;
        let info = info
            .set_redis_settings(settings.set_db(i64::from(self.url.database)))
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let read = self.url.tls.read().map_err(|error| self.files.wrong(error));
        let TlsParts { roots, identity } = read?;
        let client = match (roots, identity) {
            (None, None) => Client::open(info),
            (root_cert, identity) => Client::build_with_tls(
                info,
                TlsCertificates {
                    root_cert,
                    client_tls: identity.map(|(client_cert, client_key)| ClientTlsConfig {
                        client_cert,
                        client_key,
                    }),
                },
            ),
        };
        client.map_err(|error| self.failed(&error, host))
    }

    /// Nothing of a request was sent, so nothing was applied.
    pub(crate) fn failed(&self, error: &RedisError, host: &Host) -> StoreError {
        let failed = store_error(error, Deed::Read, "connecting", &host.to_string());
        if NO_DATABASE.iter().any(|words| failed.message.contains(words)) {
            return invalid(&format!(
                "connecting at {host}: the server has no database {}; name one below its setting `databases` (mostly 16, in \
                 a cluster 1), or leave it out",
                self.url.database
            ));
        }
        if failed.message.contains(NO_ROOM) {
            return StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "connecting at {host}: the server takes no more clients; raise its maxclients, or end what is connected \
                     needlessly (CLIENT LIST)"
                ),
            );
        }
        // That a key is not its certificate's is found out when connecting.
        if error.kind() == ErrorKind::InvalidClientConfig {
            return self.files.wrong(failed);
        }
        match repeats(error, self.url.passwords()) {
            // What connects sends the password, and a server or a proxy may quote what it could not read.
            true => StoreError {
                message: format!(
                    "connecting at {host}: refused in words that hold the password, so they are not told; check user \
                     and password, and that the server knows HELLO"
                ),
                ..failed
            },
            false => failed,
        }
    }

    /// Where the member of a cluster sends us; nowhere if the slot is its own, also while it gives it away
    /// (ASK): the one that is to have it sends back whoever asks without `ASKING`.
    async fn redirection(&self, dialled: &mut Dialled) -> Result<Option<Host>, StoreError> {
        let mut look = redis::cmd("EXISTS");
        look.arg(self.keys.index());
        let error = match tokio::time::timeout(
            CONNECTION_TIME_MAX,
            look.query_async::<Value>(&mut dialled.connection),
        )
        .await
        {
            Ok(Ok(_)) => return Ok(None),
            Ok(Err(error)) => error,
            Err(_late) => return Err(silent(&dialled.host)),
        };
        if code(&error) == Some("ASK") {
            return Ok(None);
        }
        let address = error
            .redirect_node()
            .and_then(|(address, _slot)| address.rsplit_once(':'));
        let Some((name, port)) = address.and_then(|(name, port)| Some((name, port.parse().ok()?))) else {
            return Err(self.failed(&error, &dialled.host));
        };
        let name = if name.is_empty() { &dialled.host.name } else { name };
        Ok(Some(Host {
            name: name.to_owned(),
            port,
        }))
    }

    /// A replica has only what reached it, and takes no writes: say whose it is.
    async fn is_replica(&self, dialled: &mut Dialled) -> StoreError {
        let mut role = redis::cmd("ROLE");
        let asking = role.query_async::<Vec<Value>>(&mut dialled.connection);
        let told = tokio::time::timeout(CONNECTION_TIME_MAX, asking).await;
        role.clear();
        let part = |place: usize| {
            let value = told.as_ref().ok()?.as_ref().ok()?.get(place)?;
            redis::from_redis_value::<String>(value.clone()).ok()
        };
        let whose = part(1)
            .zip(part(2))
            .map_or_else(String::new, |(name, port)| format!(" of {name}:{port}"));
        let message = format!("the Redis server at {} is a replica{whose}", dialled.host);
        match &self.url.set {
            Set::Sentinels { .. } => StoreError::not_applied(
                Fault::Unreachable,
                format!("{message}, though the sentinels name it as the primary; a fail-over is under way"),
            ),
            Set::Server | Set::Independent => StoreError::not_applied(
                Fault::ReadOnly,
                format!("{message}; give the primary's address, or the sentinels' (redis+sentinel://)"),
            ),
        }
    }
}

impl Hello {
    fn read(answer: &Value) -> Self {
        let pairs: Vec<(&Value, &Value)> = match answer {
            Value::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
            Value::Array(parts) => parts.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
            _ => Vec::new(),
        };
        let text = |wanted: &str| {
            let find = |(key, value): &(&Value, &Value)| {
                let key = redis::from_redis_value_ref::<String>(key).ok()?;
                (key == wanted)
                    .then(|| redis::from_redis_value_ref::<String>(value).ok())
                    .flatten()
            };
            pairs.iter().find_map(find).unwrap_or_default()
        };
        Self {
            version: text("version"),
            clustered: text("mode") == "cluster",
            sentinel: text("mode") == "sentinel",
            replica: text("role") == "replica" || text("role") == "slave",
        }
    }

    fn check_version(&self, host: &Host) -> Result<(), StoreError> {
        let mut numbers = self.version.split('.').map_while(|part| part.parse::<u32>().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version >= VERSION_MIN {
            return Ok(());
        }
        Err(StoreError::not_applied(
            Fault::Unsupported,
            format!(
                "the server at {host} is too old (version \"{}\"); Redis {}.{} or any Valkey is needed",
                self.version.escape_debug(),
                VERSION_MIN.0,
                VERSION_MIN.1
            ),
        ))
    }
}
