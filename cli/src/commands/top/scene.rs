//! What is there to be seen: leases, who waits for them, and what changed.

use crate::output::{Row, Rows, short};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};
use tenure::FencingToken;
use tenure::contract::{Lease, Occupancy};
use tenure::tooling::Standby;

/// Changes that are kept.
const CHANGES_MAX: usize = 200;

/// A lease, and those who wait for it in order.
pub(super) struct Seen {
    pub(super) row: Row,
    pub(super) standbys: Vec<Standby>,
    /// Terms that began while we looked.
    pub(super) changes: u64,
}

/// Something that happened to a lease.
pub(super) struct Change {
    pub(super) at: Instant,
    pub(super) lease: String,
    pub(super) what: String,
}

/// How a lease was when it was looked at last.
struct Before {
    token: FencingToken,
    terms: u64,
    occupancy: Occupancy,
    holder: String,
    asked: bool,
    changes: u64,
    /// Since when nobody holds it.
    free_since: Option<Instant>,
}

/// All of it, as of the last look.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) leases: Vec<Seen>,
    /// The latest first.
    pub(super) changes: VecDeque<Change>,
    /// When the store was last asked successfully, and how long it took.
    pub(super) look: Option<(Instant, Duration)>,
    /// Why the last look failed.
    pub(super) trouble: Option<String>,
    before: BTreeMap<String, Before>,
}

impl Scene {
    /// Takes in what was read by a request that was sent at `sent` and answered at `now`.
    pub(super) fn take_in(&mut self, rows: Rows, sent: Instant, now: Instant) {
        let first = self.look.is_none();
        let mut waiting: BTreeMap<String, Vec<Standby>> = BTreeMap::new();
        let mut leases = Vec::new();
        for row in rows {
            if !row.is_kept_by_tenure() {
                leases.push(row);
            } else if let Row::Lease(place) = &row
                && place.occupancy() == Occupancy::Held
                && let Some((name, standby)) = Standby::read(place)
            {
                waiting.entry(name.to_string()).or_default().push(standby);
            }
        }
        self.leases = leases
            .into_iter()
            .map(|row| {
                let changes = match &row {
                    Row::Lease(lease) => self.compare(lease, first, now),
                    Row::Never(_) | Row::Unreadable { .. } => 0,
                };
                let mut standbys = waiting.remove(row.key()).unwrap_or_default();
                Standby::rank(&mut standbys);
                Seen {
                    row,
                    standbys,
                    changes,
                }
            })
            .collect();
        // A store of locks may get names for ever, and have them cleaned up.
        let there: HashSet<&str> = self.leases.iter().map(|seen| seen.row.key()).collect();
        self.before.retain(|name, _| there.contains(name.as_str()));
        self.look = Some((now, now.duration_since(sent)));
        self.trouble = None;
    }

    /// How many terms of this lease began while we looked.
    fn compare(&mut self, lease: &Lease, first: bool, now: Instant) -> u64 {
        let (name, occupancy) = (lease.name.to_string(), lease.occupancy());
        let before = self.before.remove(&name);
        let mut changes = before.as_ref().map_or(0, |before| before.changes);
        let free_since = before.as_ref().and_then(|before| before.free_since);
        let mut told = Vec::new();
        let new_term = before.as_ref().is_none_or(|before| before.token != lease.token);
        if new_term && !first {
            // Several may have come and gone between two looks.
            let known = before.as_ref().map_or(0, |before| before.terms);
            changes += lease.terms.saturating_sub(known).max(1);
            let from = before
                .as_ref()
                .map_or(String::new(), |before| format!(", after {}", before.holder));
            let gap = free_since.map_or(String::new(), |since| {
                format!(" and {} without a leader", short(now.duration_since(since)))
            });
            told.push(format!(
                "{} leads by token {}{from}{gap}",
                lease.holder.id, lease.token
            ));
        }
        let was_held = new_term
            || before
                .as_ref()
                .is_some_and(|before| before.occupancy == Occupancy::Held);
        match occupancy {
            Occupancy::Held => {
                let asked_before = !new_term && before.as_ref().is_some_and(|before| before.asked);
                if lease.asked_to_step_down && !asked_before && !first {
                    told.push(format!("{} was asked to step down", lease.holder.id));
                }
            }
            // The record is the same, whoever has ended the term.
            Occupancy::Vacant if was_held && !first => {
                told.push(format!("{} gave it back, or it was vacated", lease.holder.id))
            }
            Occupancy::Expired if was_held && !first => {
                told.push(format!("it expired under {}", lease.holder.id))
            }
            Occupancy::Vacant | Occupancy::Expired => {}
        }
        for what in told {
            self.changes.push_front(Change {
                at: now,
                lease: name.clone(),
                what,
            });
            self.changes.truncate(CHANGES_MAX);
        }
        let free_since = (occupancy != Occupancy::Held).then_some(match free_since {
            Some(since) if !new_term => since,
            _ => now,
        });
        let seen = Before {
            token: lease.token,
            terms: lease.terms,
            occupancy,
            holder: lease.holder.id.to_string(),
            asked: lease.asked_to_step_down,
            changes,
            free_since,
        };
        self.before.insert(name, seen);
        changes
    }
}

