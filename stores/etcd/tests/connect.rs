//! Connecting: to the right members or to none, with the reason in one line and never a password.
use crate::common::{Scratch, finding, giving_back, name, put, renewal, request, seconds, take};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use std::time::Duration;
use tenure_core::{
    Certainty, Durability, Fault, Interest, LeaseStore, Released, Renewed, Scope, StoreError, TokenSource,
    Ttl, Verdict,
};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, SelfSigned, eventually_async, free_port};

pub async fn refused(url: &str) -> StoreError {
    let error = EtcdStore::connect(url).await.expect_err("refused");
    assert!(
        !error.message.contains("hunter2") && !error.message.contains('\n'),
        "{error}"
    );
    assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
    error
}

#[tokio::test]
async fn urls_that_cannot_be_read_are_refused_without_their_password() {
    for url in [
        "etcd:",
        "etcd://",
        "etcd://:hunter2@host",
        "etcd://me:hunter2@",
        "etcd://me:hunter2@host:port",
        "etcd://me:hunter2@host:0",
        "etcd://me:hunter2@host:65536",
        "etcd://me:hunter2@ho st",
        "etcd://me:hunter2@[::1",
        "etcd://me:hunter2@a,,b",
        "etcd://me:%ff@host",
        "etcd://me:hunter2@host/a%07b",
        "etcd://me:hunter2@a,b,c,d,e,f,g,h,i,j",
        "etcd://me:hunter2@host?ttl=5",
        "etcd://host?hunter2=1&x",
        "etcd://host?ca=/etc/ca.pem",
        "etcds://host?ca=",
        "etcds://host?cert=/etc/cert.pem",
        "etcds://host?ca=/etc/ca.pem&ca=/etc/other.pem",
        "etcds://me:hunter2@host?ca=/no/such/file.pem",
        "etcd+magic://me:hunter2@a",
        "http://me:hunter2@a",
        // As etcdctl takes them: read as one URL, each order would have leases of its own.
        "etcd://a:2379,etcd://b:2379,etcd://c:2379",
        "etcd://me:hunter2@a,etcd://me:hunter2@b/app",
        "etcd://me:hunter2@a/app,b/app",
    ] {
        let error = refused(url).await;
        assert_eq!(error.fault, Fault::Invalid, "{url}: {error}");
        let is_twice = url.contains("&ca=") || url.matches("://").count() > 1;
        assert_eq!(error.message.contains("twice"), is_twice, "{error}");
        assert_eq!(error.message.contains("%2C"), url.contains("app,"), "{error}");
    }
}

#[tokio::test]
async fn unreachable_members_are_named_without_the_password() {
    let (one, two) = (free_port(), free_port());
    let error = refused(&format!("etcd://user:hunter2@127.0.0.1:{one},127.0.0.1:{two}/x")).await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    for port in [one, two] {
        assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
    }
}

#[tokio::test]
async fn traits_say_what_the_server_grants() {
    // One and a half times the election's timeout, in whole seconds.
    for (settings, shortest) in [("", 1), ("--heartbeat-interval 100 --election-timeout 1000", 2)] {
        let etcd = Etcd::start(EtcdOptions::default().with(settings)).await.unwrap();
        let store = Scratch::on(&etcd.url()).store().await;
        let traits = store.traits();
        assert_eq!(traits.ttl_min, seconds(shortest), "{settings}");
        assert_eq!(traits.token_source, TokenSource::Revision);
        let between = Ttl::from_millis(30_500).unwrap();
        let asked = request("job", "a", between);
        let granted = take(&store, &asked).await;
        assert_eq!(granted.ttl, seconds(31), "rounded up");
        let renewed = store.renew(&[renewal(&asked, granted.token)]).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { ttl, .. }) if ttl == seconds(31)),
            "{renewed:?}"
        );
    }
}

/// Whether this etcd's deposed leaders end sessions that their successors have extended.
fn ends_sessions_early(etcd: &Etcd) -> bool {
    let status = etcd.post(0, "/v3/maintenance/status", "{}").unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let told = status["version"].as_str().unwrap();
    let numbers: Vec<u32> = told.split('.').map(|part| part.parse().unwrap()).collect();
    match numbers[..2] {
        [3, 4] => numbers[2] < 31,
        [3, 5] => numbers[2] < 13,
        _ => false,
    }
}

