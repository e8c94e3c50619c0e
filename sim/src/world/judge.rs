//! What the store did, judged: record before, record after, and what it answered.

use super::World;
use crate::faults::FaultKind;
use crate::invariants::{
    OneTermPerAttempt, Truth, no_change_without_cause, release_touches_only_its_term, renewal_is_inert,
};
use crate::plan::{Grants, NAMES_MAX, StoreKind};
use crate::sometimes::Sometimes;
use tenure_core::{Acquire, Acquired, Grant, Operation, Release, Renew, Renewed, Reply, StoreError};

impl World<'_> {
    /// Where nobody judges expiry but each process by its own clock, only clocks that are right keep leases
    /// apart.
    pub(super) fn keeps_leases_apart(&self) -> bool {
        self.plan.store.kind == StoreKind::ServerClock || self.assumptions.rate
    }

    /// Whether every grant is for the ttl that was asked for.
    pub(super) fn grants_what_is_asked(&self) -> bool {
        self.plan.store.granted_percent == 100 && self.plan.store.grants == Grants::Alike
    }

    /// What the store's clock says to a renewal: where it judges nothing, a lease that nobody has taken is
    /// extended.
    pub(super) fn renewal_clock_ms(&self) -> u64 {
        match self.plan.store.kind {
            StoreKind::ServerClock => self.store.clock_ms(self.now),
            StoreKind::Observed => 0,
        }
    }

    pub(super) fn judge_applied(
        &mut self,
        operation: &Operation,
        reply: &Reply,
        before: &[Option<Truth>; NAMES_MAX],
        holder: u64,
    ) {
        let clock_ms = self.store.clock_ms(self.now);
        match (operation, reply) {
            (Operation::Acquire(acquire), Reply::Acquired(result)) => {
                let index = self.name_index(&acquire.name);
                self.judge_acquire(index, acquire, result, before[index], holder, clock_ms);
            }
            (Operation::Renew(renewals), Reply::Renewed(results)) => {
                for (renew, result) in renewals.iter().zip(results) {
                    let index = self.name_index(&renew.name);
                    self.judge_renewal(index, renew, result, before[index], holder, clock_ms);
                }
            }
            (Operation::Release(releases), Reply::Released(_)) => {
                for release in releases {
                    let index = self.name_index(&release.name);
                    self.judge_release(index, release, before[index], holder);
                }
            }
            _ => {}
        }
    }

    fn judge_acquire(
        &mut self,
        index: usize,
        acquire: &Acquire,
        result: &Result<Acquired, StoreError>,
        before: Option<Truth>,
        holder: u64,
        clock_ms: u64,
    ) {
        match result {
            Ok(Acquired::Granted(grant)) => {
                let attempt = acquire.attempt.number();
                self.judge_grant(index, grant, before, (holder, attempt), clock_ms, clock_ms);
            }
            Ok(Acquired::Superseded) => self.saw(Sometimes::Superseded),
            Ok(Acquired::Held(_)) | Err(_) => {}
        }
        self.judge_taken(index, before, clock_ms);
        if matches!(result, Ok(Acquired::Granted(_))) {
            self.record_changed(index);
        }
    }

    /// After a request to take the lease, whatever it was answered, and before what changed is taken for
    /// granted: whether what changed had a cause.
    pub(super) fn judge_taken(&mut self, index: usize, before: Option<Truth>, clock_ms: u64) {
        let after = self.store.truth(index);
        if self.keeps_leases_apart() {
            self.judge(no_change_without_cause(before, after, clock_ms));
        }
        self.outcome
            .trace(after.map_or(0, |after| after.token ^ after.expires_ms << 1));
    }

    /// `token_floor`: what the store's clock said to whoever chose the token.
    pub(super) fn judge_grant(
        &mut self,
        index: usize,
        grant: &Grant,
        before: Option<Truth>,
        (holder, attempt): (u64, u64),
        clock_ms: u64,
        token_floor: u64,
    ) {
        let token = grant.token.number();
        let apart = self.keeps_leases_apart();
        let now = self.now;
        let view = &mut self.leases[index];
        view.granted_at = now;
        let exclusive = view
            .exclusivity
            .granted(holder, token, attempt, clock_ms, grant.ttl.as_millis());
        let rises = if grant.again {
            Ok(())
        } else {
            view.tokens.granted(token, token_floor)
        };
        let promised = view.tokens.promised();
        let owned = if promised {
            view.attempts.granted(token, holder, attempt)
        } else {
            Ok(())
        };
        self.judge(OneTermPerAttempt::granted(
            before, holder, attempt, token, clock_ms,
        ));
        if apart {
            self.judge(exclusive);
        }
        self.judge(rises);
        self.judge(owned);
        if grant.again {
            self.saw(Sometimes::GrantedAgain);
        } else if let Some(before) = before {
            if before.holder == holder && before.is_held(clock_ms) {
                self.saw(Sometimes::OwnEarlierAttempt);
            } else if before.holder != holder {
                self.saw(if before.released {
                    Sometimes::HandOver
                } else {
                    Sometimes::TakeOver
                });
            }
        }
        if !self.grants_what_is_asked() {
            self.struck(FaultKind::OtherTtl);
        }
    }

    pub(super) fn judge_renewal(
        &mut self,
        index: usize,
        renew: &Renew,
        result: &Result<Renewed, StoreError>,
        before: Option<Truth>,
        holder: u64,
        clock_ms: u64,
    ) {
        let term = (holder, renew.token.number(), renew.attempt.number());
        if let Ok(Renewed::Extended { ttl, .. }) = result {
            self.leases[index]
                .exclusivity
                .extended(term.1, clock_ms, ttl.as_millis());
        }
        self.record_changed(index);
        let after = self.leases[index].truth;
        let clock_ms = self.renewal_clock_ms();
        self.judge(renewal_is_inert(before, after, term, clock_ms));
        self.outcome.trace(after.map_or(1, |after| after.expires_ms));
    }

    pub(super) fn judge_release(
        &mut self,
        index: usize,
        release: &Release,
        before: Option<Truth>,
        holder: u64,
    ) {
        let term = (holder, release.token.number(), release.attempt.number());
        // Before what belief says of it: whoever loses a term by another's release is to hear of the release.
        let after = self.store.truth(index);
        self.judge(release_touches_only_its_term(before, after, term));
        self.record_changed(index);
        if before != after {
            self.leases[index].exclusivity.vacated(term.1);
            let worked = self.processes.iter().any(|process| {
                u64::from(process.instance) == holder && process.seats[index].once.has_begun(term.1)
            });
            if !worked {
                self.saw(Sometimes::OrphanReleased);
            }
        }
        self.outcome.trace(after.map_or(2, |after| after.token));
    }
}
