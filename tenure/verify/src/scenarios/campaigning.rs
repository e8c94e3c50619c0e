//! Campaigns: withdrawn, repeated, won while nobody looks.

use crate::clock;
use crate::election::CampaignError;
use crate::site::{Site, any_pace, any_weather, check_events, pause, some_time};
use crate::store::Weather;
use shuttle::future::block_on;
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

/// A campaign is dropped about when it is won: nothing stays held, and the next one is won.
pub(super) fn cancelled_campaign_against_grant() {
    let site = Site::begin(any_pace(), any_weather());
    let election = site.election("a");
    let mut events = election.events();
    for _ in 0..2 {
        let patience = some_time(Duration::from_millis(40));
        drop(block_on(clock::timeout(patience, election.campaign())));
    }
    let leadership = site.lead(&election);
    site.look(&leadership);
    site.end_work(&leadership);
    drop(leadership);
    drop(block_on(clock::timeout(
        some_time(Duration::from_millis(40)),
        election.campaign(),
    )));
    block_on(election.close());
    site.wait_until_nothing_runs();
    site.check_nothing_is_renewed();
    check_events(&mut events);
}

/// A second campaign of one election is refused, and dropping it does not harm the first.
pub(super) fn second_campaign_against_first() {
    let site = Site::begin(any_pace(), any_weather());
    let election = Arc::new(site.election("a"));
    let hasty = {
        let election = election.clone();
        thread::spawn(move || {
            let patience = some_time(Duration::from_millis(8));
            drop(block_on(clock::timeout(patience, election.campaign())));
        })
    };
    let leadership = loop {
        match block_on(election.campaign()) {
            Ok(leadership) => break leadership,
            Err(CampaignError::Busy(_)) => pause(Duration::from_millis(10)),
            Err(error) => panic!("a campaign that nobody withdrew ended: {error}"),
        }
    };
    hasty.join().expect("the hasty one found nothing");
    drop(leadership);
    let election = Arc::into_inner(election).expect("the last handle");
    block_on(election.close());
    site.wait_until_nothing_runs();
    site.check_nothing_is_renewed();
}

/// A loss was told: whoever campaigns then is not refused, though its thread may not know of the loss yet.
pub(super) fn campaign_after_a_loss() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    let leadership = site.lead(&election);
    site.store.turn(Weather::Failing);
    let loss = block_on(leadership.lost());
    assert_eq!(loss.token, leadership.token());
    site.store.turn(Weather::Fair);
    let next = block_on(election.campaign()).expect("a lost term keeps nobody from campaigning");
    site.end_work(&leadership);
    drop(leadership);
    site.look(&next);
    drop(next);
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}
