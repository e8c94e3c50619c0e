use crate::site::Site;
use tenure_core::{Finding, StoreError};
impl Site {
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(Vec::new())
    }
}
