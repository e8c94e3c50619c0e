//! Names, candidate ids and notes are text: whatever they look like, they come back as they were.

use crate::{Contender, Corruption, Fixture};
use tenure_core::{Asked, Attempt, Incarnation, LeaseName, Listed, Note, Renewed};

/// Texts that mean something to some store, some query language or some shell.
const HOSTILE: &[&str] = &[
    "$where",
    "$$NOW",
    "$$ROOT.token",
    "$set",
    "\"'; DROP TABLE leases; --",
    "' OR '1'='1",
    "a.b.$[].c",
    "{\"$gt\": \"\"}",
    "%s%n{}%%",
    "--",
    "*",
    "_id",
    "null",
    "0",
    "-1",
    "true",
    "grüße, 日本語, 👩‍👩‍👧",
    "\u{202e}reversed",
    "back\\slash",
    "`id`$(id)${HOME}",
    "a,b;c:d|e&f=g#h?i@j!",
    "with  two spaces",
];

/// Takes, reads, renews and gives back, and checks that every text is what it was.
async fn assert_round_trip(fixture: &Fixture, contender: &Contender) {
    let grant = fixture.first().take(contender).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.name, contender.name);
    assert_eq!(lease.holder, contender.candidate);
    assert_eq!(lease.note, contender.note);
    assert_eq!(lease.attempt, contender.attempt);
    fixture.second().extend(&contender.renew(grant.token)).await;
    fixture.second().vacate(&contender.release(grant.token)).await;
    let next = fixture.contender("next", &contender.name);
    let before = fixture.first().take(&next).await.predecessor;
    assert_eq!(
        before.expect("a predecessor").candidate,
        contender.candidate.id,
        "the predecessor's id comes back as it was"
    );
}

/// Names that look like commands are names.
pub async fn hostile_names_come_back_as_they_were(fixture: &Fixture) {
    for text in HOSTILE {
        let name = fixture.named(&format!("{text}{}", fixture.unique()));
        assert_round_trip(fixture, &fixture.contender("ada", &name)).await;
        let listed = fixture.second().list(name.as_str(), 10).await;
        assert_eq!(listed.len(), 1, "\"{name}\" is listed under itself: {listed:?}");
    }
}

/// Candidate ids that look like commands are candidate ids.
pub async fn hostile_candidate_ids_come_back_as_they_were(fixture: &Fixture) {
    for text in HOSTILE {
        assert_round_trip(fixture, &fixture.contender(text, &fixture.name())).await;
    }
}

/// Notes that look like commands are notes; a note may also be empty, or have lines and control characters.
pub async fn hostile_notes_come_back_as_they_were(fixture: &Fixture) {
    let more = [
        "",
        " ",
        "two\nlines\r\n",
        "tab\tbell\u{7}",
        "nul\0within",
        "\u{feff}mark",
    ];
    for text in HOSTILE.iter().chain(&more) {
        let contender = fixture.contender("ada", &fixture.name()).noting(text);
        assert_round_trip(fixture, &contender).await;
    }
}

/// A note that somebody has written by hand, longer than Tenure's own, comes back as far as it fits, and its
/// lease is like any other.
pub async fn note_of_another_hand_that_is_too_long_ends_nobodys_term(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let beside = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let (grant, other) = (
        fixture.first().take(&ada).await,
        fixture.first().take(&beside).await,
    );
    if !fixture.corrupt(&ada.name, Corruption::LongNote).await {
        return; // The storage makes it impossible; that nothing changed was checked.
    }
    let shown = Note::beginning_of(&Corruption::long_note());
    assert_eq!(fixture.second().lease(&ada.name).await.note, shown);
    let listed = fixture.second().list(ada.name.as_str(), 10).await;
    let [Listed::Lease(lease)] = &listed[..] else {
        panic!("it is listed as a lease: {listed:?}");
    };
    assert_eq!(lease.note, shown);
    assert_eq!(fixture.second().be_refused(&bob).await.note, shown);
    fixture.first().extend(&ada.renew(grant.token)).await;
    let beat = [ada.renew(grant.token), beside.renew(other.token)];
    for renewed in fixture.first().store().renew(&beat).await {
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
    let asked = fixture.second().ask(&ada.name, grant.token).await;
    assert_eq!(asked, Asked::Noted);
    fixture.first().vacate(&ada.release(grant.token)).await;
    let next = fixture.first().take(&bob).await;
    assert!(next.token > grant.token, "the token fell: {next:?}");
    // Under who has its own record in mind.
    fixture.corrupt(&ada.name, Corruption::LongNote).await;
    fixture.first().vacate(&bob.release(next.token)).await;
    let last = fixture.second().take(&ada.at_attempt(2)).await;
    assert!(last.token > next.token, "the token fell: {last:?}");
}

/// The longest texts fit: a name of 255 bytes, an id of 253, a note of 1,024, in characters of any width.
pub async fn longest_texts_fit(fixture: &Fixture) {
    for filler in ["x", "é", "日", "👍"] {
        let fill = |start: &str, bytes: usize| {
            let mut text = start.to_owned();
            while text.len() + filler.len() <= bytes {
                text.push_str(filler);
            }
            text.extend(std::iter::repeat_n('x', bytes - text.len()));
            text
        };
        let name = fixture.named(&fill(fixture.unique(), 255));
        let contender = fixture.contender(&fill("", 253), &name).noting(&fill("", 1024));
        assert_round_trip(fixture, &contender).await;
    }
}

/// Names that look alike are different leases: case, normal form, and parts of one another.
pub async fn names_that_look_alike_are_different_leases(fixture: &Fixture) {
    let endings = [
        "/a",
        "/A",
        "/a/a",
        "/a.a",
        "/e\u{301}",
        "/é",
        "/ss",
        "/ß",
        "/1",
        "/01",
        "/1.0",
        "/Ⅰ",
        "/I",
        "/ı",
        "/i",
        "/a\u{200b}",
        "/a b",
        "/a  b",
    ];
    let names: Vec<LeaseName> = endings
        .iter()
        .map(|ending| fixture.named(&format!("{}{ending}", fixture.unique())))
        .collect();
    for (name, ending) in names.iter().zip(endings) {
        let contender = fixture.contender("ada", name).noting(ending);
        let grant = fixture.first().take(&contender).await;
        assert_eq!(grant.terms, 1, "\"{name}\" is a lease of its own");
    }
    for (name, ending) in names.iter().zip(endings) {
        let lease = fixture.second().lease(name).await;
        assert_eq!((&lease.name, lease.note.as_str()), (name, ending));
    }
}

/// The first and last numbers of an incarnation and of an attempt come back as they were.
pub async fn extreme_numbers_come_back_as_they_were(fixture: &Fixture) {
    let last_attempt = Attempt::new(i64::MAX.unsigned_abs()).expect("the last attempt");
    for bits in [0, 1, u128::MAX, 1 << 127, u128::from(u64::MAX)] {
        let mut contender = fixture.contender("ada", &fixture.name());
        contender.candidate.incarnation = Incarnation::from_bits(bits);
        contender.attempt = last_attempt;
        let earlier = contender.at_attempt(last_attempt.number() - 1);
        fixture.first().take(&contender).await;
        fixture.second().be_superseded(&earlier).await;
        assert_round_trip(fixture, &contender).await;
    }
}
