//! The suite that every store passes, on a cluster of three: what one member confirms, all know.

use crate::common::shared_three;
use tenure_conformance::Fixture;

async fn fixture() -> Fixture {
    crate::conformance::on(shared_three().await).await
}

tenure_conformance::suite!(fixture);
