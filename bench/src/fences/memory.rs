//! A number in this process, protected by a watermark and by nothing else.

use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use tenure::contract::Answer;
use tenure::{Term, Watermark};

pub struct MemoryRegister {
    fence: Watermark,
    value: AtomicI64,
    history: Mutex<Vec<Write>>,
}

impl MemoryRegister {
    pub fn open(path: &str) -> Self {
        Self {
            fence: Watermark::open(path).unwrap(),
            value: AtomicI64::new(0),
            history: Mutex::default(),
        }
    }
}

impl Register for MemoryRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async { Some(self.value.load(Ordering::SeqCst)) })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let admitted = match self.fence.admit(&resource(), term) {
                Ok(admitted) => admitted,
                Err(error) => return Outcome::of(&error),
            };
            // Whoever could come between the check and the effect has its chance here.
            tokio::task::yield_now().await;
            self.value.store(read + 1, Ordering::SeqCst);
            self.history.lock().unwrap().push((term.token.number(), read));
            drop(admitted);
            Outcome::Accepted
        })
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async { self.history.lock().unwrap().clone() })
    }
}
