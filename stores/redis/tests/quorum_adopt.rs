//! Members of a quorum that missed a term, or lost it while they were away: renewals bring it to them.

use crate::common::{
    Record, Three, given_back_in_each, giving_back, in_every_member, renewal, request, seconds, take,
    told_held,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, FencingToken, LeaseStore, Occupancy, Page, Released, Renew, Renewed};
use tenure_redis::RedisStore;
use tenure_testkit::{RedisServer, RequestFault, eventually_async};

/// How long something is waited for, on a loaded machine.
const BOUND: Duration = Duration::from_secs(60);

const OTHER: &str = "0123456789abcdef0123456789abcdef";

impl Three {
    /// A term of the lease "job" that has a predecessor and that every member has.
    async fn second_term(&self, asked: &Acquire) -> FencingToken {
        let before = request("job", "before", seconds(300));
        let token = take(&self.store, &before).await.token;
        in_every_member(&self.servers, token).await;
        let released = self.store.release(&[giving_back(&before, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        given_back_in_each(self.servers.iter().map(RedisServer::url), "job").await;
        let token = take(&self.store, asked).await.token;
        in_every_member(&self.servers, token).await;
        token
    }

    /// Renews until a member holds these terms.
    async fn brought(&self, member: usize, renewals: &[Renew]) {
        eventually_async(BOUND, "the terms in a member that missed them", async || {
            for renewed in self.store.renew(renewals).await {
                assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            }
            // It is brought behind the answer.
            tokio::time::sleep(Duration::from_millis(20)).await;
            for renewal in renewals {
                if !has(&self.record(member, renewal.name.as_str()).await, renewal.token) {
                    return false;
                }
            }
            true
        })
        .await;
    }

    async fn is_held(&self, asked: &Acquire, token: FencingToken) {
        let lease = self.lease(&asked.name).await;
        assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Held));
        told_held(&self.store, &request(asked.name.as_str(), "rival", seconds(300))).await;
    }
}

fn key(lease: &str) -> String {
    format!("{{tenure}}:lease:{lease}")
}

/// Whether a member holds this term.
fn has(record: &Record, token: FencingToken) -> bool {
    let is_free = |record: &Record| {
        let over = record.get("expiresAt").map(String::as_str) == Some("1");
        over || record.contains_key("releasedAt") || record.contains_key("unconfirmed")
    };
    record.get("generation") == Some(&token.to_string()) && !is_free(record)
}

/// What a member has of a term that it missed.
#[derive(Clone, Copy, Debug)]
enum Missed {
    /// It was away when the term began, and has never heard of the lease.
    Everything,
    /// The term before is the last that it knows.
    Beginning,
    /// It was away for longer than the ttl.
    Renewals,
    /// It was taken there, and its confirmation did not come.
    Confirmation,
    /// The same a moment ago: what was taken has not run out.
    ConfirmationOfNow,
    /// Somebody else's candidacy that is over.
    Candidacy,
    /// The same, of one that found here that the term had run out, and elsewhere that it goes on.
    CandidacyAfterIt,
}

impl Missed {
    async fn by(self, three: &Three, member: usize) {
        let key = key("job");
        let fields: &[&str] = match self {
            Self::Everything => return three.asked(member, "DEL", &[&key]).await,
            Self::Beginning => &[
                "incarnation",
                OTHER,
                "generation",
                "7",
                "releasedAt",
                "1",
                "expiresAt",
                "1",
            ],
            Self::Renewals => &["expiresAt", "1"],
            Self::Confirmation => &["generation", "7", "unconfirmed", "later", "expiresAt", "1"],
            Self::ConfirmationOfNow => &["generation", "7", "unconfirmed", "later"],
            Self::CandidacyAfterIt => {
                three.asked(member, "HSET", &[&key, "expiresAt", "1"]).await;
                let rival = request("job", "rival", seconds(300));
                let found = three.store.acquire(&rival).await;
                assert!(matches!(found, Ok(Acquired::Held(_))), "{found:?}");
                if !three.record(member, "job").await.contains_key("unconfirmed") {
                    // It has asked another member first, and nobody else then.
                    let token = three.record(member, "job").await["generation"].clone();
                    let fields = [
                        &key,
                        "incarnation",
                        OTHER,
                        "unconfirmed",
                        "later",
                        "previousGeneration",
                        &token,
                        "previousEnd",
                        "expired",
                        "expiresAt",
                        "1",
                    ];
                    three.asked(member, "HSET", &fields).await;
                }
                return;
            }
            Self::Candidacy => &[
                "incarnation",
                OTHER,
                "generation",
                "7",
                "unconfirmed",
                "later",
                "expiresAt",
                "1",
            ],
        };
        three
            .asked(member, "HSET", &[&[key.as_str()], fields].concat())
            .await;
    }
}

/// Each member is away once, and there is always a majority.
#[tokio::test]
async fn members_that_are_away_one_after_the_other_end_no_term() {
    for missed in [
        Missed::Everything,
        Missed::Beginning,
        Missed::Renewals,
        Missed::Confirmation,
        Missed::ConfirmationOfNow,
        Missed::Candidacy,
        Missed::CandidacyAfterIt,
    ] {
        let mut three = Three::behind_a_proxy(2).await;
        let asked = request("job", "a", seconds(300));
        let token = three.second_term(&asked).await;
        let renewals = [renewal(&asked, token)];
        let all = three.record(0, "job").await;
        for away in [2, 1] {
            missed.by(&three, away).await;
            three.brought(away, &renewals).await;
            let record = three.record(away, "job").await;
            let same = [
                "owner",
                "incarnation",
                "attempt",
                "terms",
                "ttlMs",
                "note",
                "previousOwner",
                "previousGeneration",
                "previousEnd",
            ];
            for field in same {
                assert_eq!(record.get(field), all.get(field), "{missed:?}: {field}");
            }
            // One clock: what is told as how long ago it was comes to about the same time.
            for field in ["createdAt", "acquiredAt", "previousAt"] {
                let [here, there] =
                    [&record, &all].map(|record| record[field].parse::<u64>().expect("a time"));
                assert!(
                    here.abs_diff(there) < 60_000,
                    "{missed:?}: {field} is {here}, not {there}"
                );
            }
        }
        three.servers[0].kill();
        let renewed = three.store.renew(&renewals).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{missed:?}: {renewed:?}"
        );
        three.is_held(&asked, token).await;
        let released = three.store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated), "{missed:?}");
    }
}

