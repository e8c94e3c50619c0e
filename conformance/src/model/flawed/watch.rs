use super::store::FlawedStore;
use crate::model::Defect;
use std::collections::VecDeque;
use std::time::Duration;
use tenure_core::{Answer, Change, Interest, LeaseStore, Scope, StoreError, Watch, WatchEvent};
use tokio::time::{sleep, timeout};

/// How long a watch that tells backwards waits for a second event.
const SECOND: Duration = Duration::from_millis(10);

/// How long an event is on its way between being taken and being told.
const ON_ITS_WAY: Duration = Duration::from_millis(3);

/// A watch with a defect.
pub(super) struct FlawedWatch {
    store: FlawedStore,
    scope: Scope,
    interest: Interest,
    sound: Option<Box<dyn Watch>>,
    swapped: VecDeque<WatchEvent>,
}

impl FlawedWatch {
    pub(super) async fn start(
        store: FlawedStore,
        scope: &Scope,
        interest: Interest,
    ) -> Result<Self, StoreError> {
        let watched = match store.defect {
            Defect::WatchIgnoresScope => Scope::Prefix(String::new()),
            _ => scope.clone(),
        };
        let sound = match store.defect {
            Defect::WatchStartsLate => None,
            _ => Some(store.sound.watch(&watched, interest).await?),
        };
        Ok(Self {
            store,
            scope: watched,
            interest,
            sound,
            swapped: VecDeque::new(),
        })
    }

    async fn next_sound(&mut self) -> Result<WatchEvent, StoreError> {
        let watch = match &mut self.sound {
            Some(watch) => watch,
            none @ None => none.insert(self.store.sound.watch(&self.scope, self.interest).await?),
        };
        watch.next().await
    }

    fn is_missed(&self, event: &WatchEvent) -> bool {
        let WatchEvent::Changed { change, token, .. } = event else {
            return false;
        };
        match self.store.defect {
            Defect::WatchMissesReleases => *change == Change::Vacated,
            Defect::WatchOfEndsMissesReleases => {
                self.interest == Interest::Ends && *change == Change::Vacated
            }
            Defect::WatchOfEveryEndMissesFollowed => {
                self.interest == Interest::EveryEnd && *change != Change::Asked
            }
            Defect::WatchMissesWishes => *change == Change::Asked,
            Defect::WatchMissesRemovals => token.is_none(),
            Defect::WatchMissesOwnChanges => self.store.has_caused(event),
            _ => false,
        }
    }
}

impl Watch for FlawedWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            if let Some(event) = self.swapped.pop_front() {
                return Ok(event);
            }
            loop {
                let event = self.next_sound().await?;
                if self.is_missed(&event) {
                    continue;
                }
                match self.store.defect {
                    Defect::WatchLosesDroppedEvent => sleep(ON_ITS_WAY).await,
                    Defect::WatchTellsBackwards => {
                        if let Ok(second) = timeout(SECOND, self.next_sound()).await {
                            self.swapped.push_back(event);
                            return second;
                        }
                    }
                    _ => {}
                }
                return Ok(event);
            }
        })
    }
}
