//! What sessions are set to by their server changes neither decisions nor answers.
use crate::common::{Scratch, by_procedures, family, giving_back, renewal, request, seconds, take};
use crate::setup::rewriting;
use mysql_async::Row;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_core::{
    Acquired, Certainty, Claimed, Fault, Fence, LeasePurge as _, LeaseStore, Leases, Listed, Note, Page,
    Purge, Purging, Released, Renewed, ResourceName, Term,
};
use tenure_mysql::MysqlFence;
use tenure_testkit::{Mariadb, SqlFamily};

/// Where the server wants every session to speak latin1, which has no such letters: what was granted is not
/// told as unread.
#[tokio::test]
async fn names_are_answered_as_they_are_where_sessions_speak_another_character_set() {
    let settings: &[&str] = match family() {
        SqlFamily::Mariadb => &[
            "character-set-client-handshake=OFF",
            "character-set-server=latin1",
        ],
        // Sessions cannot be made to.
        SqlFamily::Mysql => &["character-set-server=latin1"],
    };
    let server = Mariadb::with_settings(settings).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let mut asked = request("Größe/租约", "máquina/机", seconds(60));
    asked.note = Note::new("für Łukasz").unwrap();
    let grant = take(&store, &asked).await;
    assert!(take(&store, &asked).await.again);
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let lease = store.get(&asked.name).await.unwrap().unwrap();
    assert_eq!(
        (&lease.holder, &lease.note),
        (&asked.candidate, &asked.note),
        "{lease:?}"
    );
    let page = Page::first("Größe/", 10);
    let page = store.list(&page).await.unwrap();
    assert!(
        matches!(&page.leases[..], [Listed::Lease(listed)] if listed.name == asked.name),
        "{page:?}"
    );
    let mut rival = request("Größe/租约", "rival", seconds(60));
    let held = store.acquire(&rival).await;
    assert!(
        matches!(&held, Ok(Acquired::Held(lease)) if lease.holder == asked.candidate),
        "{held:?}"
    );
    let mut client = scratch.client().await;
    let changed: Row = client
        .query_first("CALL tenure_wait_1('%', '', 0)")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(changed.get::<Vec<u8>, _>(1).unwrap(), "Größe/租约".as_bytes());
    let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    rival.ttl = seconds(30);
    let next = take(&store, &rival).await;
    assert_eq!(next.predecessor.unwrap().candidate, asked.candidate.id);

    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let ledger = ResourceName::new("帳簿").unwrap();
    let term = |token| Term::new(asked.name.clone(), token);
    let first = fence.claim(&ledger, &term(next.token)).await;
    assert_eq!(first, Ok(Claimed::Raised { from: None }));
    assert_eq!(
        fence.claim(&ledger, &term(next.token)).await,
        Ok(Claimed::Already)
    );
    let mark = fence.mark(&ledger).await.unwrap().unwrap();
    assert_eq!(
        (&mark.resource, mark.lease.as_ref()),
        (&ledger, Some(&asked.name))
    );
}

/// An answer that cannot be read takes nothing back: what the server has committed by then is not told as not
/// applied.
#[tokio::test]
async fn what_was_committed_and_cannot_be_read_is_uncertain_in_mysql() {
    let server = Mariadb::with_settings(by_procedures()).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let (asked, other) = (
        request("job", "a", seconds(60)),
        request("other", "a", seconds(60)),
    );
    let grant = take(&store, &other).await;
    for (procedure, shown) in [
        ("acquire", "CAST(l_owner AS BINARY)"),
        ("renew", "CAST(lease.owner AS BINARY)"),
        ("release", "CAST(lease.owner AS BINARY)"),
    ] {
        let blind = rewriting(procedure).replace(shown, "NULL");
        scratch.sql(&blind).await;
    }
    let granted = store.acquire(&asked).await.unwrap_err();
    let again = store.acquire(&asked).await.unwrap_err();
    let extended = store
        .renew(&[renewal(&other, grant.token)])
        .await
        .remove(0)
        .unwrap_err();
    let vacated = store
        .release(&[giving_back(&other, grant.token)])
        .await
        .remove(0)
        .unwrap_err();
    for error in [granted, again, extended, vacated] {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Unreadable, Certainty::Unknown), "{error}");
    }
    // Who only finds that somebody else holds it has changed nothing.
    let held = store
        .acquire(&request("job", "b", seconds(60)))
        .await
        .unwrap_err();
    assert_eq!(held.certainty, Certainty::NotApplied, "{held}");
}

/// A server that cuts answers short, as for people who forget their limits, cuts none of the store's.
#[tokio::test]
async fn list_is_whole_where_sessions_cut_answers_short() {
    const LEASES: usize = 150;
    let server = Mariadb::start().await.unwrap();
    server.execute("SET GLOBAL sql_select_limit = 100").await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    for number in 0..LEASES {
        take(&store, &request(&format!("job/{number}"), "holder", seconds(600))).await;
    }
    let (mut listed, mut after) = (0, None);
    loop {
        let page = Page {
            after,
            ..Page::first("", 120)
        };
        let page = store.list(&page).await.unwrap();
        listed += page.leases.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, LEASES);
}

/// A server that refuses changes without a key, as for people who forget a condition, refuses none of the
/// store's: what is changed in one statement for several leases is found by a list of names.
#[tokio::test]
async fn several_leases_are_renewed_and_given_back_where_sessions_refuse_changes_without_a_key() {
    let server = Mariadb::start().await.unwrap();
    server.execute("SET GLOBAL sql_safe_updates = 1").await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let (mut renewals, mut releases) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let asked = request(&format!("job/{number}"), "holder", seconds(60));
        let grant = take(&store, &asked).await;
        renewals.push(renewal(&asked, grant.token));
        releases.push(giving_back(&asked, grant.token));
    }
    for renewed in store.renew(&renewals).await {
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
    for released in store.release(&releases).await {
        assert_eq!(released, Ok(Released::Vacated));
    }
    let unused = Purge {
        prefix: String::new(),
        after: None,
        limit: 10,
        unused_for: Duration::from_secs(3_600),
        purging: Purging::Removes,
    };
    let purged = store.purge(&unused).await;
    assert!(purged.is_ok(), "{purged:?}");
}
