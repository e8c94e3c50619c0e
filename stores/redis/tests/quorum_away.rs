//! A quorum of which one member has missed the term, and another is away that has it: whether a majority
//! holds the lease is for the one that is away to say.

use crate::common::{
    Three, giving_back, in_each, in_every_member, name, request, seconds, take, take_in_time, told_held,
};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Certainty, FencingToken, LeaseStore, Listed, Occupancy, Page, Released, StoreError,
};
use tenure_testkit::{Fault, eventually_async};

/// How long something is waited for, on a loaded machine.
const BOUND: Duration = Duration::from_secs(60);

const RECORD: &str = "{tenure}:lease:job";

const OTHER: &str = "0123456789abcdef0123456789abcdef";

/// What the member has that missed the term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Has {
    Nothing,
    TermBefore,
    /// One that a candidate has confirmed in no other member, and that is over.
    LaterTermOfNobody,
}

impl Three {
    /// A term that the last member has, which is away then, and one of the others, but for `missed`.
    async fn with_a_term_in_two(missed: usize, has: Has) -> (Self, Acquire, FencingToken) {
        let mut three = Self::behind_a_proxy(2).await;
        let asked = request("job", "a", seconds(300));
        three.servers[missed].kill();
        let token = take(&three.store, &asked).await.token;
        let present = 1 - missed;
        let have = [present, 2].map(|place| three.servers[place].url());
        in_each(have, "job", token).await;
        three.servers[missed].restart().await.expect("restarted");
        let (before, later) = ("7".to_owned(), (token.number() + 1_000).to_string());
        let has = match has {
            Has::Nothing => None,
            Has::TermBefore => Some(before),
            Has::LaterTermOfNobody => Some(later),
        };
        if let Some(token) = has {
            let mut fields = vec![RECORD.to_owned()];
            for (field, value) in three.record(present, "job").await {
                fields.extend([field, value]);
            }
            fields.extend(["incarnation", OTHER, "expiresAt", "1", "generation", &token].map(str::to_owned));
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            three.asked(missed, "HSET", &fields).await;
        }
        three.last_goes_away().await;
        (three, asked, token)
    }

    /// Until the two others are reached, and it is not.
    async fn last_goes_away(&self) {
        self.proxy.set(Fault::Refuse);
        self.proxy.cut_connections();
        let reached = async || {
            let _silent = self.store.get(&name("job")).await;
            let other = name("other");
            self.store.get(&other).await.map(drop)
        };
        eventually_async(BOUND, "the members that are not away", reached).await;
    }
}

fn everything() -> Page {
    Page::first("", 10)
}

/// Who looks for what an attempt has left, or for the lease of a process that was killed, would give nothing
/// back; who stands by would ask again and again.
#[tokio::test]
async fn lease_that_a_majority_may_hold_is_shown_as_held_and_nobody_is_told_otherwise() {
    for has in [Has::Nothing, Has::TermBefore, Has::LaterTermOfNobody] {
        for missed in [0, 1] {
            let (three, asked, token) = Three::with_a_term_in_two(missed, has).await;
            let held = (token, asked.candidate.incarnation, Occupancy::Held);
            let shown = three.lease(&asked.name).await;
            assert_eq!(
                (shown.token, shown.holder.incarnation, shown.occupancy()),
                held,
                "{has:?} in member {missed}"
            );
            let listed = three.store.list(&everything()).await.expect("a list").leases;
            let [Listed::Lease(listed)] = &listed[..] else {
                panic!("{listed:?}")
            };
            assert_eq!(
                (listed.token, listed.holder.incarnation, listed.occupancy()),
                held,
                "{has:?} in member {missed}"
            );
            // All at once, then one first.
            for _ in 0..2 {
                let lease = told_held(&three.store, &request("job", "b", seconds(300))).await;
                assert_eq!(
                    (lease.token, lease.occupancy()),
                    (token, Occupancy::Held),
                    "{has:?} in member {missed}"
                );
            }
            let released = three.store.release(&[giving_back(&asked, token)]).await.remove(0);
            assert_eq!(released, Ok(Released::Vacated), "{has:?} in member {missed}");
            let next = take_in_time(&three.store, &request("job", "b", seconds(300))).await;
            assert!(next.token > token, "{has:?} in member {missed}: {next:?}");
        }
    }
}

/// The member that is away makes a majority with either. Who asks again is told that nobody knows, and not
/// that another has it: it would leave its own term to run out.
#[tokio::test]
async fn lease_that_either_of_two_may_hold_is_told_as_nobodys_until_it_is_known() {
    let three = Three::behind_a_proxy(2).await;
    let asked = request("job", "a", seconds(300));
    let grant = take(&three.store, &asked).await;
    in_every_member(&three.servers, grant.token).await;
    three
        .asked(0, "HSET", &[RECORD, "incarnation", OTHER, "generation", "7"])
        .await;
    three.last_goes_away().await;
    let unknown = |error: &StoreError| error.message.contains("job");
    let shown = three.store.get(&asked.name).await;
    assert!(shown.as_ref().is_err_and(unknown), "{shown:?}");
    let listed = three.store.list(&everything()).await.expect("a list").leases;
    let [Listed::Unreadable { key, error }] = &listed[..] else {
        panic!("{listed:?}")
    };
    assert_eq!((key.as_str(), Err(error.clone())), ("job", shown));
    for _ in 0..2 {
        let again = three.store.acquire(&asked).await;
        let is_unknown = |error: &StoreError| unknown(error) && error.certainty == Certainty::Unknown;
        assert!(again.as_ref().is_err_and(is_unknown), "{again:?}");
        let rival = three.store.acquire(&request("job", "b", seconds(300))).await;
        assert!(rival.as_ref().is_err_and(unknown), "{rival:?}");
    }
    three.proxy.heal();
    let again = eventually_async(BOUND, "the term", async || {
        match three.store.acquire(&asked).await {
            Ok(Acquired::Granted(again)) => Ok(again),
            told => Err(format!("{told:?}")),
        }
    })
    .await;
    assert_eq!((again.token, again.again), (grant.token, true));
    let shown = three.lease(&asked.name).await;
    assert_eq!((shown.token, shown.occupancy()), (grant.token, Occupancy::Held));
}
