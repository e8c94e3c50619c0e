//! A campaign, as whoever waits for its outcome has it.

use super::handle::Gone;
use super::message::{Message, NotWon, Queueing, Waiting, Won};
use super::{DriverHandle, Permit, Withdrawal};
use crate::sync::oneshot;
use std::time::Duration;
use tenure_core::LeaseName;

/// How a campaign is led.
pub(crate) struct Conditions {
    pub(crate) queueing: Queueing,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) progress_within: Option<Duration>,
    pub(crate) permit: Option<Permit>,
}

impl Conditions {
    /// As the driver's plan says.
    pub(crate) fn of(queueing: Queueing) -> Self {
        Self {
            queueing,
            max_hold: None,
            progress_within: None,
            permit: None,
        }
    }
}

/// A campaign under way; withdrawn if it is dropped.
pub(crate) struct Campaign<'a> {
    // Dropped before the withdrawal: the driver is to see that nobody waits when it is told to look.
    answer: oneshot::Receiver<Result<Won, NotWon>>,
    withdrawal: Withdrawal<'a>,
}

impl<'a> Campaign<'a> {
    /// Has the driver campaign from now on, which is told so by `say`:
    /// [`DriverHandle::tell`] or [`DriverHandle::ask`].
    pub(crate) fn begin(
        driver: &'a DriverHandle,
        say: impl FnOnce(&DriverHandle, Message) -> Result<(), Gone>,
        name: &'a LeaseName,
        conditions: Conditions,
    ) -> Result<Self, NotWon> {
        let Conditions {
            queueing,
            max_hold,
            progress_within,
            permit,
        } = conditions;
        let (won, answer) = oneshot::channel();
        let waiting = Waiting {
            name: name.clone(),
            won,
            driver: driver.clone(),
            queueing,
            max_hold,
            progress_within,
            permit,
        };
        say(driver, Message::Campaign(waiting)).map_err(|Gone| NotWon::Stopped)?;
        let withdrawal = Withdrawal {
            name,
            driver: Some(driver),
        };
        Ok(Self { answer, withdrawal })
    }

    /// `None` if what was won was not taken up in time.
    pub(crate) async fn outcome(mut self) -> Result<Option<Won>, NotWon> {
        let outcome = (&mut self.answer).await;
        self.withdrawal.driver = None;
        match outcome {
            Ok(Ok(won)) => Ok(won.take_up()),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(NotWon::Stopped),
        }
    }
}
