//! What an acquisition leaves in members when it comes to no term: it is let go of, or it would hold
//! everybody up for a ttl, and nobody could see it.
//!
//! What was taken and never confirmed is let go of by the attempt's own name: a term is left alone, also one
//! of this attempt that was granted before or is granted later. Where this comes between the taking and the
//! confirming of a repeated try, the member confirms nothing, and is taken anew.
//!
//! A token that a member has confirmed is let go of only where it is out of reach: so many members know of a
//! certain token, or of a higher one, that no majority is without one of them, and this one is lower. Tokens
//! never fall in a member, and it confirms only what is above its own. So from then on no majority ever
//! confirms a lower one: it does not matter who asks, how often, how late, or what the members say that were
//! not heard. A lower one that was granted before is over, as the majority that had it has one of these
//! members, too. And whatever this attempt is granted later is above, as one of these members has confirmed
//! it: what lets go of lower ones leaves it alone, whenever it comes, and also if it comes twice. A member
//! that restarts with what it has confirmed knows the same as before. The token itself stays in the record,
//! as what a candidate has left: nothing ever lowers it. Where the attempt itself was granted a higher token,
//! the members that have confirmed that one are those.

use super::Quorum;
use super::candidacy::on_record;
use crate::fault::Deed;
use crate::script::UNDO;
use crate::site::{Site, subject};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Acquire, FencingToken, Release, StoreError};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Before members that did not answer are asked again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long one member is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// What is to be let go of.
pub(super) struct Remains {
    pub(super) members: BTreeSet<usize>,
    pub(super) given_back: Vec<Release>,
    pub(super) below: Option<FencingToken>,
}

impl Remains {
    /// Asks the members until each has answered, or all of it has run out.
    pub(super) async fn let_go(self, quorum: &Quorum, request: &Acquire) {
        let runs_out = Instant::now() + Duration::from_millis(request.ttl.as_millis());
        let (mut members, mut pause) = (self.members, PAUSE);
        loop {
            // Not as a member is asked otherwise: whether it is silent is for those to know who wait for it.
            let mut asked = JoinSet::new();
            for place in members.iter().copied() {
                let site = Arc::clone(&quorum.members[place].site);
                let asking = let_go_in(site, request.clone(), self.given_back.clone(), self.below);
                asked.spawn(async move { (place, tokio::time::timeout(ANSWER_TIME_MAX, asking).await) });
            }
            while let Some(answer) = asked.join_next().await {
                if let Ok((place, Ok(Ok(())))) = answer {
                    members.remove(&place);
                }
            }
            if members.is_empty() || Instant::now() + pause > runs_out {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }
}

async fn let_go_in(
    site: Arc<Site>,
    request: Acquire,
    given_back: Vec<Release>,
    below: Option<FencingToken>,
) -> Result<(), StoreError> {
    for released in site.release(&given_back).await {
        released?;
    }
    undo(site, request, below).await
}

pub(super) async fn undo(
    site: Arc<Site>,
    request: Acquire,
    below: Option<FencingToken>,
) -> Result<(), StoreError> {
    let arguments = on_record(&site, &request.name)
        .with(request.candidate.incarnation)
        .with(request.attempt)
        .with(below.map_or(0, FencingToken::number));
    site.run(&UNDO, &arguments, Deed::Write, &subject(&request.name))
        .await?;
    Ok(())
}
