//! Terms whose work reports progress: looked at by the driver before they can be stuck, and not at each of
//! its steps.
//!
//! There may be ten thousand, as every place in a queue is one. Each is looked at when half of the time is
//! over within which its work is to report: where it has reported since, half of that later again; where it
//! has not, it says so itself when it does.

use crate::clock;
use crate::term::{SharedTerm, for_good};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Command, LeaseName, Moment};

/// The terms of a driver whose work reports progress.
#[derive(Default)]
pub(super) struct Progress {
    terms: BTreeMap<LeaseName, Progressing>,
    /// When they are looked at, without those that say so themselves.
    looks: BTreeSet<(Moment, LeaseName)>,
    #[cfg(test)]
    looked_at: usize,
}

struct Progressing {
    term: Arc<SharedTerm>,
    /// How long it may be without progress.
    within: Duration,
    /// The last progress that the engine was told.
    taken_in: Moment,
    /// When it is looked at; `None` where it says so itself.
    look_at: Option<Moment>,
}

impl Progress {
    /// A term begins, which counts as progress.
    pub(super) fn begin(&mut self, name: &LeaseName, term: Arc<SharedTerm>, within: Duration) {
        self.end(name);
        let progressing = Progressing {
            term,
            within,
            taken_in: clock::now(),
            look_at: None,
        };
        self.terms.insert(name.clone(), progressing);
        let _nothing_yet = self.look(name);
    }

    /// The term is over.
    pub(super) fn end(&mut self, name: &LeaseName) {
        if let Some(look_at) = self.terms.remove(name).and_then(|term| term.look_at) {
            self.looks.remove(&(look_at, name.clone()));
        }
    }

    /// What the engine is to be told, of those that are to be looked at by now.
    pub(super) fn news(&mut self) -> Vec<Command> {
        let now = clock::now();
        let mut news = Vec::new();
        while self.looks.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, name)) = self.looks.pop_first()
        {
            news.extend(self.look(&name));
        }
        news
    }

    /// What the engine is to be told of this one.
    pub(super) fn look(&mut self, name: &LeaseName) -> Option<Command> {
        #[cfg(test)]
        {
            self.looked_at += 1;
        }
        let progressing = self.terms.get_mut(name)?;
        if let Some(look_at) = progressing.look_at.take() {
            self.looks.remove(&(look_at, name.clone()));
        }
        let now = clock::now();
        let half = progressing.within / 2;
        let is_recent = |at: Moment| at.after(half) > now;
        let mut at = progressing.reported(now);
        if !is_recent(at) {
            progressing.term.await_progress(true);
            // What was reported before that, nobody tells of.
            at = progressing.reported(now);
        }
        if is_recent(at) {
            progressing.look_at = Some(at.after(half));
            self.looks.insert((at.after(half), name.clone()));
        }
        let is_news = at > progressing.taken_in;
        progressing.taken_in = progressing.taken_in.max(at);
        is_news.then(|| Command::Progress {
            name: name.clone(),
            token: progressing.term.token(),
            at,
        })
    }
}

impl Progressing {
    /// The last progress that is known.
    fn reported(&self, now: Moment) -> Moment {
        let at = self.term.last_progress();
        // The engine takes in nothing of the future: it is told again and again.
        if at == for_good() {
            now
        } else {
            at.max(self.taken_in)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, SharedTerm, clock};
    use std::sync::Arc;
    use std::time::Duration;
    use tenure_core::{Belief, FencingToken, LeaseName};

    fn term() -> Arc<SharedTerm> {
        let now = clock::now();
        Arc::new(SharedTerm::new(Belief {
            token: FencingToken::new(1).expect("a token"),
            doubt_from: now,
            ending_from: None,
            until: now,
        }))
    }

    fn name(number: usize) -> LeaseName {
        LeaseName::new(format!("{number}")).expect("a name")
    }

    /// However many steps the driver takes meanwhile.
    #[test]
    fn ten_thousand_terms_are_looked_at_as_often_as_their_time_calls_for() {
        const TERMS: usize = 10_000;
        let (mut progress, within) = (Progress::default(), Duration::from_secs(3_600));
        for number in 0..TERMS {
            progress.begin(&name(number), term(), within);
            assert!(progress.news().is_empty());
        }
        assert_eq!(progress.looked_at, TERMS, "once each, as it begins");
        for number in 0..TERMS {
            progress.end(&name(number));
        }
        assert!(progress.terms.is_empty() && progress.looks.is_empty());
    }

    #[test]
    fn work_that_has_reported_is_looked_at_and_work_that_has_not_tells_of_it() {
        let (mut progress, within) = (Progress::default(), Duration::from_millis(60));
        let (works, idles, for_good) = (term(), term(), term());
        for (number, term) in [&works, &idles, &for_good].into_iter().enumerate() {
            progress.begin(&name(number), term.clone(), within);
        }
        assert!(!for_good.assure_progress(), "nobody waits for it");
        let mut told = [0; 3];
        for _look in 0..3 {
            std::thread::sleep(within / 2 + Duration::from_millis(1));
            // A machine that stands still may have it awaited: then whoever reports it tells of it.
            let told_of = works.progress().then(|| progress.look(&name(0))).flatten();
            for command in progress.news().into_iter().chain(told_of) {
                let tenure_core::Command::Progress { name, at, .. } = command else {
                    panic!("{command:?}")
                };
                assert!(at <= clock::now(), "nothing of the future");
                told[name.as_str().parse::<usize>().expect("a number")] += 1;
            }
        }
        assert_eq!(told, [3, 0, 3]);
        assert!(idles.progress(), "it is waited for");
        assert!(!idles.progress(), "and told of once");
        assert!(progress.look(&name(1)).is_some());
        assert!(progress.look(&name(1)).is_none(), "no news");
    }
}
