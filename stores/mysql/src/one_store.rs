//! The one store that is asked, which a fail-over carries along: each other would have leaders and marks of
//! its own.

use crate::dial::Dial;
use crate::fault::store_error;
use crate::greeting::Greeted;
use crate::row::text;
use crate::session::farewell;
use futures_util::future::join_all;
use mysql_async::Row;
use mysql_async::prelude::Queryable as _;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;
use tenure_core::{Fault, Finding, StoreError};
use tenure_remote::Deed;
use tenure_remote::findings::{bad, good};
use tokio::time::timeout;

/// How long the addresses of the host may take to say what they are.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// What tells one server from another, as far as it knows these; and whether it takes writes.
const ITSELF: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'hostname', 'port', 'server_id', 'datadir', \
     'read_only', 'innodb_read_only')";

const WAY_OUT: &str = "have the name in the MySQL URL lead to one primary alone";

/// The number of the store that was connected to first. It is in a table of the store's own, so that replicas
/// and what is restored from a backup have it as well, and not another server that was set up by itself.
#[derive(Default)]
pub(crate) struct OneStore(OnceLock<i64>);

impl OneStore {
    /// Whether an address may be asked, which is known from the first on that tells a number. Why not,
    /// otherwise.
    pub(crate) fn check(&self, address: IpAddr, told: Option<i64>) -> Result<(), String> {
        let ours = match told {
            Some(theirs) => Some(*self.0.get_or_init(|| theirs)),
            None => self.number(),
        };
        let Some(ours) = ours.filter(|_| ours != told) else {
            return Ok(());
        };
        let theirs = told.map_or_else(|| "of none".to_owned(), |theirs| format!("of store {theirs}"));
        Err(format!(
            "{address} is {theirs}, and whoever was connected to first is of store {ours}: each would have a leader of its own; \
             {WAY_OUT}, and start this process anew if the tables were made or restored anew"
        ))
    }

    /// The number, as far as it is known.
    pub(crate) fn number(&self) -> Option<i64> {
        self.0.get().copied()
    }
}

/// What an address says of whom it leads to.
#[derive(Clone, Debug)]
struct Seen {
    address: IpAddr,
    store: Option<i64>,
    takes_writes: bool,
    server: String,
}

/// Why these cannot all be of one store, with one server that takes its writes.
fn divided(seen: &[Seen]) -> Option<String> {
    let stores: BTreeMap<i64, IpAddr> = seen
        .iter()
        .filter_map(|one| Some((one.store?, one.address)))
        .collect();
    if stores.len() > 1 {
        let told: Vec<String> = stores
            .iter()
            .map(|(store, address)| format!("{address} is of store {store}"))
            .collect();
        return Some(format!(
            "{}: each would have a leader of its own",
            told.join(", ")
        ));
    }
    let takers: BTreeMap<&str, IpAddr> = seen
        .iter()
        .filter(|one| one.takes_writes)
        .map(|one| (one.server.as_str(), one.address))
        .collect();
    if takers.len() > 1 {
        let told: Vec<String> = takers.values().map(IpAddr::to_string).collect();
        return Some(format!(
            "{} lead to servers that each take writes: each would have a leader of its own",
            told.join(" and ")
        ));
    }
    None
}

impl Dial {
    /// What is wrong with the addresses of the host that answer now.
    async fn division(&self, addresses: &[IpAddr]) -> Option<String> {
        let looks = addresses
            .iter()
            .map(|address| timeout(LOOK_TIME_MAX, self.look_at(*address)));
        let seen: Vec<Seen> = join_all(looks).await.into_iter().flatten().flatten().collect();
        divided(&seen)
    }

    async fn look_at(&self, address: IpAddr) -> Result<Seen, StoreError> {
        let failed = |error| store_error(&error, Deed::Read, "a look", &self.place);
        let Greeted { mut conn, store, .. } = self.greet(address).await.map_err(failed)?;
        let rows: Vec<Row> = conn.query(ITSELF).await.map_err(failed)?;
        farewell(conn);
        let said: Vec<(&str, &str)> = rows
            .iter()
            .filter_map(|row| Some((text(row, 0)?, text(row, 1)?)))
            .collect();
        let (writes, itself): (Vec<_>, Vec<_>) = said
            .into_iter()
            .partition(|(name, _)| name.ends_with("read_only"));
        Ok(Seen {
            address,
            store,
            takes_writes: writes.iter().all(|(_, value)| ["0", "OFF"].contains(value)),
            server: format!("{itself:?}"),
        })
    }

    /// # Errors
    /// [`Fault::Invalid`]: addresses of the host lead to different stores, or to several servers that take
    /// writes. Not applied.
    pub(crate) async fn refuse_division(&self) -> Result<(), StoreError> {
        let addresses = self.addresses("connecting").await?;
        if addresses.len() < 2 {
            return Ok(());
        }
        match self.division(&addresses).await {
            None => Ok(()),
            Some(why) => {
                let message = format!("MySQL at {}: {why}; {WAY_OUT}", self.place);
                Err(StoreError::not_applied(Fault::Invalid, message))
            }
        }
    }

