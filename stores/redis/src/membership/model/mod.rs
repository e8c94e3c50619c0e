//! An exhaustive search over who the members of a quorum are: five servers that keep an entry and a lease
//! each, two candidates, runs of `store init`, requests that come late, servers that forget. Every state
//! within a scenario is visited, breadth first.
//!
//! - What a candidate knows, what it admits, learns and has kept, is the real
//!   [`Membership`](super::Membership) (`minds.rs`), and so is by what a run of `store init` sees that it has
//!   nothing to do ([`Roster::is_of`](super::Roster::is_of)).
//! - What the scripts decide is a function of a few lines, which a test compares with the scripts on a server
//!   (`notes.rs`).
//! - The order of the requests (`quorum/record.rs`, `admission.rs`) is modelled (`world.rs`). It is looser
//!   there than in the code: a candidate does whatever it could do next, and whoever would be refused at
//!   connect goes on all the same.
//! - A request and its answer are one step, but for those that come late, whose answer nobody hears. A lease
//!   is taken in one step. Who leads is told by the servers: a majority of a candidate's list has its lease.
//!   So what a leader still believes when its members have forgotten the lease is not seen here; that is R7's
//!   assumption, and has its own tests.
//! - From every state it is judged, too, what comes about when all members answer and one acts after the
//!   other (`calm.rs`).

mod calm;
mod minds;
mod notes;
mod runs;
mod search;
mod state;
mod world;

use minds::List;
use search::Report;
use state::Deed;
use world::World;

/// What must not be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Broken {
    /// By two lists, each with a majority of its own; unless every server of both has forgotten.
    TwoLead,
    /// A server kept a list that was complete, and keeps another.
    ChangedWithoutInit,
    /// A server has the id of another.
    IdOfAnother,
    Dead(calm::Dead),
}

/// Rules that would be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    LooksAtNoLease,
    NoSecondLook,
    SameNeedsNoLook,
    GoesOnWithoutAll,
    IdsOfBefore,
    AlwaysAnew,
    LateKeepOverwrites,
    CompletesAnyList,
    TakeComparesNoId,
    AdoptComparesNoId,
    LeadsBeforeComplete,
    CompletesBesideLeases,
    TakesFromWhoToldNoId,
    NobodyTellsComplete,
    AsksOnlyUnmet,
}

/// What must happen in a search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Milestone {
    OneLeads,
    OtherLeads,
    OtherIsComplete,
    Refused,
    /// Members keep a list that is not complete while somebody leads by the one before.
    RecordedBesideLeader,
}

/// What there is, and what may happen.
#[derive(Clone)]
struct Scenario {
    name: &'static str,
    /// The list that all its members keep at the beginning, complete. The first candidate has met them, if it
    /// names that.
    before: Option<List>,
    /// What each candidate names.
    candidates: [List; 2],
    /// What `store init` is run for, one run after the other.
    runs: Vec<List>,
    /// Of these what is here.
    rare: &'static [Deed],
    /// At a time.
    late_max: usize,
    forgets_max: u8,
}

/// What happens only in scenarios that name it.
const RARE: [Deed; 4] = [Deed::MeetsOnly, Deed::LosesIn, Deed::Adopts, Deed::Restarts];

const OLD: List = [0, 1, 2];
/// That differs in as many as may fail.
const NEW: List = [0, 1, 3];
/// That shares one.
const FAR: List = [2, 3, 4];

impl Scenario {
    fn allows(&self, deed: Deed) -> bool {
        !RARE.contains(&deed) || self.rare.contains(&deed)
    }

    /// Servers that nobody has recorded.
    fn first(candidates: [List; 2]) -> Self {
        Self {
            name: "first candidates",
            before: None,
            candidates,
            runs: Vec::new(),
            rare: &[],
            late_max: 0,
            forgets_max: 0,
        }
    }

    /// A member is exchanged while a candidate of the old list, and one of the new list, are there.
    fn exchange() -> Self {
        Self {
            name: "an exchange",
            before: Some(OLD),
            runs: vec![NEW],
            ..Self::first([OLD, NEW])
        }
    }
}

fn searched(scenario: &Scenario, flaw: Option<Flaw>) -> Report {
    World::new(scenario.clone(), flaw).search()
}

