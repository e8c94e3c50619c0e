use super::{DriverHandle, Message};
use tenure_core::LeaseName;

/// Withdraws a campaign whose future is dropped.
pub(crate) struct Withdrawal<'a> {
    pub(crate) name: &'a LeaseName,
    /// `None` where there is nothing to withdraw.
    pub(crate) driver: Option<&'a DriverHandle>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if let Some(driver) = self.driver {
            let name = self.name.clone();
            // One that is gone holds nothing any more.
            let _ = driver.tell(Message::Withdraw { name });
        }
    }
}
