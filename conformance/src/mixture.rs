//! A batch of terms of which each stands differently: what every one is answered, and what becomes of its
//! record.

use crate::contender::Contender;
use crate::fixture::{Fixture, Snapshot, higher};
use crate::{Client, Corruption};
use std::collections::BTreeMap;
use std::fmt;
use tenure_core::{
    Attempt, Candidate, Fault, FencingToken, Lease, LeaseName, Listed, Occupancy, Release, Renew, StoreError,
};
use tokio::task::JoinSet;

/// Leases that are taken at the same time while a batch is prepared.
const AT_ONCE: usize = 8;

/// How often a mixture has each kind.
const TURNS: usize = 3;

/// The attempt by which every term is taken: there are earlier ones.
const ATTEMPT: u64 = 5;

/// What became of a term before the batch, or what its request has wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Live,
    TakenOver,
    Missing,
    Vanished,
    Unreadable,
    Expired,
    Released,
    ReleasedByAnother,
    OtherIncarnation,
    OtherToken,
    EarlierAttempt,
    LaterAttempt,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Live,
        Self::TakenOver,
        Self::Missing,
        Self::Vanished,
        Self::Unreadable,
        Self::Expired,
        Self::Released,
        Self::ReleasedByAnother,
        Self::OtherIncarnation,
        Self::OtherToken,
        Self::EarlierAttempt,
        Self::LaterAttempt,
    ];

    /// Each kind in turn, and live terms up to `count` in between. Every turn begins with another kind, so
    /// that parts of a batch that change places show.
    fn mixed(count: usize) -> Vec<Self> {
        let turn = |number: usize| {
            let mut kinds = Self::ALL.to_vec();
            kinds.rotate_left(number * Self::ALL.len() / TURNS);
            kinds.resize(count / TURNS, Self::Live);
            kinds
        };
        (0..TURNS).flat_map(turn).collect()
    }
}

