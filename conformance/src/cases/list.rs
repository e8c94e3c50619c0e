//! Reading many leases: in order, page by page, none twice and none missing.

use crate::{Corruption, Fixture};
use tenure_core::{Cursor, Fault, LeaseName, Listed, Occupancy, Page};

/// Takes a lease under each of these names, in this order.
async fn take_all(fixture: &Fixture, names: &[LeaseName]) {
    for name in names {
        let contender = fixture.contender("ada", name);
        fixture.first().take(&contender).await;
    }
}

fn named(fixture: &Fixture, endings: &[&str]) -> Vec<LeaseName> {
    let name = |ending: &&str| fixture.named(&format!("{}{ending}", fixture.unique()));
    endings.iter().map(name).collect()
}

fn names_of(listed: &[Listed]) -> Vec<LeaseName> {
    let name = |one: &Listed| match one {
        Listed::Lease(lease) => lease.name.clone(),
        Listed::Unreadable { key, error } => panic!("\"{key}\" should be readable: {error}"),
    };
    listed.iter().map(name).collect()
}

/// Leases are listed in the order of the bytes of their names, whatever the order of writing, the case, the
/// language or the width of a character.
pub async fn leases_are_listed_in_the_order_of_their_bytes(fixture: &Fixture) {
    // The last two change places where strings are compared by UTF-16, as in Java and JavaScript.
    let endings = [
        "/b",
        "/a",
        "/B",
        "/é",
        "/e",
        "/a/b",
        "/a-b",
        "/10",
        "/9",
        "/Z",
        "/\u{ff5e}",
        "/\u{1f600}",
    ];
    let mut names = named(fixture, &endings);
    take_all(fixture, &names).await;
    names.sort_by(|left, right| left.as_str().as_bytes().cmp(right.as_str().as_bytes()));
    for limit in [1, 5, 1_000] {
        let listed = fixture.second().list(fixture.unique(), limit).await;
        assert_eq!(names_of(&listed), names, "with pages of {limit}");
    }
}

/// Pages join without loss or duplicate, for every size of page.
pub async fn pages_join_without_loss_or_duplicate(fixture: &Fixture) {
    let names: Vec<LeaseName> = (0..17)
        .map(|number| fixture.named(&format!("{}/{number:02}", fixture.unique())))
        .collect();
    take_all(fixture, &names).await;
    for limit in [1, 2, 3, 7, 16, 17, 18] {
        let listed = fixture.second().list(fixture.unique(), limit).await;
        assert_eq!(names_of(&listed), names, "with pages of {limit}");
    }
}

/// The last page says that it is the last, also when it is full.
pub async fn last_page_says_so(fixture: &Fixture) {
    let names = named(fixture, &["/a", "/b", "/c", "/d"]);
    take_all(fixture, &names).await;
    let page = |after: Option<Cursor>, limit| Page {
        after,
        ..Page::first(fixture.unique(), limit)
    };
    let first = fixture.first().page(&page(None, 2)).await;
    assert_eq!(names_of(&first.leases), names[..2]);
    let next = first.next.expect("two more leases follow");
    let last = fixture.first().page(&page(Some(next), 2)).await;
    assert_eq!(names_of(&last.leases), names[2..]);
    assert_eq!(last.next, None, "nothing follows \"{}\"", names[3]);
    let beyond = fixture
        .first()
        .page(&page(Some(Cursor::from(&names[3])), 2))
        .await;
    assert_eq!((beyond.leases.len(), beyond.next), (0, None));
}

/// A page may begin after a name that has no record.
pub async fn page_may_begin_after_an_absent_name(fixture: &Fixture) {
    let names = named(fixture, &["/a", "/c"]);
    take_all(fixture, &names).await;
    let page = Page {
        after: Some(Cursor::behind(format!("{}/b", fixture.unique()))),
        ..Page::first(fixture.unique(), 10)
    };
    let listed = fixture.first().page(&page).await;
    assert_eq!(names_of(&listed.leases), names[1..]);
}

