//! What stands among the names of leases and is none: it ends no list.

use crate::common::{connection, in_each, request, seconds, take, three_servers};
use tenure_core::{LeaseStore, Listed, Occupancy, Page};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{RedisOptions, RedisServer};

const LEASES: [&str; 3] = ["b", "c", "y"];

/// Each has a record but those after "d", as of names that were purged.
const STRANGE: [&[u8]; 9] = [
    b"a//1", b"a//2", b"c//1", b"c//2", b"c\xff", b"d//1", b"d//2", b"d//3", b"z//1",
];

#[tokio::test]
async fn what_is_no_name_ends_no_list_of_one_server() {
    let server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    let store = RedisStore::connect(&server.url()).await.expect("connects");
    for name in LEASES {
        take(&store, &request(name, "a", seconds(60))).await;
    }
    add_strange(&server).await;
    is_whole(&store).await;
}

#[tokio::test]
async fn what_is_no_name_ends_no_list_of_a_quorum() {
    let servers = three_servers().await;
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("connects");
    for name in LEASES {
        take(&store, &request(name, "a", seconds(60))).await;
    }
    for server in &servers {
        add_strange(server).await;
    }
    is_whole(&store).await;
}

/// A member was away when some of them were taken, and another has what became of no term: their pages end
/// elsewhere.
#[tokio::test]
async fn leases_that_a_member_lacks_are_listed_once_and_held() {
    let servers = three_servers().await;
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("connects");
    let asked = async |member: usize, command: &str, words: &[&str]| {
        let mut member = connection(&servers[member].url()).await;
        let asked = redis::cmd(command).arg(words).to_owned();
        let _done: i64 = asked.query_async(&mut member).await.expect("the test can ask");
    };
    let mut names = Vec::new();
    for number in 0..12 {
        let lease = format!("job-{number:02}");
        let token = take(&store, &request(&lease, "a", seconds(300))).await.token;
        in_each(servers.iter().map(RedisServer::url), &lease, token).await;
        let key = format!("{{tenure}}:lease:{lease}");
        match number {
            // A candidacy in one member, which is no term.
            0 | 1 | 5 => {
                asked(0, "HSET", &[&key, "unconfirmed", "first"]).await;
                asked(1, "DEL", &[&key]).await;
                asked(2, "DEL", &[&key]).await;
                continue;
            }
            _ => asked(number % 3, "DEL", &[&key]).await,
        }
        names.push(lease);
    }
    for limit in 1..=5 {
        let mut page = Page::first("", limit);
        let mut listed = Vec::new();
        loop {
            let found = store.list(&page).await.expect("a page");
            for one in found.leases {
                let Listed::Lease(lease) = one else {
                    panic!("{limit}: {one:?}")
                };
                assert_eq!(lease.occupancy(), Occupancy::Held, "{limit}: {lease:?}");
                listed.push(lease.name.to_string());
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, names, "{limit}");
    }
}

async fn add_strange(server: &RedisServer) {
    let mut connection = connection(&server.url()).await;
    for name in STRANGE {
        let index = redis::cmd("ZADD")
            .arg("{tenure}:leases")
            .arg(0)
            .arg(name)
            .to_owned();
        let _added: i64 = index
            .query_async(&mut connection)
            .await
            .expect("the test can ask");
        if name.starts_with(b"d") {
            continue;
        }
        let key = [b"{tenure}:lease:".as_slice(), name].concat();
        let record = redis::cmd("HSET").arg(key).arg("colour").arg("green").to_owned();
        let _set: i64 = record
            .query_async(&mut connection)
            .await
            .expect("the test can ask");
    }
}

/// Whatever the length of a page, all leases are listed once, and so is what is none.
async fn is_whole(store: &impl LeaseStore) {
    for limit in 1..=12 {
        let mut page = Page::first("", limit);
        let (mut leases, mut strange) = (Vec::new(), 0);
        loop {
            let found = store.list(&page).await.expect("a page");
            assert!(found.leases.len() <= usize::from(limit), "{limit}: {found:?}");
            for one in found.leases {
                match one {
                    Listed::Lease(lease) => leases.push(lease.name.to_string()),
                    Listed::Unreadable { .. } => strange += 1,
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(leases, LEASES, "{limit}");
        assert_eq!(strange, 6, "{limit}");
    }
}
