//! The sound model passes every case: the suite asks for nothing that the contract does not.

use tenure_conformance::model::ModelSubject;
use tenure_conformance::{Fixture, suite};

async fn fixture() -> Fixture {
    Fixture::new(ModelSubject::new())
}

suite!(fixture);
