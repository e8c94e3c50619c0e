//! One representative for all worlds that behave alike.
//!
//! - Tokens and attempts are replaced by their ranks: only their order counts, and every new one is the
//!   greatest.
//! - Candidates are sorted: all have the same timing and call themselves the same, and no invariant tells
//!   them apart, so exchanging them exchanges everything that can happen.
//! - What nobody can notice any more is forgotten: the holder that died with its last message, a mark of the
//!   fence below every term that is left.

use crate::catalogue::{Catalogue, Miss, Renaming};
use crate::configuration::CANDIDATES_MAX;
use crate::local::Sender;
use crate::names::Ranks;
use crate::world::{Holder, World};

/// Where each candidate stands after sorting: `order[new] = old`.
pub(crate) type Order = [u8; CANDIDATES_MAX];

/// The representative of a world, and how its candidates were sorted.
pub(crate) fn canonical(catalogue: &Catalogue, mut world: World) -> Result<(World, Order), Miss> {
    let candidates = catalogue.configuration.candidates;
    let record_token = world.record.map_or(0, |record| record.token);
    forget(catalogue, &mut world);
    for local in &mut world.locals[..candidates] {
        if catalogue.brief(*local).ageing.0 & !(1_u32 << record_token) != 0 {
            *local = catalogue.aged(*local, record_token)?;
        }
    }
    let mut tokens = Ranks::default();
    for local in &world.locals[..candidates] {
        tokens.0 |= catalogue.brief(*local).tokens.0;
    }
    let (forced, lowest) = (world.forced, tokens.0.trailing_zeros());
    if forced != 0 && tokens.0 & (1 << forced) == 0 {
        world.forced = 0;
    }
    if u32::from(world.mark) < lowest {
        world.mark = 0;
    }
    for token in [record_token, world.mark] {
        tokens.add_name(token);
    }
    let tokens_fit = tokens.has_no_gap();
    for place in 0..candidates {
        let local = world.locals[place];
        let brief = catalogue.brief(local);
        let (mut present, mut former) = (brief.present, brief.former);
        if let (Some(record), Holder::Place(holder, by)) = (world.record, world.holder)
            && usize::from(holder) == place
        {
            match by {
                Sender::Present => present.add_name(record.attempt),
                Sender::Former => former.add_name(record.attempt),
            }
        }
        if tokens_fit && present.has_no_gap() && former.has_no_gap() {
            continue;
        }
        world.locals[place] = catalogue.renamed(Renaming {
            local,
            tokens,
            present,
            former,
        })?;
        if let (Some(record), Holder::Place(holder, by)) = (&mut world.record, world.holder)
            && usize::from(holder) == place
        {
            let attempts = match by {
                Sender::Present => present,
                Sender::Former => former,
            };
            record.attempt = attempts.name(record.attempt);
        }
    }
    if !tokens_fit {
        if let Some(record) = &mut world.record {
            record.token = tokens.name(record.token);
        }
        world.mark = tokens.name(world.mark);
        world.forced = tokens.name(world.forced);
    }
    let order = sort(&mut world, candidates);
    Ok((world, order))
}

/// Forgets a holder that nobody can tell from any other stranger.
fn forget(catalogue: &Catalogue, world: &mut World) {
    if let Holder::Place(place, by) = world.holder {
        let brief = catalogue.brief(world.locals[usize::from(place)]);
        let may_act = match by {
            Sender::Present => brief.present_may_act,
            Sender::Former => brief.former_may_act,
        };
        if !may_act {
            world.holder = Holder::Gone;
        }
    }
    if let (Holder::Gone, Some(record)) = (world.holder, &mut world.record) {
        record.attempt = 0;
    }
}

fn sort(world: &mut World, candidates: usize) -> Order {
    let mut order: Order = [0, 1, 2];
    let holder = |place: u8| matches!(world.holder, Holder::Place(held, _) if held == place);
    let key = |place: u8| (world.locals[usize::from(place)], holder(place));
    order[..candidates].sort_unstable_by_key(|place| key(*place));
    let sorted = order.map(|place| world.locals[usize::from(place)]);
    if let Holder::Place(held, by) = world.holder {
        let place = order.iter().position(|place| *place == held).unwrap_or(0);
        world.holder = Holder::Place(u8::try_from(place).unwrap_or(0), by);
    }
    world.locals = sorted;
    order
}
