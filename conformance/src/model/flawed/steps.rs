//! Requests that are not one atomic step: decided by what was read, and written later.

use super::super::records::{Record, Records, Slot};
use super::store::FlawedStore;
use crate::model::Defect;
use std::time::Duration;
use tenure_core::LeaseName;
use tokio::time::sleep;

/// How long the decision is behind.
const DECIDED_BEFORE: Duration = Duration::from_millis(2);

/// How a request is made in two steps.
pub(super) enum Steps {
    /// It is one.
    One,
    /// What was read is changed and written back as a whole.
    WriteBack,
    /// What was decided is written into whatever is there.
    WriteByName,
}

impl Defect {
    /// How a wish is left.
    pub(super) fn steps_of_ask(self) -> Steps {
        match self {
            Self::AskWritesBack => Steps::WriteBack,
            Self::AskWritesByName => Steps::WriteByName,
            _ => Steps::One,
        }
    }

    /// How so many leases are renewed.
    pub(super) fn steps_of_renew(self, count: usize) -> Steps {
        match self {
            Self::RenewWritesBack => Steps::WriteBack,
            Self::RenewWritesByName => Steps::WriteByName,
            Self::BatchRenewWritesByName if count > 1 => Steps::WriteByName,
            _ => Steps::One,
        }
    }

    /// How so many leases are given back.
    pub(super) fn steps_of_release(self, count: usize) -> Steps {
        match self {
            Self::ReleaseWritesBack => Steps::WriteBack,
            Self::ReleaseWritesByName => Steps::WriteByName,
            Self::BatchReleaseWritesByName if count > 1 => Steps::WriteByName,
            _ => Steps::One,
        }
    }
}

impl FlawedStore {
    /// Does as the rule says, in these steps.
    pub(super) async fn stepwise<T>(
        &self,
        steps: Steps,
        names: Vec<LeaseName>,
        rule: impl FnOnce(&mut Records, u64) -> T,
        change: impl Fn(&mut Record, &Record),
    ) -> T {
        match steps {
            Steps::One => self.pass(|_, records, now_ms| rule(records, now_ms)).await,
            Steps::WriteBack => self.write_back(names, rule).await,
            Steps::WriteByName => self.write_by_name(names, rule, change).await,
        }
    }

    /// Reads, and writes back later what the rule makes of it; what it leaves as it is, is not written.
    pub(super) async fn write_back<T>(
        &self,
        names: Vec<LeaseName>,
        rule: impl FnOnce(&mut Records, u64) -> T,
    ) -> T {
        let read = |records: &Records| -> Vec<Option<Slot>> {
            names
                .iter()
                .map(|name| records.slots.get(name).cloned())
                .collect()
        };
        let seen = self.pass(|_, records, _| read(records)).await;
        sleep(DECIDED_BEFORE).await;
        self.pass(|_, records, now_ms| {
            let now = read(records);
            for (name, slot) in names.iter().zip(&seen) {
                restore(records, name, slot.clone());
            }
            let answer = rule(records, now_ms);
            for ((name, seen), now) in names.iter().zip(&seen).zip(now) {
                if records.slots.get(name) == seen.as_ref() {
                    restore(records, name, now);
                }
            }
            answer
        })
        .await
    }

    /// Decides by the rule, and later has the records of those that it changed changed so, whosever they are.
    async fn write_by_name<T>(
        &self,
        names: Vec<LeaseName>,
        rule: impl FnOnce(&mut Records, u64) -> T,
        change: impl Fn(&mut Record, &Record),
    ) -> T {
        let decided = self.pass(|_, records, now_ms| {
            let mut changed = records.clone();
            let answer = rule(&mut changed, now_ms);
            let written = names
                .into_iter()
                .filter_map(|name| match changed.slots.get(&name) {
                    Some(Slot::Own(record)) if changed.slots.get(&name) != records.slots.get(&name) => {
                        Some((name, record.clone()))
                    }
                    Some(_) | None => None,
                });
            (answer, written.collect::<Vec<_>>(), changed.take_events())
        });
        let (answer, written, events) = decided.await;
        sleep(DECIDED_BEFORE).await;
        self.pass(|defect, records, _| {
            for (name, decided) in written {
                defect.edit(records, &name, |record| change(record, &decided));
            }
            records.events.extend(events);
        })
        .await;
        answer
    }
}

fn restore(records: &mut Records, name: &LeaseName, slot: Option<Slot>) {
    match slot {
        Some(slot) => drop(records.slots.insert(name.clone(), slot)),
        None => drop(records.slots.remove(name)),
    }
}