#[cfg(test)]
pub(super) use tests::lease;

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::contract::{Attempt, Candidate, CandidateId, Incarnation, Note};
    use tenure::{LeaseName, Ttl};

    pub(in super::super) fn lease(name: &str, holder: &str, token: u64) -> Lease {
        Lease {
            name: LeaseName::new(name).unwrap(),
            holder: Candidate {
                id: CandidateId::new(holder).unwrap(),
                incarnation: Incarnation::from_bits(u128::from(token)),
            },
            token: FencingToken::new(token).unwrap(),
            attempt: Attempt::FIRST,
            terms: token,
            ttl: Ttl::try_from(Duration::from_secs(10)).unwrap(),
            remaining: Duration::from_secs(8),
            released: false,
            held_for: Duration::from_secs(60),
            renewed_ago: Duration::from_secs(2),
            asked_to_step_down: false,
            note: Note::default(),
        }
    }

    fn rows(leases: &[Lease]) -> Rows {
        leases
            .iter()
            .map(|lease| Row::Lease(Box::new(lease.clone())))
            .collect()
    }

    #[test]
    fn what_changes_between_two_looks_is_told_once_and_the_first_look_tells_nothing() {
        let began = Instant::now();
        let mut scene = Scene::default();
        let held = lease("job", "one", 1);
        let asked = Lease {
            asked_to_step_down: true,
            ..held.clone()
        };
        let vacant = Lease {
            released: true,
            remaining: Duration::ZERO,
            ..asked.clone()
        };
        let later = lease("job", "two", 2);
        let expired = Lease {
            remaining: Duration::ZERO,
            ..later.clone()
        };
        let looks = [
            held.clone(),
            held,
            asked.clone(),
            asked,
            vacant.clone(),
            vacant,
            later.clone(),
            later,
            expired,
        ];
        for (second, look) in (0..).zip(&looks) {
            let now = began + Duration::from_secs(second);
            scene.take_in(rows(std::slice::from_ref(look)), now, now);
        }
        let told: Vec<&str> = scene
            .changes
            .iter()
            .rev()
            .map(|change| change.what.as_str())
            .collect();
        assert_eq!(
            told,
            [
                "one was asked to step down",
                "one gave it back, or it was vacated",
                "two leads by token 2, after one and 2s without a leader",
                "it expired under two",
            ]
        );
        assert_eq!(scene.leases[0].changes, 1);
        let much_later = began + Duration::from_secs(60);
        scene.take_in(rows(&[lease("job", "three", 7)]), much_later, much_later);
        assert_eq!(scene.leases[0].changes, 6, "terms that no look has seen");
    }

    #[test]
    fn what_was_known_of_leases_that_are_gone_is_forgotten() {
        let (mut scene, began) = (Scene::default(), Instant::now());
        let unreadable = Row::Unreadable {
            key: "damaged".to_owned(),
            error: tenure::StoreError::not_applied(tenure::contract::Fault::Unreadable, "damaged"),
        };
        scene.take_in(rows(&[lease("damaged", "one", 1)]), began, began);
        for order in 2..100 {
            let mut looked = rows(&[lease(&format!("orders/{order}"), "one", order)]);
            looked.push(unreadable.clone());
            scene.take_in(looked, began, began);
            assert_eq!(scene.before.len(), 2, "what cannot be read now is there");
        }
    }

    #[test]
    fn those_who_wait_stand_with_their_lease_in_order_and_records_of_terms_are_hidden() {
        let mut scene = Scene::default();
        let now = Instant::now();
        let records = [
            "job",
            "job/candidates/1/low",
            "job/candidates/0/never",
            "job/candidates/9/high",
        ];
        let leases: Vec<Lease> = (1..)
            .zip(records)
            .map(|(token, name)| lease(name, name.rsplit('/').next().unwrap(), token))
            .collect();
        let term = Lease {
            note: Note::new("7 began").unwrap(),
            ..lease("job/terms/00", "one", 7)
        };
        // Not named after its holder: nobody waits by it.
        let of_a_user = lease("job/candidates/5/eu", "host-1", 8);
        scene.take_in(rows(&[&leases[..], &[term, of_a_user]].concat()), now, now);
        let shown: Vec<&str> = scene.leases.iter().map(|seen| seen.row.key()).collect();
        assert_eq!(shown, ["job", "job/candidates/5/eu"]);
        let priorities: Vec<u16> = scene.leases[0]
            .standbys
            .iter()
            .map(|standby| standby.priority.number())
            .collect();
        assert_eq!(priorities, [9, 1, 0]);
    }
}