    /// Nothing where the name has one address.
    pub(crate) async fn examine_addresses(&self) -> Option<Finding> {
        let addresses = self.addresses("its addresses").await.ok()?;
        if addresses.len() < 2 {
            return None;
        }
        Some(match self.division(&addresses).await {
            None => good(
                "addresses",
                "those that answer lead to one server that takes writes",
            ),
            Some(why) => bad("addresses", why, WAY_OUT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, divided};
    use crate::dial::Dial;
    use crate::store::MysqlStore;
    use crate::url::StoreUrl;
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;
    use tenure_testkit::Mariadb;
    use tokio::io::copy_bidirectional;
    use tokio::net::{TcpListener, TcpStream};

    /// An address of this machine at which another server answers, on the same port.
    async fn another(last: u8, port: u16, server: &Mariadb) -> IpAddr {
        let address = Ipv4Addr::new(127, 0, 1, last);
        let listener = TcpListener::bind((address, port)).await.expect("it is free");
        let server = server.address();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        let _ended = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        IpAddr::V4(address)
    }

    fn dial(server: &Mariadb, database: &str) -> Dial {
        let url = StoreUrl::parse(&server.uri_of(database)).unwrap_or_else(|error| panic!("{error}"));
        Dial::new(url, Duration::from_secs(30))
    }

    /// A name may lead to a server and to what was to come in its place: both answer, and each would have a
    /// leader.
    #[tokio::test]
    async fn addresses_of_mysql_of_two_stores_or_of_two_that_take_writes_are_refused() {
        let (ours, other) = (Mariadb::start().await, Mariadb::start().await);
        let (ours, other) = (ours.expect("one"), other.expect("another"));
        let addresses = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            another(1, ours.port(), &other).await,
            another(2, ours.port(), &ours).await,
        ];
        let both = [addresses[0], addresses[1]];
        for server in [&ours, &other] {
            server.execute("CREATE DATABASE jobs").await.expect("made");
        }
        let dial = dial(&ours, "jobs");
        // On a machine that stands still one of them may be silent for a second.
        let told = async |addresses: &[IpAddr]| {
            for _look in 0..30 {
                if let Some(why) = dial.division(addresses).await {
                    return why;
                }
            }
            panic!("nothing is told of {addresses:?}")
        };
        let why = told(&both).await;
        assert!(
            why.contains("each take writes") && why.contains("127.0.1.1"),
            "{why}"
        );
        for server in [&ours, &other] {
            let made = MysqlStore::init(&server.uri_of("jobs")).await;
            made.unwrap_or_else(|error| panic!("{error}"));
        }
        let why = told(&addresses).await;
        assert!(why.contains("127.0.1.1 is of store"), "{why}");
        // Also where only one of them takes writes: the other may be promoted.
        other.execute("SET GLOBAL read_only = ON").await.expect("set");
        let why = told(&both).await;
        assert!(why.contains("127.0.1.1 is of store"), "{why}");
        // Two addresses of one server.
        let why = dial.division(&[addresses[0], addresses[2]]).await;
        assert_eq!(why, None);
    }

    #[tokio::test]
    async fn stranger_is_passed_over_for_another_address_of_mysql() {
        let (ours, other) = (Mariadb::start().await, Mariadb::start().await);
        let (ours, other) = (ours.expect("one"), other.expect("another"));
        for server in [&ours, &other] {
            server.execute("CREATE DATABASE jobs").await.expect("made");
            let made = MysqlStore::init(&server.uri_of("jobs")).await;
            made.unwrap_or_else(|error| panic!("{error}"));
        }
        let (us, stranger) = (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            another(3, ours.port(), &other).await,
        );
        let (nobody, dial) = (IpAddr::V4(Ipv4Addr::new(127, 0, 1, 4)), dial(&ours, "jobs"));
        assert!(dial.open_at(&[us], dial.time_max, "a dial").await.is_ok());
        assert!(
            dial.open_at(&[stranger, us], dial.time_max, "a dial")
                .await
                .is_ok()
        );
        assert_eq!(dial.answered(), Some(us));
        // Whoever else is tried, the stranger is named.
        for addresses in [[stranger, nobody], [nobody, stranger]] {
            let Err(error) = dial.open_at(&addresses, dial.time_max, "a dial").await else {
                panic!("a stranger")
            };
            for said in ["127.0.1.3 is of store", "start this process anew"] {
                assert!(error.message.contains(said), "{error}");
            }
        }
    }

    #[test]
    fn replica_is_no_second_server_that_takes_writes() {
        let seen = |last, store, takes_writes| Seen {
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)),
            store,
            takes_writes,
            server: format!("server {last}"),
        };
        let ours = seen(1, Some(7), true);
        for other in [seen(2, Some(7), false), seen(2, None, false)] {
            assert_eq!(divided(&[ours.clone(), other]), None);
        }
        for other in [
            seen(2, Some(8), false),
            seen(2, Some(7), true),
            seen(2, None, true),
        ] {
            assert!(divided(&[ours.clone(), other.clone()]).is_some(), "{other:?}");
        }
    }
}
