//! When to wake, and why: the soonest of everything that is awaited.

use super::seat::Seat;
use super::{Engine, Wake, WakeReason};

impl Engine {
    pub(super) fn next_wake(&self) -> Option<Wake> {
        let requests = self.in_flight.values().map(|sent| Wake {
            at: sent.give_up_at,
            why: WakeReason::RequestTimeout,
        });
        self.seats
            .values()
            .flat_map(|seat| self.wakes_of(seat))
            .flatten()
            .chain(requests)
            .min()
    }

    fn wakes_of(&self, seat: &Seat) -> [Option<Wake>; 3] {
        match seat {
            Seat::Campaign(campaign) => {
                let attempt = Wake {
                    at: campaign.next_at,
                    why: WakeReason::Attempt,
                };
                [campaign.request.is_none().then_some(attempt), None, None]
            }
            Seat::Term(term) => {
                let renewal = Wake {
                    at: term.renew_at,
                    why: WakeReason::Renewal,
                };
                let doubt = Wake {
                    at: term.doubt_from(self.timing.grace),
                    why: WakeReason::Doubt,
                };
                [
                    (term.request.is_none() && !term.is_let_go()).then_some(renewal),
                    (!term.doubted).then_some(doubt),
                    Some(Wake {
                        at: term.until,
                        why: WakeReason::Deadline,
                    }),
                ]
            }
            Seat::Departure(leaving) => {
                let retry = Wake {
                    at: leaving.next_at,
                    why: WakeReason::Departure,
                };
                [leaving.request.is_none().then_some(retry), None, None]
            }
            Seat::Search(search) => {
                let retry = Wake {
                    at: search.next_at,
                    why: WakeReason::Departure,
                };
                [search.request.is_none().then_some(retry), None, None]
            }
        }
    }
}