/// Only names that begin with the prefix are listed; the prefix may end within a part.
pub async fn prefix_selects_names(fixture: &Fixture) {
    let names = named(fixture, &["/job", "/job/1", "/jobs", "/other", "/Job"]);
    take_all(fixture, &names).await;
    for (ending, expected) in [("/job", 0..3), ("/jobs", 2..3), ("/job/", 1..2), ("/oth", 3..4)] {
        let prefix = format!("{}{ending}", fixture.unique());
        let listed = fixture.second().list(&prefix, 10).await;
        assert_eq!(names_of(&listed), names[expected], "under \"{prefix}\"");
    }
    let none = fixture
        .first()
        .list(&format!("{}/none", fixture.unique()), 10)
        .await;
    assert_eq!(none, []);
}

/// Whoever asks what is held is told of all that is, page by page, whatever was given back between.
pub async fn what_is_held_is_listed_as_held(fixture: &Fixture) {
    let names = named(fixture, &["/a", "/b", "/c", "/d", "/e"]);
    let mut held = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let contender = fixture.contender("ada", name);
        let grant = fixture.first().take(&contender).await;
        match number % 2 {
            0 => held.push(name.clone()),
            _ => fixture.first().vacate(&contender.release(grant.token)).await,
        }
    }
    for limit in [1, 2, 1_000] {
        let listed = fixture.second().list_held(fixture.unique(), limit).await;
        let is_held =
            |one: &Listed| matches!(one, Listed::Lease(lease) if lease.occupancy() == Occupancy::Held);
        let told: Vec<Listed> = listed.into_iter().filter(is_held).collect();
        assert_eq!(names_of(&told), held, "with pages of {limit}");
    }
}

/// A prefix is text: what means something in a pattern means itself.
pub async fn prefix_is_text_and_no_pattern(fixture: &Fixture) {
    let hostile = [
        "/a.c%_*", "/a%", "/a_", "/a.*", "/a[b]", "/a?", "/^a", "/a$", "/a\\d", "/(a|b)", "/a'", "/a\"",
    ];
    let harmless = ["/abc", "/abcdef", "/aXc%_*", "/a\\\\d", "/b", "/ad", "/a5"];
    let mut names = named(fixture, &hostile);
    names.extend(named(fixture, &harmless));
    take_all(fixture, &names).await;
    for ending in hostile {
        let prefix = format!("{}{ending}", fixture.unique());
        let listed = names_of(&fixture.second().list(&prefix, 10).await);
        let mut expected: Vec<LeaseName> = names
            .iter()
            .filter(|name| name.as_str().starts_with(&prefix))
            .cloned()
            .collect();
        expected.sort();
        assert_eq!(listed, expected, "under \"{prefix}\"");
    }
}

/// The empty prefix lists everything.
pub async fn empty_prefix_lists_everything(fixture: &Fixture) {
    let names = named(fixture, &["/a", "/b"]);
    take_all(fixture, &names).await;
    let listed = fixture.second().list("", 1_000).await;
    for name in &names {
        let found = listed
            .iter()
            .filter(|one| matches!(one, Listed::Lease(lease) if lease.name == *name));
        assert_eq!(found.count(), 1, "\"{name}\" should be listed once");
    }
}

/// A page has 1 to 1,000 records: any other limit is refused, and says so.
pub async fn limit_outside_its_range_is_refused(fixture: &Fixture) {
    let page = |limit| Page::first(fixture.unique(), limit);
    for limit in [1, 1_000] {
        fixture.first().page(&page(limit)).await;
    }
    for limit in [0, 1_001, u16::MAX] {
        let answer = fixture.first().store().list(&page(limit)).await;
        let error = answer.expect_err("a limit outside 1 to 1,000 is invalid");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(
            error.message.contains(&limit.to_string()),
            "the message names the limit {limit}: {error}"
        );
    }
}

