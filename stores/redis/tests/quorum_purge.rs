//! Cleaning up a quorum: what a majority calls unused goes from every member that answers, and no token is
//! forgotten.

use crate::common::{
    Three, give_back, in_each, in_every_member, name, only_the_cleaner_cleans_up, renewal, request, seconds,
    take, three_servers, unused_for_a_day,
};
use crate::connect::LEAST;
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Certainty, Fault, FencingToken, LeaseName, LeasePurge, LeaseStore, Listed, Page,
    Purge, Purged, Purging, Renewed, Ttl,
};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer, eventually_async};

/// How long something is waited for, on a loaded machine.
pub const BOUND: Duration = Duration::from_secs(60);

const OTHER: &str = "0123456789abcdef0123456789abcdef";

pub const JOB: &str = "{tenure}:lease:job";

const REMOVED: &str = "{tenure}:leases:removed";

impl Three {
    pub async fn set(&self, member: usize, fields: &[&str]) {
        self.asked(member, "HSET", &[&[JOB], fields].concat()).await;
    }

    /// In which members the lease "job" has a record.
    pub async fn keepers(&self) -> Vec<usize> {
        let mut keepers = Vec::new();
        for member in 0..3 {
            if !self.record(member, "job").await.is_empty() {
                keepers.push(member);
            }
        }
        keepers
    }

    /// A term of the lease "job" that every member has.
    pub async fn term(&self, asked: &Acquire) -> FencingToken {
        let token = take(&self.store, asked).await.token;
        in_every_member(&self.servers, token).await;
        token
    }

    /// The same, given back, and unused since 1970.
    pub async fn unused(&self, members: impl IntoIterator<Item = usize>) -> FencingToken {
        let asked = request("job", "a", seconds(300));
        let token = self.term(&asked).await;
        give_back(&self.store, &asked, token).await;
        for member in 0..3 {
            let is_told = async || self.record(member, "job").await.contains_key("releasedAt");
            eventually_async(BOUND, "the release in every member", is_told).await;
        }
        for member in members {
            self.set(member, &["expiresAt", "1"]).await;
        }
        token
    }

    pub async fn clean_up(&self, purging: Purging) -> Purged {
        let purged = self.store.purge(&unused_for_a_day(purging)).await;
        purged.expect("a majority answers")
    }

    /// A clean-up finds this, whether it removes it or not.
    pub async fn finds(&self, unused: &[LeaseName]) {
        let looked = self.clean_up(Purging::OnlyLooks).await;
        assert_eq!((looked.unused.as_slice(), looked.removed), (unused, 0));
        let removed = self.clean_up(Purging::Removes).await;
        let count = u64::try_from(unused.len()).expect("few");
        assert_eq!(
            (removed.unused.as_slice(), removed.removed, removed.next),
            (unused, count, None)
        );
    }

    pub async fn listed(&self) -> Vec<LeaseName> {
        let page = Page::first("", 1_000);
        let listed = self.store.list(&page).await.expect("a list").leases;
        let names = listed.into_iter().map(|listed| match listed {
            Listed::Lease(lease) => lease.name,
            Listed::Unreadable { error, .. } => panic!("{error}"),
        });
        names.collect()
    }
}

fn now_ms() -> u128 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_millis()
}