#[tokio::test]
async fn traits_say_what_the_members_versions_are_worth() {
    let mut etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let early = ends_sessions_early(&etcd);
    let told = |store: &EtcdStore| match store.traits().durability {
        Durability::Safe => String::new(),
        Durability::FenceOnly(why) => why.to_owned(),
    };
    // One that stalls tells nothing, as one that is down.
    let patience = Duration::from_secs(60);
    let all = eventually_async(patience, "the word of each", async || {
        let store = Scratch::on(&etcd.url()).store().await;
        let why = told(&store);
        (!why.contains("did not tell")).then_some(store).ok_or(why)
    })
    .await;
    assert_eq!(told(&all).contains("#15247"), early, "{}", told(&all));
    assert_eq!(told(&all).is_empty(), !early, "{}", told(&all));
    eventually_async(patience, "the word of each", async || {
        for finding in all.examine().await.map_err(|error| error.to_string())? {
            if finding.detail.contains("did not tell") {
                return Err(finding.detail);
            }
            if matches!(finding.subject.as_str(), "version" | "durability") {
                assert_eq!(finding.verdict == Verdict::Warning, early, "{finding:?}");
            }
        }
        Ok(())
    })
    .await;
    // One that is down tells nothing, so that nobody can say what it would do as the leader.
    etcd.kill(2);
    let url = Scratch::on(&etcd.url()).store_url();
    // It may have been the leader: then the others elect one first.
    let fewer = eventually_async(patience, "a leader", || async {
        EtcdStore::connect(&url).await.ok()
    })
    .await;
    assert!(!told(&fewer).is_empty());
    assert_eq!(told(&fewer).contains("did not tell"), !early, "{}", told(&fewer));
}

#[tokio::test]
async fn places_with_other_prefixes_do_not_touch_each_other() {
    let scratch = Scratch::new().await;
    let longer = Scratch {
        prefix: format!("{}/lease", scratch.prefix),
        ..scratch.clone()
    };
    let (store, other) = (scratch.store().await, longer.store().await);
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;
    assert_eq!(other.get(&asked.name).await, Ok(None));
    take(&other, &request("job", "b", seconds(60))).await;
    assert_eq!(
        store.get(&asked.name).await.unwrap().unwrap().holder,
        asked.candidate
    );
}

/// `tenure/` to the key after it.
fn permission(role: &str, kind: &str) -> String {
    let (from, end) = (BASE64.encode("tenure/"), BASE64.encode("tenure0"));
    json!({ "name": role, "perm": { "permType": kind, "key": from, "range_end": end } }).to_string()
}

pub async fn with_users(settings: &str) -> Etcd {
    let etcd = Etcd::start(EtcdOptions::default().with(settings)).await.unwrap();
    let ask = |path: &str, body: &str| {
        let answer = etcd.post(0, path, body).unwrap();
        assert!(answer.contains("header"), "{path}: {answer}");
    };
    for (user, kind) in [
        ("service", "READWRITE"),
        ("reader", "READ"),
        ("root", "READWRITE"),
    ] {
        ask("/v3/auth/role/add", &json!({ "name": user }).to_string());
        ask("/v3/auth/role/grant", &permission(user, kind));
        ask(
            "/v3/auth/user/add",
            &json!({ "name": user, "password": "hunter2@" }).to_string(),
        );
        ask(
            "/v3/auth/user/grant",
            &json!({ "user": user, "role": user }).to_string(),
        );
    }
    // One of the same rights is known by its certificate alone.
    let (user, role) = (SelfSigned::COMMON_NAME, "service");
    let certified = json!({ "name": user, "options": { "no_password": true } });
    ask("/v3/auth/user/add", &certified.to_string());
    ask(
        "/v3/auth/user/grant",
        &json!({ "user": user, "role": role }).to_string(),
    );
    ask("/v3/auth/enable", "{}");
    etcd
}

#[tokio::test]
async fn credentials_and_rights_are_told_apart() {
    let etcd = with_users("").await;
    let address = etcd.address(0);
    for wrong in ["service:hunter2", "nobody:hunter2%40"] {
        let error = refused(&format!("etcd://{wrong}@{address}")).await;
        assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
    }
    let asked = request("job", "a", seconds(60));
    let service = EtcdStore::connect(&format!("etcd://service:hunter2%40@{address}"))
        .await
        .unwrap();
    let token = take(&service, &asked).await.token;
    let renewed = service.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    service
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    let findings = service.examine().await.unwrap();
    let worst = findings.iter().map(|finding| finding.verdict).max();
    assert!(worst < Some(Verdict::Bad), "{findings:?}");
    // From 3.5.28 on, until that was mended, etcd tells how it stands to the role root alone.
    let leader = finding(&findings, "leader");
    assert!(
        leader.verdict == Verdict::Good || leader.detail.contains("root"),
        "{leader:?}"
    );

    let reader = EtcdStore::connect(&format!("etcd://reader:hunter2%40@{address}"))
        .await
        .unwrap();
    let lease = reader.get(&asked.name).await.unwrap().unwrap();
    assert_eq!(lease.token, token);
    let rival = request("other", "b", seconds(60));
    let error = reader.acquire(&rival).await.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Forbidden, Certainty::NotApplied),
        "{error}"
    );
    let error = reader
        .release(&[giving_back(&asked, token)])
        .await
        .remove(0)
        .unwrap_err();
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
    let findings = reader.examine().await.unwrap();
    let privileges = finding(&findings, "privileges");
    assert_eq!(privileges.verdict, Verdict::Bad, "{privileges:?}");
    assert!(
        privileges.repair.as_ref().unwrap().contains("grant-permission"),
        "{privileges:?}"
    );

    // Whoever shows no credentials may not even look.
    let stranger = EtcdStore::connect(&format!("etcd://{address}")).await;
    let error = match stranger {
        Err(error) => error,
        Ok(store) => store.get(&asked.name).await.unwrap_err(),
    };
    assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
}