/// As the code is. The larger ones take minutes: `MEMBERSHIP_MODEL=large cargo test --lib -p tenure-redis
/// membership::model`.
fn scenarios() -> Vec<Scenario> {
    let all_rare = &RARE;
    let mut scenarios = vec![
        Scenario {
            rare: &[Deed::MeetsOnly],
            ..Scenario::first([OLD, NEW])
        },
        Scenario {
            rare: &[Deed::MeetsOnly],
            ..Scenario::first([OLD, OLD])
        },
        Scenario {
            forgets_max: 1,
            ..Scenario::first([OLD, NEW])
        },
        Scenario::exchange(),
    ];
    if is_large() {
        scenarios.extend([
            Scenario {
                rare: all_rare,
                ..Scenario::exchange()
            },
            Scenario {
                late_max: 1,
                ..Scenario::exchange()
            },
            Scenario {
                runs: vec![NEW, NEW],
                ..Scenario::exchange()
            },
            Scenario {
                rare: all_rare,
                ..Scenario::first([OLD, NEW])
            },
            Scenario {
                late_max: 1,
                ..Scenario::first([OLD, NEW])
            },
            Scenario {
                forgets_max: 1,
                ..Scenario::first([OLD, FAR])
            },
        ]);
    }
    scenarios
}

#[test]
fn members_of_two_lists_never_lead_beside_each_other_and_no_state_is_a_dead_end() {
    for scenario in scenarios() {
        let report = searched(&scenario, None);
        println!("{}: {report}", scenario.name);
        assert!(report.broken.is_none(), "{}: {report}", scenario.name);
        // What cannot happen where both name the same: that one is refused.
        let mut wanted = vec![
            Milestone::OneLeads,
            Milestone::OtherLeads,
            Milestone::OtherIsComplete,
        ];
        if scenario.candidates[0] != scenario.candidates[1] {
            wanted.extend([Milestone::Refused, Milestone::RecordedBesideLeader]);
        }
        wanted.retain(|milestone| !report.milestones.contains(milestone));
        assert_eq!(wanted, [], "{}: never happened", scenario.name);
        for rare in scenario.rare {
            assert!(
                report.deeds.contains(rare),
                "{}: {rare:?} never happened",
                scenario.name
            );
        }
    }
}

/// Each is refuted; with how many moves.
#[test]
fn each_rule_that_is_wrong_is_refuted_by_a_course() {
    use Broken::{ChangedWithoutInit, Dead, TwoLead};
    use calm::Dead::{InitIsNotIdempotent, NeedsNewProcess, NobodyLeads};
    let exchange = Scenario::exchange;
    let first = || Scenario::first([OLD, NEW]);
    let same = || Scenario::first([OLD, OLD]);
    let brought = || Scenario {
        rare: &[Deed::LosesIn, Deed::Adopts],
        ..exchange()
    };
    let forgets = || Scenario {
        forgets_max: 1,
        ..first()
    };
    let mut rows = vec![
        (Flaw::LooksAtNoLease, exchange(), TwoLead, 11),
        (Flaw::NoSecondLook, exchange(), TwoLead, 11),
        (Flaw::IdsOfBefore, exchange(), TwoLead, 14),
        (Flaw::AlwaysAnew, exchange(), Dead(InitIsNotIdempotent), 0),
        (Flaw::LateKeepOverwrites, first(), ChangedWithoutInit, 14),
        (Flaw::CompletesAnyList, forgets(), TwoLead, 21),
        (Flaw::TakeComparesNoId, exchange(), TwoLead, 14),
        (Flaw::AdoptComparesNoId, brought(), TwoLead, 16),
        (Flaw::LeadsBeforeComplete, first(), TwoLead, 8),
        (Flaw::CompletesBesideLeases, exchange(), TwoLead, 11),
        (Flaw::TakesFromWhoToldNoId, first(), TwoLead, 15),
        (Flaw::NobodyTellsComplete, same(), Dead(NobodyLeads), 0),
        (Flaw::AsksOnlyUnmet, same(), Dead(NeedsNewProcess), 2),
    ];
    if is_large() {
        // What R7 excludes: one that both lists name forgets, and one that was left out still keeps the old
        // list.
        let forgets = Scenario {
            forgets_max: 1,
            ..exchange()
        };
        let broken = searched(&forgets, None).broken.map(|(broken, _)| broken);
        assert_eq!(broken, Some(TwoLead));
        let again = Scenario {
            runs: vec![NEW, NEW],
            ..exchange()
        };
        let late = Scenario {
            late_max: 1,
            ..exchange()
        };
        rows.extend([
            (Flaw::SameNeedsNoLook, again, TwoLead, 13),
            (Flaw::GoesOnWithoutAll, late, TwoLead, 14),
        ]);
    }
    let mut wrong = Vec::new();
    for (flaw, scenario, broken, length) in rows {
        let report = searched(&scenario, Some(flaw));
        let found = report
            .broken
            .as_ref()
            .map(|(broken, moves)| (*broken, moves.len()));
        println!("{flaw:?}: {found:?}");
        wrong.extend((found != Some((broken, length))).then(|| format!("{flaw:?}: {report}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether there are minutes for it.
fn is_large() -> bool {
    std::env::var("MEMBERSHIP_MODEL").is_ok_and(|which| which == "large")
}