/// All of a batch, and then nothing more is sent than the renewals.
#[tokio::test]
async fn member_that_forgot_many_terms_has_them_all_back_at_once() {
    let three = Three::behind_a_proxy(2).await;
    let mut renewals = Vec::new();
    for number in 0..200 {
        let asked = request(&format!("job-{number:03}"), "a", seconds(300));
        renewals.push(renewal(&asked, take(&three.store, &asked).await.token));
    }
    three.asked(2, "FLUSHALL", &[]).await;
    three.brought(2, &renewals).await;
    // By its index it is asked what there is.
    let alone = RedisStore::connect(&three.servers[2].url())
        .await
        .expect("a member");
    let page = Page::first("", 1_000);
    let listed = alone.list(&page).await.expect("a list").leases;
    assert_eq!(listed.len(), renewals.len());
    // What was brought by several renewals is all there by now.
    let requests = || three.proxy.counts().requests;
    let mut quiet = 0;
    while quiet != requests() {
        quiet = requests();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for _ in 0..3 {
        three.store.renew(&renewals).await;
    }
    eventually_async(BOUND, "the renewals", async || requests() >= quiet + 3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(requests(), quiet + 3, "a request beside the renewals");
}

/// What became of the term before it was brought to the member, which comes late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meanwhile {
    Released,
    /// In the member it was never confirmed, until it was given back.
    ReleasedUnconfirmed,
    NextTerm,
    /// The same, but the member has heard nothing of it.
    ReleasedUnheard,
    NextTermUnheard,
    /// This member alone has something that is not for a term to write over.
    Has(&'static [&'static str]),
}

const MEANWHILE: [Meanwhile; 9] = [
    Meanwhile::Released,
    Meanwhile::ReleasedUnconfirmed,
    Meanwhile::NextTerm,
    Meanwhile::ReleasedUnheard,
    Meanwhile::NextTermUnheard,
    // A later token, though it is over, as of a candidate that came no further.
    Meanwhile::Has(&[
        "incarnation",
        OTHER,
        "generation",
        "200000000000000",
        "expiresAt",
        "1",
    ]),
    // A later attempt of the same process.
    Meanwhile::Has(&["attempt", "2", "generation", "7", "expiresAt", "1"]),
    // A candidate that knows the token already, and has let go.
    Meanwhile::Has(&["incarnation", OTHER, "unconfirmed", "later", "expiresAt", "1"]),
    // A candidate that is in the middle of it.
    Meanwhile::Has(&["incarnation", OTHER, "generation", "7", "unconfirmed", "later"]),
];