/// Elections are impossible, and it is said; whoever leads keeps leading, and can give back.
#[tokio::test]
async fn full_etcd_elects_nobody_and_ends_no_term() {
    let options = EtcdOptions::default().with("--quota-backend-bytes 4194304");
    let etcd = Etcd::start(options).await.unwrap();
    let scratch = Scratch::on(&etcd.url());
    let store = scratch.store().await;
    // The disk may be slow to be filled, and to be cleared.
    let ttl = seconds(30);
    let (held, given) = (request("held", "a", ttl), request("given", "a", ttl));
    let (held_token, given_token) = (take(&store, &held).await.token, take(&store, &given).await.token);
    etcd.fill().unwrap();
    let beat = [renewal(&held, held_token), renewal(&given, given_token)];
    // Longer than they were granted for, so that the renewals count.
    for _beat in 0..7 {
        for verdict in store.renew(&beat).await {
            assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    // Of the same ttl, so that there is a session, and what is refused is the write.
    let rival = request("free", "b", ttl);
    let error = store.acquire(&rival).await.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Full, Certainty::Unknown),
        "{error}"
    );
    assert!(
        error.message.contains("\"free\"") && error.message.contains("disarm"),
        "{error}"
    );
    let released = store.release(&[giving_back(&given, given_token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    assert!(store.get(&given.name).await.unwrap().unwrap().released);
    // Somebody who comes now can look, and is told.
    let late = scratch.store().await;
    assert_eq!(late.get(&held.name).await.unwrap().unwrap().token, held_token);
    let findings = late.examine().await.unwrap();
    let space = finding(&findings, "space");
    assert_eq!(space.verdict, Verdict::Bad, "{space:?}");

    let renewed = store.renew(&beat[..1]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    etcd.make_room().unwrap();
    let next = take(&store, &rival).await;
    assert!(next.token > given_token);
    let renewed = store.renew(&beat[..1]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// The certificate is trusted because the URL says so, and by nobody else.
#[tokio::test]
async fn tls_reaches_members_whose_certificate_is_trusted_and_no_other() {
    let certificate = SelfSigned::new("etcd-tls");
    let options = EtcdOptions {
        tls: Some(((&certificate.file).into(), (&certificate.key).into())),
        ..EtcdOptions::default()
    };
    let etcd = Etcd::start(options).await.unwrap();
    let address = etcd.address(0).replace("127.0.0.1", "localhost");
    let trusting = format!("etcds://{address}/secure?ca={}", certificate.file);
    let store = EtcdStore::connect(&trusting).await.unwrap();
    take(&store, &request("job", "a", seconds(60))).await;
    let error = refused(&format!("etcds://{address}/secure")).await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
}

/// Whatever stands where a lease should: it is named, and left.
#[tokio::test]
async fn keys_of_another_program_are_listed_as_such_and_hide_no_other() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let etcd = crate::common::shared().await;
    take(&store, &request("sound", "a", seconds(60))).await;
    put(etcd, 0, &scratch.key("broken", ""), "green");
    put(etcd, 0, &scratch.key("a/../b", ""), "{}");
    put(etcd, 0, &scratch.key("sound", "\tcolour"), "green");
    put(etcd, 0, &scratch.key("nobody", "\tholder"), "{\"ttlMs\":1000}");
    let page = tenure_core::Page::first("", 10);
    let listed = store.list(&page).await.unwrap().leases;
    let shown: Vec<String> = listed
        .iter()
        .map(|one| match one {
            tenure_core::Listed::Lease(lease) => lease.name.to_string(),
            tenure_core::Listed::Unreadable { key, .. } => format!("!{key}"),
        })
        .collect();
    assert_eq!(shown, ["!a/../b", "!broken", "sound"]);
    let error = store
        .acquire(&request("broken", "b", seconds(60)))
        .await
        .unwrap_err();
    assert_eq!(error.fault, Fault::Unreadable, "{error}");
    assert_eq!(store.get(&name("nobody")).await, Ok(None));
}

/// Another program's keys may stand between a lease's own, more of them than a page has room for.
#[tokio::test]
async fn keys_between_those_of_a_lease_cut_it_in_no_list() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let etcd = crate::common::shared().await;
    for sound in ["d", "e"] {
        take(&store, &request(sound, "a", seconds(60))).await;
    }
    for other in ["c//1", "d"] {
        for number in 0..20 {
            let part = format!("\tcolour {number:02}");
            put(etcd, 0, &scratch.key(other, &part), "green");
        }
    }
    for limit in 1..=3 {
        let mut page = tenure_core::Page::first("", limit);
        let mut held = Vec::new();
        loop {
            let found = store.list(&page).await.unwrap();
            held.extend(found.leases.into_iter().map(|one| match one {
                tenure_core::Listed::Lease(lease) => (lease.name.to_string(), lease.occupancy()),
                tenure_core::Listed::Unreadable { error, .. } => panic!("{error}"),
            }));
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let both = ["d", "e"].map(|name| (name.to_owned(), tenure_core::Occupancy::Held));
        assert_eq!(held, both, "{limit}");
    }
}
