//! The compare-and-swap adaptor passes every case, over stores that name their versions differently, with
//! observers whose clocks run apart as far as it allows.

mod numbered {
    use tenure_conformance::observed::ObservedSubject;
    use tenure_conformance::{Fixture, suite};

    async fn fixture() -> Fixture {
        Fixture::new(ObservedSubject::numbered())
    }

    suite!(fixture);
}

mod hashed {
    use tenure_conformance::observed::ObservedSubject;
    use tenure_conformance::{Fixture, suite};

    async fn fixture() -> Fixture {
        Fixture::new(ObservedSubject::hashed())
    }

    suite!(fixture);
}