/// How late it is at first; later, where the machine was too slow for it.
const LATE: Duration = Duration::from_millis(1_500);

#[tokio::test]
async fn term_that_is_brought_late_revives_nothing_and_ends_no_later_one() {
    for meanwhile in MEANWHILE {
        let mut late = LATE;
        while !is_harmless(meanwhile, late).await {
            late *= 2;
            assert!(late < BOUND, "the machine is too slow");
        }
    }
}

/// Not where it came before what is to come before it.
async fn is_harmless(meanwhile: Meanwhile, late: Duration) -> bool {
    let three = Three::behind_a_proxy(2).await;
    let asked = request("job", "a", seconds(300));
    let token = three.second_term(&asked).await;
    let renewals = [renewal(&asked, token)];
    let renewed = three.store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let began = Instant::now();
    // The member knows the script of renewals by now, and not the one by which the term is brought.
    three
        .proxy
        .next_commands(1, "EVAL", RequestFault::DuplicateLater(late));
    three.asked(2, "DEL", &[&key("job")]).await;
    three.brought(2, &renewals).await;
    assert_eq!(three.proxy.faults_left(), 0, "nothing is late");

    let next = request("job", "next", seconds(300));
    let mut held = token;
    if let Meanwhile::Has(fields) = meanwhile {
        three
            .asked(2, "HSET", &[&[key("job").as_str()], fields].concat())
            .await;
    } else {
        if meanwhile == Meanwhile::ReleasedUnconfirmed {
            let fields = [&key("job"), "generation", "7", "unconfirmed", "later"];
            three.asked(2, "HSET", &fields).await;
        }
        let released = three.store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated), "{meanwhile:?}");
        if matches!(meanwhile, Meanwhile::NextTerm | Meanwhile::NextTermUnheard) {
            given_back_in_each(three.servers.iter().map(RedisServer::url), "job").await;
            held = take(&three.store, &next).await.token;
        }
        for member in 0..3 {
            let is_told = async || {
                let record = three.record(member, "job").await;
                match held == token {
                    true => record.contains_key("releasedAt"),
                    false => has(&record, held),
                }
            };
            eventually_async(BOUND, "what came after the term, in every member", is_told).await;
        }
    }
    let unheard = matches!(meanwhile, Meanwhile::ReleasedUnheard | Meanwhile::NextTermUnheard);
    if unheard {
        three.asked(2, "DEL", &[&key("job")]).await;
    }
    let before = three.record(2, "job").await;
    if began.elapsed() > late / 2 {
        return false;
    }
    let arrived = async || three.proxy.counts().duplicated == 1;
    eventually_async(BOUND, "the duplicate", arrived).await;
    let after = three.record(2, "job").await;
    match unheard {
        // For one ttl it keeps this member from others, and not a majority.
        true => assert!(has(&after, token), "{meanwhile:?}: {after:?}"),
        false => assert_eq!(after, before, "{meanwhile:?}"),
    }
    match meanwhile {
        Meanwhile::Released | Meanwhile::ReleasedUnconfirmed | Meanwhile::ReleasedUnheard => {
            let lease = three
                .store
                .get(&asked.name)
                .await
                .expect("a read")
                .expect("a record");
            assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Vacant));
            let grant = take(&three.store, &next).await;
            assert!(
                grant.token > token && grant.terms == 3,
                "{meanwhile:?}: {grant:?}"
            );
        }
        Meanwhile::NextTerm | Meanwhile::NextTermUnheard => {
            three.is_held(&next, held).await;
            let renewed = three.store.renew(&[renewal(&next, held)]).await.remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            let lost = three.store.renew(&renewals).await.remove(0);
            assert!(matches!(lost, Ok(Renewed::Lost(_))), "{meanwhile:?}: {lost:?}");
        }
        Meanwhile::Has(_) => three.is_held(&asked, token).await,
    }
    true
}
