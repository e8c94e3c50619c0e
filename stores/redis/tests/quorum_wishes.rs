//! Wishes in a quorum: they are a term's, and no candidate's.

use crate::common::{
    connection, giving_back, in_every_member, renewal, request, seconds, take, three_servers,
};
use tenure_core::{Acquire, Ask, Asked, FencingToken, LeaseStore, Released, Renewed, Wish};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::RedisServer;

/// Three members and a term that all have.
struct Three {
    servers: Vec<RedisServer>,
    store: QuorumStore,
    held: Acquire,
    token: FencingToken,
}

impl Three {
    async fn start() -> Self {
        let servers = three_servers().await;
        let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
        let store = QuorumStore::connect(&format!("redis+quorum://{}", hosts.join(",")))
            .await
            .expect("the quorum connects");
        let held = request("job", "a", seconds(300));
        let token = take(&store, &held).await.token;
        in_every_member(&servers, token).await;
        Self {
            servers,
            store,
            held,
            token,
        }
    }

    fn wish(&self) -> Ask {
        Ask {
            name: self.held.name.clone(),
            token: self.token,
        }
    }

    /// What a candidate leaves in a member where the term had run out, as the member had missed its renewals.
    async fn candidacy(&self, member: usize, candidate: &Acquire) {
        self.set(
            member,
            &[
                ("unconfirmed", "later"),
                ("owner", candidate.candidate.id.as_str()),
                ("incarnation", &candidate.candidate.incarnation.to_string()),
                ("attempt", &candidate.attempt.to_string()),
            ],
        )
        .await;
    }

    async fn set(&self, member: usize, fields: &[(&str, &str)]) {
        let set = redis::cmd("HSET")
            .arg("{tenure}:lease:job")
            .arg(fields)
            .to_owned();
        let mut member = connection(&self.servers[member].url()).await;
        let _new: i64 = set.query_async(&mut member).await.expect("the test can ask");
    }

    /// What a holder hears who takes the lease now.
    async fn heard_by_next(&self, next: &Acquire) -> Result<Renewed, tenure_core::StoreError> {
        let released = self.store.release(&[giving_back(&self.held, self.token)]).await;
        assert_eq!(released[0], Ok(Released::Vacated));
        let token = take(&self.store, next).await.token;
        // By all members, so that each is heard.
        self.store.renew(&[renewal(next, token)]).await.remove(0)
    }
}

fn nothing_is_wished(of: &Acquire) -> Result<Renewed, tenure_core::StoreError> {
    Ok(Renewed::Extended {
        ttl: of.ttl,
        wish: Wish::Nothing,
    })
}

#[tokio::test]
async fn wish_for_a_term_is_not_heard_by_the_candidate_that_follows_it() {
    let three = Three::start().await;
    let next = request("job", "b", seconds(300));
    three.candidacy(2, &next).await;
    assert_eq!(
        three.store.ask(&three.wish()).await,
        Ok(Asked::Noted),
        "two hold it"
    );
    assert_eq!(three.heard_by_next(&next).await, nothing_is_wished(&next));
}

/// As scripts of earlier versions left it there.
#[tokio::test]
async fn wish_that_stands_in_a_candidacy_ends_with_it() {
    let three = Three::start().await;
    let next = request("job", "b", seconds(300));
    three.candidacy(2, &next).await;
    three.set(2, &[("stepDownAskedAt", "1")]).await;
    assert_eq!(three.heard_by_next(&next).await, nothing_is_wished(&next));
}

#[tokio::test]
async fn wish_for_a_term_that_a_majority_has_no_longer_is_refused() {
    let three = Three::start().await;
    let next = request("job", "b", seconds(300));
    for member in [0, 2] {
        three.candidacy(member, &next).await;
    }
    assert_eq!(three.store.ask(&three.wish()).await, Ok(Asked::NotHeld));
}

/// A server that left a quorum with a candidacy in it, and is used alone since.
#[tokio::test]
async fn term_on_one_server_after_a_candidacy_in_a_quorum_can_be_asked() {
    let three = Three::start().await;
    three.candidacy(0, &request("job", "b", seconds(300))).await;
    three.set(0, &[("expiresAt", "1")]).await;
    let removed = three.servers[0].ask("DEL {tenure}:quorum");
    assert_eq!(removed.expect("asked"), ":1");
    let alone = RedisStore::connect(&three.servers[0].url())
        .await
        .expect("the server");
    let holder = request("job", "c", seconds(300));
    let token = take(&alone, &holder).await.token;
    let wish = Ask {
        name: holder.name.clone(),
        token,
    };
    assert_eq!(alone.ask(&wish).await, Ok(Asked::Noted));
    let renewed = alone.renew(&[renewal(&holder, token)]).await.remove(0);
    let asked = Renewed::Extended {
        ttl: holder.ttl,
        wish: Wish::StepDown,
    };
    assert_eq!(renewed, Ok(asked));
}
