//! Somebody sets the clocks of members of a quorum: a minority's end no lease and hold nobody up, a
//! majority's are one server's.

use crate::common::guess::had;
use crate::common::{
    BOUND, connection, giving_back, granted, hosts, quorum_at, renewal, request, seconds, take,
};
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::{Acquired, LeaseStore, Released, Renewed, Ttl};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer, ServerClock, eventually_async};

const HOUR: f64 = 3_600.0;

/// How many seconds a clock may be from what was set, on a loaded machine.
const CLOSE: f64 = 5.0;

/// Five members, each with a clock of its own.
struct Clocked {
    clocks: Vec<ServerClock>,
    servers: Vec<RedisServer>,
}

impl Clocked {
    async fn start() -> Self {
        let (mut clocks, mut servers) = (Vec::new(), Vec::new());
        for _member in 0..5 {
            let clock = ServerClock::new().expect("the library is there");
            let server = RedisServer::start(RedisOptions::durable().by(&clock)).await;
            servers.push(server.expect("a server"));
            clocks.push(clock);
        }
        Self { clocks, servers }
    }

    async fn store(&self) -> QuorumStore {
        quorum_at(&hosts(&self.servers)).await
    }

    /// Sets the clocks of the first so many members, and waits until they go by it.
    async fn set(&self, members: usize, seconds: f64) {
        for (clock, server) in self.clocks.iter().zip(&self.servers).take(members) {
            clock.set_ahead(seconds).expect("set");
            eventually_async(BOUND, "the clock that was set", async || {
                (shown(server).await - seconds).abs() < CLOSE
            })
            .await;
        }
    }

    /// The quorum, and a majority whose clocks a test sets at once; the others stay right.
    async fn stepped(&self) -> Stepped<QuorumStore, impl Fn(f64), impl AsyncFn() -> f64> {
        const MAJORITY: usize = 3;
        let (clocks, servers) = (&self.clocks[..MAJORITY], &self.servers[..MAJORITY]);
        Stepped {
            store: self.store().await,
            set: move |ahead| {
                clocks
                    .iter()
                    .for_each(|clock| clock.set_ahead(ahead).expect("set"))
            },
            // Nothing while they differ: some of them have not read yet what was set.
            shown: async move || {
                let first = shown(&servers[0]).await;
                for server in &servers[1..] {
                    if (shown(server).await - first).abs() > CLOSE {
                        return f64::INFINITY;
                    }
                }
                first
            },
        }
    }
}

async fn shown(server: &RedisServer) -> f64 {
    let asked = redis::cmd("TIME")
        .query_async(&mut connection(&server.url()).await)
        .await;
    let (seconds, micros): (u64, u64) = asked.expect("the test can ask");
    ahead(seconds * 1000 + micros / 1000)
}

/// To two of five the term was over long ago: the other three hold it, and bring it back to them.
#[tokio::test]
async fn clocks_of_a_minority_set_forward_end_no_lease() {
    let clocked = Clocked::start().await;
    let (ours, others) = (clocked.store().await, clocked.store().await);
    let (asked, rival) = (
        request("job", "a", seconds(300)),
        request("job", "b", seconds(300)),
    );
    let token = take(&ours, &asked).await.token;
    let refused = async || {
        let answer = others.acquire(&rival).await;
        assert!(matches!(answer, Ok(Acquired::Held(_))), "{answer:?}");
    };
    let extended = async || {
        let renewed = ours.renew(&[renewal(&asked, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    };
    clocked.set(2, HOUR).await;
    for _time in 0..3 {
        refused().await;
        extended().await;
    }
    // They were given the term by the clock that they have now, which goes back over it.
    clocked.set(2, 0.0).await;
    refused().await;
    extended().await;
    let released = ours.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let next = take(&others, &rival).await;
    assert!(next.token > token, "{next:?}");
}

/// To two of five a dead holder's term lasts an hour more.
#[tokio::test]
async fn clocks_of_a_minority_set_back_hold_nobody_up() {
    let clocked = Clocked::start().await;
    let (ours, others) = (clocked.store().await, clocked.store().await);
    let asked = request("job", "a", Ttl::MIN);
    let token = take(&ours, &asked).await.token;
    clocked.set(2, -HOUR).await;
    let rival = request("job", "b", seconds(300));
    let next = eventually_async(BOUND, "the next term", async || {
        match others.acquire(&rival).await {
            Ok(answer @ Acquired::Granted(_)) => Ok(granted(answer)),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert!(next.token > token, "{next:?}");
    let late = ours.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(!matches!(late, Ok(Renewed::Extended { .. })), "{late:?}");
}

/// What they are ahead by is in no token: that would stay above every clock, and a fence elsewhere would
/// refuse all that follow, too.
#[tokio::test]
async fn clocks_of_a_minority_far_ahead_move_no_token() {
    let clocked = Clocked::start().await;
    let store = clocked.store().await;
    clocked.set(2, 48.0 * HOUR).await;
    let mut asked = request("job", "a", seconds(300));
    let mut before = 0;
    for _time in 0..3 {
        let grant = had(&store, &clocked.servers, &mut asked).await;
        let token = grant.token.number();
        let is_ahead = ahead(token);
        assert!(is_ahead < HOUR && token > before, "{is_ahead} s ahead: {grant:?}");
        before = token;
    }
}

/// As after a sleep of the machine of who guesses, of which it may know nothing: the members do.
#[tokio::test]
async fn no_term_follows_by_a_token_that_is_further_behind_the_clocks_than_it_may_be() {
    let clocked = Clocked::start().await;
    let store = clocked.store().await;
    let mut asked = request("job", "a", seconds(300));
    let before = had(&store, &clocked.servers, &mut asked).await;
    clocked.set(5, HOUR).await;
    let grant = take(&store, &asked).await;
    let is_ahead = ahead(grant.token.number());
    assert!(
        is_ahead > HOUR - CLOSE,
        "{is_ahead} s ahead: {grant:?} after {before:?}"
    );
}

#[tokio::test]
async fn clocks_of_a_majority_set_forward_end_a_lease_early_and_its_term_for_good() {
    let clocked = Clocked::start().await;
    let stepped = clocked.stepped().await;
    stepped
        .clock_set_forward_ends_a_lease_early_and_its_term_for_good()
        .await;
}

#[tokio::test]
async fn clocks_of_a_majority_set_back_let_no_token_fall_and_their_holder_renew_and_leave() {
    let clocked = Clocked::start().await;
    let stepped = clocked.stepped().await;
    stepped
        .clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave()
        .await;
}