/// A name is counted once, whatever members have it, and nothing else of the server is touched.
#[tokio::test]
async fn what_nobody_uses_goes_from_every_member_and_the_next_token_is_greater() {
    let three = Three::behind_a_proxy(2).await;
    let old = three.unused(0..3).await;
    let held = request("held", "a", seconds(300));
    let token = take(&three.store, &held).await.token;
    in_each(three.servers.iter().map(RedisServer::url), "held", token).await;
    for member in 0..3 {
        let mark = [
            "{tenure}:fence:job",
            "lease",
            "job",
            "token",
            "1",
            "claimedAt",
            "1",
        ];
        three.asked(member, "HSET", &mark).await;
    }
    let before = three.hash(0, "{tenure}:lease:held").await;
    three.finds(&[name("job")]).await;
    assert_eq!(three.keepers().await, [0_usize; 0]);
    assert_eq!(three.listed().await, [name("held")]);
    assert_eq!(three.store.get(&name("job")).await, Ok(None));
    for member in 0..3 {
        assert_eq!(three.hash(member, "{tenure}:fence:job").await.len(), 3, "a mark");
    }
    assert_eq!(three.hash(0, "{tenure}:lease:held").await, before);
    three.finds(&[]).await;
    let renewed = three.store.renew(&[renewal(&held, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let next = take(&three.store, &request("job", "b", seconds(300))).await;
    assert!(next.token > old && next.terms == 1, "{next:?} after {old}");
}

/// For what reason one member keeps a record that nobody has used for long by the others.
#[tokio::test]
async fn what_one_member_has_in_use_stays_in_all() {
    let ahead = (now_ms() + 3_600_000).to_string();
    let now = now_ms().to_string();
    let later = (now_ms() + 300_000).to_string();
    for kept in [
        // Used within the day that was asked for.
        &["expiresAt", now.as_str()][..],
        // A token ahead of its clock, of a member whose clock was ahead.
        &["expiresAt", "1", "generation", &ahead],
        // Nobody can read it.
        &["expiresAt", "1", "ttlMs", "soon"],
        // A candidate that has taken it, and is not confirmed yet.
        &["expiresAt", &later, "unconfirmed", "later", "incarnation", OTHER],
    ] {
        for member in 0..3 {
            let three = Three::behind_a_proxy(2).await;
            three.unused((0..3).filter(|other| *other != member)).await;
            three.set(member, kept).await;
            if kept.contains(&"unconfirmed") {
                three.asked(member, "HDEL", &[JOB, "releasedAt"]).await;
            }
            three.finds(&[]).await;
            assert_eq!(three.keepers().await, [0, 1, 2], "{kept:?}");
        }
    }
}

/// The clock of one member has leapt, or it has missed every renewal: to it the term was over long ago.
#[tokio::test]
async fn term_that_has_run_out_in_a_minority_stays_there_and_is_extended() {
    let mut three = Three::behind_a_proxy(2).await;
    let asked = request("job", "a", seconds(300));
    let token = three.term(&asked).await;
    three.set(2, &["expiresAt", "1"]).await;
    three.finds(&[]).await;
    assert_eq!(three.keepers().await, [0, 1, 2]);
    let renewals = [renewal(&asked, token)];
    let is_brought = async || {
        let renewed = three.store.renew(&renewals).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        three.record(2, "job").await.get("expiresAt").map(String::as_str) != Some("1")
    };
    eventually_async(BOUND, "the term in the member that lost it", is_brought).await;
    three.servers[0].kill();
    let renewed = three.store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

#[tokio::test]
async fn what_a_member_that_is_away_has_goes_at_a_later_clean_up() {
    let mut three = Three::of(RedisOptions::durable(), 2).await;
    let old = three.unused(0..3).await;
    three.servers[2].kill();
    three.finds(&[name("job")]).await;
    let next = take(&three.store, &request("job", "b", Ttl::MIN)).await;
    assert!(next.token > old);
    in_each(
        [0, 1].map(|member| three.servers[member].url()),
        "job",
        next.token,
    )
    .await;
    for member in [0, 1] {
        three.set(member, &["expiresAt", "1"]).await;
    }
    three.finds(&[name("job")]).await;
    three.servers[2].restart().await.expect("restarted");
    let is_back = async || three.listed().await == [name("job")];
    eventually_async(BOUND, "what is left", is_back).await;
    assert_eq!(three.keepers().await, [2]);
    let is_found = async || three.clean_up(Purging::OnlyLooks).await.unused == [name("job")];
    eventually_async(BOUND, "the member that was away", is_found).await;
    three.finds(&[name("job")]).await;
    assert_eq!(three.keepers().await, [0_usize; 0]);
    let last = take(&three.store, &request("job", "c", seconds(300))).await;
    assert!(last.token > next.token);
}

#[tokio::test]
async fn without_a_majority_nothing_is_removed() {
    let mut three = Three::of(RedisOptions::durable(), 2).await;
    three.unused(0..3).await;
    for member in [0, 1] {
        three.servers[member].kill();
    }
    for purging in [Purging::OnlyLooks, Purging::Removes] {
        let error = three.store.purge(&unused_for_a_day(purging)).await;
        let error = error.expect_err("one of three has answered");
        assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
        assert!(error.message.contains("1 of 3"), "{error}");
    }
    for member in [0, 1] {
        three.servers[member].restart().await.expect("restarted");
    }
    assert_eq!(three.keepers().await, [0, 1, 2]);
}

/// It says that nobody uses it, and then its disk is full.
#[tokio::test]
async fn name_that_one_member_could_not_remove_is_not_counted_and_found_again() {
    let three = Three::of(RedisOptions::with("--appendonly yes --appendfsync everysec"), 2).await;
    three.unused(0..3).await;
    three.servers[2].fill_disk().await.expect("a full disk");
    let is_full = async || {
        let told = three.servers[2].ask("SET anything 1").expect("asked");
        told.contains("MISCONF")
    };
    eventually_async(BOUND, "a full disk", is_full).await;
    let purged = three.clean_up(Purging::Removes).await;
    assert_eq!((purged.unused, purged.removed), (vec![name("job")], 0));
    assert_eq!(three.keepers().await, [2]);
    three.servers[2].free_disk().await.expect("room");
    let is_removed = async || three.clean_up(Purging::Removes).await.removed == 1;
    eventually_async(BOUND, "the rest", is_removed).await;
    assert_eq!(three.keepers().await, [0_usize; 0]);
}

/// What a candidate took that died before it was confirmed, in one member alone or beside a term of before.
#[tokio::test]
async fn remains_of_dead_candidates_go_and_the_token_below_them_is_kept() {
    let three = Three::behind_a_proxy(2).await;
    let old = three.unused(0..3).await;
    three.asked(0, "DEL", &[JOB]).await;
    let dead = ["unconfirmed", "later", "incarnation", OTHER, "expiresAt", "1"];
    three.set(1, &dead).await;
    three.asked(1, "HDEL", &[JOB, "releasedAt"]).await;
    three.asked(2, "DEL", &[JOB]).await;
    assert_eq!(three.listed().await, [], "no term");
    three.finds(&[name("job")]).await;
    assert_eq!(three.keepers().await, [0_usize; 0]);
    assert_eq!(three.hash(1, REMOVED).await["token"], old.to_string());
}

/// One member has confirmed a token for an attempt, and no other, and is away while a later term comes and is
/// cleaned up. What it says when the attempt is repeated must be too low for the others.
#[tokio::test]
async fn members_that_cannot_read_what_was_removed_grant_no_new_name_and_say_why() {
    let three = Three::behind_a_proxy(2).await;
    let asked = request("job", "a", seconds(300));
    let token = three.term(&asked).await;
    for member in 0..3 {
        three.asked(member, "HSET", &[REMOVED, "token", "many"]).await;
    }
    let other = request("other", "a", seconds(300));
    let error = three.store.acquire(&other).await.expect_err("granted");
    assert!(error.message.contains(REMOVED), "{error}");
    let renewed = three.store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    for member in 0..3 {
        three
            .asked(member, "HSET", &[REMOVED, "token", &token.to_string()])
            .await;
    }
    assert!(take(&three.store, &other).await.token > token);
}

/// Only what may be older than what was removed is refused.
#[tokio::test]
async fn member_that_was_cleaned_up_takes_in_later_terms_that_it_missed() {
    let three = Three::behind_a_proxy(2).await;
    let low = take(&three.store, &request("other", "a", seconds(300)))
        .await
        .token;
    let asked = request("job", "a", seconds(300));
    let token = three.term(&asked).await;
    three
        .asked(2, "HSET", &[REMOVED, "token", &low.to_string()])
        .await;
    three.asked(2, "DEL", &[JOB]).await;
    let is_brought = async || {
        let renewed = three.store.renew(&[renewal(&asked, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        three.keepers().await == [0, 1, 2]
    };
    eventually_async(BOUND, "the term in the member that missed it", is_brought).await;
}

/// Each name is in one member or two, and the members' pages end at different names.
#[tokio::test]
async fn pages_of_a_clean_up_join_the_names_of_all_members() {
    let three = Three::behind_a_proxy(2).await;
    // A page that holds no name which a clean-up could remove.
    for alien in ["alien-1", "alien-2"] {
        let key = format!("{{tenure}}:lease:{alien}");
        for member in [0, 2] {
            three.asked(member, "HSET", &[&key, "owner", "nobody"]).await;
            three
                .asked(member, "ZADD", &["{tenure}:leases", "0", alien])
                .await;
        }
    }
    let mut names = Vec::new();
    for number in 0..9 {
        let lease = format!("job-{number}");
        let token = take(&three.store, &request(&lease, "a", seconds(300)))
            .await
            .token;
        in_each(three.servers.iter().map(RedisServer::url), &lease, token).await;
        let key = format!("{{tenure}}:lease:{lease}");
        for member in 0..3 {
            match (number + member) % 3 == 0 || (number % 4 == 0 && member == 1) {
                true => three.asked(member, "DEL", &[&key]).await,
                false => three.asked(member, "HSET", &[&key, "expiresAt", "1"]).await,
            }
        }
        names.push(name(&lease));
    }
    for purging in [Purging::OnlyLooks, Purging::Removes] {
        let mut page = Purge {
            limit: 2,
            ..unused_for_a_day(purging)
        };
        let (mut found, mut removed) = (Vec::new(), 0);
        for _page in 0..20 {
            let purged = three.store.purge(&page).await.expect("a page");
            assert!(purged.unused.len() <= 2, "{purged:?}");
            found.extend(purged.unused);
            removed += purged.removed;
            page.after = purged.next;
            if page.after.is_none() {
                break;
            }
        }
        assert_eq!((page.after, &found), (None, &names), "{purging:?}");
        let count = match purging {
            Purging::OnlyLooks => 0,
            Purging::Removes => 9,
        };
        assert_eq!(removed, count);
    }
    assert_eq!(three.clean_up(Purging::OnlyLooks).await.unused, []);
}

/// It is what makes room.
#[tokio::test]
async fn members_without_memory_are_cleaned_up() {
    let three = Three::behind_a_proxy(2).await;
    let old = three.unused(0..3).await;
    let set = |bytes: u32| {
        for server in &three.servers {
            let told = server.ask(&format!("CONFIG SET maxmemory {bytes}"));
            assert_eq!(told.expect("asked"), "+OK");
        }
    };
    set(1);
    let full = three.store.acquire(&request("other", "a", seconds(300))).await;
    assert_eq!(full.expect_err("granted").fault, Fault::Full);
    three.finds(&[name("job")]).await;
    assert_eq!(three.hash(0, REMOVED).await["token"], old.to_string());
}

#[tokio::test]
async fn only_who_may_remove_records_cleans_up_a_quorum() {
    let three = three_servers().await;
    for (member, server) in three.iter().enumerate() {
        // Who lacks it in one member alone is told so, too.
        let service = if member == 1 { "" } else { "+del" };
        for (user, more) in [("service", service), ("cleaner", "+del")] {
            let keys = "~{tenure}:* &{tenure}:changes:*";
            let set = format!("ACL SETUSER {user} on >hunter2 {keys} {LEAST} {more}");
            assert_eq!(server.ask(set.trim()).expect("asked"), "+OK");
        }
    }
    let hosts: Vec<String> = three.iter().map(RedisServer::address).collect();
    let [service, cleaner] =
        ["service", "cleaner"].map(|user| format!("redis+quorum://{user}:hunter2@{}", hosts.join(",")));
    let service = QuorumStore::connect(&service).await.expect("connects");
    let cleaner = QuorumStore::connect(&cleaner).await.expect("connects");
    only_the_cleaner_cleans_up(&service, &cleaner).await;
}

/// Terms come and go, and whatever can be removed is, all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_while_names_are_taken_and_cleaned_up() {
    let three = Three::behind_a_proxy(2).await;
    let everything = Purge {
        unused_for: Duration::ZERO,
        ..unused_for_a_day(Purging::Removes)
    };
    let (mut last, mut removed, mut terms) = (None, 0, 0);
    while removed < 4 {
        let asked = request("job", "a", Ttl::MIN);
        let grant = eventually_async(BOUND, "a term", async || {
            match three.store.acquire(&asked).await {
                Ok(Acquired::Granted(grant)) => Ok(grant),
                told => Err(format!("{told:?}")),
            }
        })
        .await;
        assert!(
            last.is_none_or(|last| grant.token > last),
            "{} after {last:?}",
            grant.token
        );
        last = Some(grant.token);
        terms += 1;
        assert!(terms < 100, "nothing is ever removed");
        // About as long as it takes until it may be removed.
        let until = Instant::now() + Ttl::MIN.duration() * (9 + terms % 3);
        while Instant::now() < until {
            removed += three.store.purge(&everything).await.expect("a clean-up").removed;
        }
    }
}
