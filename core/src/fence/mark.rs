use super::FenceError;
use super::error::Horizon;
use crate::{FencingToken, LeaseName, ResourceName, Term};

/// How far a token may be ahead of the fence's own clock, in milliseconds: a day. The lease's store has a
/// clock of its own, and two clocks that differ by more need a person anyway.
const AHEAD_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// The clocks of the world passed this number of milliseconds in September 2001.
const CLOCK_MIN_MS: u64 = 1_000_000_000_000;

/// What a fence keeps of one resource.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// The resource.
    pub resource: ResourceName,
    /// The lease whose tokens the mark compares; `None` until the first claim.
    pub lease: Option<LeaseName>,
    /// The highest token that has claimed, or what an operator has raised it to.
    pub token: FencingToken,
    /// Whether an operator has raised it, and nobody has claimed since: no term holds it.
    pub bumped: bool,
    /// How often a term was refused. For people: it may lag by a second, and what was counted just before a
    /// crash may be missing.
    pub refused: u64,
    /// The token that was refused last.
    pub last_refused: Option<FencingToken>,
}

/// An operator's order to raise a mark above every token that may have been granted: after the data or the
/// leases were restored from a backup, so that no term from before the restore is admitted again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bump {
    /// The resource. One that nobody has claimed yet may be bumped, too.
    pub resource: ResourceName,
    /// A token that the mark must be above, beside the mark itself and the fence's clock. Where the leases'
    /// store counts ([`is_counted`]), the clock says nothing, and a term that was granted and has not claimed
    /// is above the mark: then this must be the highest token that may have been granted.
    pub above: Option<FencingToken>,
    /// Binds the resource to this lease; `None` leaves it where it is.
    pub lease: Option<LeaseName>,
}

/// What a claim has to do to a mark.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ruling {
    /// Raise it to the term's token.
    Raise,
    /// Nothing: this term holds it.
    Holds,
}

/// The highest token that may exist by a clock: a day ahead of it, or of the mark where that is higher.
///
/// For stores whose tokens follow the clock, and for those that count from one, which stay far below.
#[must_use]
pub fn horizon(clock_ms: u64, mark: Option<FencingToken>) -> FencingToken {
    let known_ms = clock_ms.max(mark.map_or(0, FencingToken::number));
    FencingToken::new(known_ms.saturating_add(AHEAD_MAX_MS)).unwrap_or(FencingToken::MAX)
}

/// Where the leases are whose terms a fence admits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leases {
    /// Beside the marks, where the fence finds their records.
    Here,
    /// In another store, or in another database of this one: a record of such a name beside the marks says
    /// nothing.
    Elsewhere,
}

/// Decides a claim: the rules that all fences share.
///
/// Where there is no mark, one may have stood here that was removed or lost. Then the lease's record beside
/// it, if it is known, tells which terms are over.
///
/// # Errors
/// [`FenceError::Foreign`], [`FenceError::Stale`], [`FenceError::Future`], in this order.
pub fn decide_claim(
    resource: &ResourceName,
    term: &Term,
    owner: Option<&LeaseName>,
    mark: Option<FencingToken>,
    horizon: Horizon,
) -> Result<Ruling, FenceError> {
    check_owner(resource, term, owner)?;
    match (mark, horizon) {
        (Some(later), _) | (None, Horizon::Granted(later)) if later > term.token => Err(FenceError::Stale {
            resource: resource.clone(),
            token: term.token,
            mark: later,
        }),
        (Some(mark), _) if mark == term.token && owner.is_some() => Ok(Ruling::Holds),
        (Some(_) | None, _) if term.token > horizon.token() => Err(FenceError::Future {
            resource: resource.clone(),
            lease: term.lease.clone(),
            token: term.token,
            horizon,
        }),
        (Some(_) | None, _) => Ok(Ruling::Raise),
    }
}

/// Decides whether a term may enter: only the one that holds the mark.
///
/// # Errors
/// [`FenceError::Foreign`], [`FenceError::Stale`], [`FenceError::Unclaimed`], in this order.
pub fn decide_entry(
    resource: &ResourceName,
    term: &Term,
    owner: Option<&LeaseName>,
    mark: Option<FencingToken>,
) -> Result<(), FenceError> {
    check_owner(resource, term, owner)?;
    match mark {
        Some(mark) if mark > term.token => Err(FenceError::Stale {
            resource: resource.clone(),
            token: term.token,
            mark,
        }),
        // A mark without a lease was raised by an operator: nobody has claimed it yet.
        Some(mark) if mark == term.token && owner.is_some() => Ok(()),
        Some(_) | None => Err(FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        }),
    }
}

/// Whether a token is of a store that counts, as by its revision, and not by a clock: its number is no time
/// in milliseconds that a clock of today shows. A store that counts takes centuries to get there.
#[must_use]
pub fn is_counted(token: FencingToken) -> bool {
    token.number() < CLOCK_MIN_MS
}

/// The clock that a bump goes by ([`bumped`]), by the highest token that is known: none, where that one is
/// counted. Above the clock, a mark would refuse every later term of its store for ever.
#[must_use]
pub fn bump_clock_ms(known: Option<FencingToken>, clock_ms: u64) -> u64 {
    match known.is_some_and(is_counted) {
        true => 0,
        false => clock_ms,
    }
}

/// Where a mark goes when it is bumped: above itself, above `above`, and above the clock ([`bump_clock_ms`]).
///
/// `None` when the numbers are used up.
#[must_use]
pub fn bumped(
    mark: Option<FencingToken>,
    above: Option<FencingToken>,
    clock_ms: u64,
) -> Option<FencingToken> {
    // One more than the clock: a term may have been granted in this very millisecond.
    FencingToken::successor(mark.max(above), clock_ms.saturating_add(1))
}

/// Decides whether a term is of the lease that the resource belongs to.
///
/// A fence that has its marks raised by an operator asks this first, by the lease that the mark still belongs
/// to, and then [`decide_claim`] or [`decide_entry`] without a lease: nobody has claimed such a mark, not
/// even its own number.
///
/// # Errors
/// [`FenceError::Foreign`].
pub fn check_owner(
    resource: &ResourceName,
    term: &Term,
    owner: Option<&LeaseName>,
) -> Result<(), FenceError> {
    match owner {
        Some(owner) if *owner != term.lease => Err(FenceError::Foreign {
            resource: resource.clone(),
            lease: term.lease.clone(),
            token: term.token,
            owner: owner.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}