/// Held, expired and vacant leases are all listed, each as what it is, and as `get` reads it.
pub async fn leases_are_listed_whatever_their_state(fixture: &Fixture) {
    let names = named(fixture, &["/1-held", "/2-expired", "/3-vacant"]);
    let ada = fixture.contender("ada", &names[0]).noting("pid 7");
    fixture.first().take(&ada).await;
    fixture.let_expire(&ada.for_lease(&names[1])).await;
    let grant = fixture.first().take(&ada.for_lease(&names[2])).await;
    fixture
        .first()
        .vacate(&ada.for_lease(&names[2]).release(grant.token))
        .await;
    let listed = fixture.second().list(fixture.unique(), 10).await;
    assert_eq!(names_of(&listed), names);
    let states = [Occupancy::Held, Occupancy::Expired, Occupancy::Vacant];
    for (one, state) in listed.iter().zip(states) {
        let Listed::Lease(lease) = one else {
            panic!("{one:?} should be readable")
        };
        assert_eq!(lease.occupancy(), state, "{lease:?}");
        let read = fixture.second().lease(&lease.name).await;
        assert_eq!(
            (
                &lease.holder,
                lease.token,
                lease.attempt,
                lease.terms,
                &lease.note
            ),
            (&read.holder, read.token, read.attempt, read.terms, &read.note)
        );
    }
}

/// A record that cannot be understood is listed as such, in its place, and hides no other.
pub async fn unreadable_record_is_listed_and_hides_no_other(fixture: &Fixture) {
    let names = named(fixture, &["/a", "/b", "/c", "/d"]);
    take_all(fixture, &names).await;
    let damaged = fixture.corrupt(&names[1], Corruption::Alien).await
        || fixture.corrupt(&names[1], Corruption::NegativeToken).await;
    for limit in [1, 2, 3, 10] {
        let listed = fixture.second().list(fixture.unique(), limit).await;
        assert_eq!(listed.len(), names.len(), "with pages of {limit}: {listed:?}");
        for (one, name) in listed.iter().zip(&names) {
            match one {
                Listed::Lease(lease) => assert_eq!(&lease.name, name, "with pages of {limit}"),
                Listed::Unreadable { key, error } => {
                    assert!(
                        damaged && name == &names[1],
                        "\"{key}\" should be readable: {error}"
                    );
                    assert_eq!(error.fault, Fault::Unreadable, "{error}");
                    assert!(key.contains(name.as_str()), "\"{key}\" should show \"{name}\"");
                    assert!(!key.contains(char::is_control), "{key:?} should be escaped");
                }
            }
        }
        let unreadable = listed
            .iter()
            .filter(|one| matches!(one, Listed::Unreadable { .. }));
        assert_eq!(unreadable.count(), usize::from(damaged));
    }
}

/// Keys that are no names are listed as such, in their place, and hide no lease, however many there are and
/// wherever a page ends.
pub async fn what_is_no_name_hides_no_lease(fixture: &Fixture) {
    let names = named(fixture, &["/b", "/c", "/y"]);
    take_all(fixture, &names).await;
    let mut strays = 0;
    for stray in ["/a//1", "/a//2", "/c//1", "/c//2", "/c//3", "/z//1"] {
        strays += usize::from(fixture.stray(&format!("{}{stray}", fixture.unique())).await);
    }
    for limit in 1..=10 {
        let listed = fixture.second().list(fixture.unique(), limit).await;
        let lease = |one: &Listed| matches!(one, Listed::Lease(_)).then(|| one.clone());
        let leases: Vec<Listed> = listed.iter().filter_map(lease).collect();
        assert_eq!(names_of(&leases), names, "with pages of {limit}");
        assert_eq!(
            listed.len(),
            names.len() + strays,
            "with pages of {limit}: {listed:?}"
        );
    }
}
