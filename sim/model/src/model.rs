use crate::catalogue::Catalogue;
use crate::configuration::{CANDIDATES_MAX, Configuration};
use crate::expand::Successor;
use crate::local::Local;
use crate::record::{Flaw, Rules};
use crate::sweep::successors;
use crate::world::{Holder, World};

/// Everything that can happen within the bounds of a configuration.
pub struct Model {
    pub(crate) catalogue: Catalogue,
}

impl Model {
    /// A model of candidates over a store that keeps the contract.
    ///
    /// # Panics
    /// With a configuration outside its ranges.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self::over(configuration, Rules::default())
    }

    /// The same over a store with a planted mistake, to prove that the model notices it.
    ///
    /// # Panics
    /// With a configuration outside its ranges.
    #[must_use]
    pub fn with_flaw(configuration: Configuration, flaw: Flaw) -> Self {
        Self::over(configuration, Rules { flaw: Some(flaw) })
    }

    fn over(configuration: Configuration, rules: Rules) -> Self {
        assert!(
            (1..=CANDIDATES_MAX).contains(&configuration.candidates),
            "{} candidates are outside 1 to {CANDIDATES_MAX}",
            configuration.candidates
        );
        Self {
            catalogue: Catalogue::new(configuration, rules),
        }
    }

    /// All candidates just started, none wants anything yet, no record.
    pub(crate) fn beginning(&mut self) -> World {
        let idle = self.catalogue.number(Local::started(Vec::new()));
        let mut world = World {
            locals: [0; CANDIDATES_MAX],
            record: None,
            holder: Holder::Gone,
            mark: 0,
            forced: 0,
        };
        world.locals[..self.catalogue.configuration.candidates].fill(idle);
        world
    }

    /// The next worlds, each with its representative. Works out what is not known yet.
    pub(crate) fn next(&mut self, world: &World, found: &mut Vec<Successor>, worlds: &mut Vec<World>) {
        while let Err(miss) = successors(&self.catalogue, world, found, worlds) {
            self.catalogue.fill(miss);
        }
    }
}