/// What one request of a batch was answered, whichever it was.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    Done,
    Refused(Option<&'a Lease>),
    Failed(&'a StoreError),
}

/// One request of the batch, and the record as it was before.
#[derive(Clone)]
struct Mixed {
    kind: Kind,
    who: Contender,
    token: FencingToken,
    before: Option<Lease>,
    snapshot: Option<Snapshot>,
}

/// Requests for terms of every kind, and what was there before them.
pub(crate) struct Mixture(Vec<Mixed>);

impl Mixture {
    /// At most `count` terms, taken through the first client. What became of them since went through
    /// `behind`.
    pub(crate) async fn prepare(fixture: &Fixture, behind: &Client, count: usize) -> Self {
        let kinds = Kind::mixed(count.min(fixture.traits().batch_max.get()) - 1);
        let contender = |kind: &Kind| {
            let ada = fixture.contender("ada", &fixture.name()).at_attempt(ATTEMPT);
            if *kind == Kind::Expired {
                return ada.with_ttl(fixture.ttl_short());
            }
            ada
        };
        let taken = take_all(fixture, kinds.iter().map(contender).collect()).await;
        let mut mixed = Vec::new();
        for (kind, (who, token)) in kinds.into_iter().zip(taken) {
            mixed.push(mix(fixture, behind, kind, who, token).await);
        }
        for one in mixed.iter().filter(|one| one.kind == Kind::Expired) {
            fixture.wait_until_free(&one.who.name).await;
        }
        let before = leases(fixture).await;
        for one in &mut mixed {
            one.before = before.get(&one.who.name).cloned();
            if one.kind != Kind::Live {
                one.snapshot = Some(fixture.snapshot(&one.who.name).await);
            }
        }
        // Each request is judged for itself, also if a lease is named twice.
        mixed.push(mixed[0].clone());
        Self(mixed)
    }

    pub(crate) fn renewals(&self) -> Vec<Renew> {
        self.0.iter().map(|one| one.who.renew(one.token)).collect()
    }

    pub(crate) fn releases(&self) -> Vec<Release> {
        self.0.iter().map(|one| one.who.release(one.token)).collect()
    }

    /// Checks that terms of the kinds `done`, and no others, were done; that each refusal shows the record of
    /// its own lease; and that each record is what it was, but that what was done has become `occupancy`.
    pub(crate) async fn check(
        &self,
        fixture: &Fixture,
        verdicts: &[Verdict<'_>],
        done: &[Kind],
        occupancy: Occupancy,
    ) {
        assert_eq!(verdicts.len(), self.0.len(), "one answer per request");
        let mut wrong = Vec::new();
        for (one, verdict) in self.0.iter().zip(verdicts) {
            if !one.deserves(verdict, done, fixture.renews_unread()) {
                wrong.push(format!("{one} was answered {verdict:?}"));
            }
        }
        let after = leases(fixture).await;
        for one in &self.0 {
            let name = &one.who.name;
            let (now, mut expected) = (after.get(name).map(Essence::of), one.essence());
            let mut as_it_was = true;
            if done.contains(&one.kind) {
                expected = expected.map(|was| Essence { occupancy, ..was });
            } else if let Some(snapshot) = &one.snapshot {
                as_it_was = fixture.snapshot(name).await == *snapshot;
            }
            if now != expected || !as_it_was {
                wrong.push(format!("{one} became {now:?}, unchanged: {as_it_was}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

impl Mixed {
    fn essence(&self) -> Option<Essence<'_>> {
        self.before.as_ref().map(Essence::of)
    }

    fn deserves(&self, verdict: &Verdict<'_>, done: &[Kind], renews_unread: bool) -> bool {
        let is_done = done.contains(&self.kind);
        let is_unreadable = self.kind == Kind::Unreadable;
        match verdict {
            // What it is told to have done must not show: only a renewal leaves a record as it was.
            Verdict::Done => is_done || is_unreadable && renews_unread,
            Verdict::Refused(shown) => !is_done && !is_unreadable && shown.map(Essence::of) == self.essence(),
            Verdict::Failed(error) => {
                is_unreadable
                    && error.fault == Fault::Unreadable
                    && error.message.contains(self.who.name.as_str())
            }
        }
    }
}

impl fmt::Display for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\", which was {:?},", self.who.name, self.kind)
    }
}

/// What neither time nor a renewal changes of a lease.
#[derive(PartialEq, Eq, Debug)]
struct Essence<'a> {
    name: &'a LeaseName,
    holder: &'a Candidate,
    token: FencingToken,
    attempt: Attempt,
    terms: u64,
    occupancy: Occupancy,
}

impl<'a> Essence<'a> {
    fn of(lease: &'a Lease) -> Self {
        Self {
            name: &lease.name,
            holder: &lease.holder,
            token: lease.token,
            attempt: lease.attempt,
            terms: lease.terms,
            occupancy: lease.occupancy(),
        }
    }
}

/// Takes every lease through the first client, and answers who took which, in their order.
pub(crate) async fn take_all(
    fixture: &Fixture,
    contenders: Vec<Contender>,
) -> Vec<(Contender, FencingToken)> {
    let mut taking = JoinSet::new();
    let mut taken = Vec::new();
    for (number, contender) in contenders.into_iter().enumerate() {
        let client: Client = fixture.first().clone();
        taking.spawn(async move {
            let grant = client.take(&contender).await;
            (number, contender, grant.token)
        });
        if taking.len() >= AT_ONCE {
            taken.extend(taking.join_next().await.map(|one| one.expect("a lease is taken")));
        }
    }
    taken.extend(taking.join_all().await);
    taken.sort_by_key(|(number, ..)| *number);
    taken
        .into_iter()
        .map(|(_, contender, token)| (contender, token))
        .collect()
}

/// Lets a term that was just taken become one of this kind. What the storage makes impossible leaves it live.
async fn mix(fixture: &Fixture, behind: &Client, kind: Kind, who: Contender, token: FencingToken) -> Mixed {
    let name = &who.name;
    let kind = match kind {
        Kind::Vanished if !fixture.purge(name).await => Kind::Live,
        Kind::Unreadable
            if !fixture.corrupt(name, Corruption::NegativeToken).await
                && !fixture.corrupt(name, Corruption::Alien).await =>
        {
            Kind::Live
        }
        possible => possible,
    };
    let (who, token) = match kind {
        Kind::Live | Kind::Vanished | Kind::Unreadable => (who, token),
        Kind::TakenOver => {
            behind.take(&who.at_attempt(ATTEMPT + 1)).await;
            (who, token)
        }
        Kind::Missing => (who.for_lease(&fixture.name()), token),
        Kind::Expired => {
            fixture.both_look(name).await;
            (who, token)
        }
        Kind::Released => {
            behind.vacate(&who.release(token)).await;
            (who, token)
        }
        Kind::ReleasedByAnother => {
            behind.vacate(&who.release(token)).await;
            (who.reborn(), token)
        }
        Kind::OtherIncarnation => (who.reborn(), token),
        Kind::OtherToken => (who, higher(token, 1)),
        Kind::EarlierAttempt => (who.at_attempt(ATTEMPT - 1), token),
        Kind::LaterAttempt => (who.at_attempt(ATTEMPT + 1), token),
    };
    Mixed {
        kind,
        who,
        token,
        before: None,
        snapshot: None,
    }
}

/// What the second client reads of every lease of the case that can be understood.
async fn leases(fixture: &Fixture) -> BTreeMap<LeaseName, Lease> {
    let listed = fixture.second().list(fixture.unique(), 1_000).await;
    let leases = listed.into_iter().filter_map(|one| match one {
        Listed::Lease(lease) => Some((lease.name.clone(), lease)),
        Listed::Unreadable { .. } => None,
    });
    leases.collect()
}
