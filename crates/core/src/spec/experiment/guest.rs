//! The guests that an experiment's trials run in.

use super::Experiment;
use crate::spec::guest::{IN_GUEST, PLACE};
use crate::spec::{GuestSettings, Level};

impl Experiment {
    /// Whether `name` is a parameter or knob of this experiment's guests.
    pub fn is_of_guest(&self, name: &str) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.has(name))
    }

    /// Returns the names of the kernels that guests of this experiment boot.
    pub fn kernels(&self) -> Vec<String> {
        const KERNEL: &str = "kernel";
        let fixed = self.guest.iter();
        let fixed = fixed.flat_map(|guest| guest.parameters.iter());
        let all = fixed.chain(self.varied().filter(|_| self.guest.is_some()));
        let named = all.filter(|(name, _)| *name == KERNEL);
        named.map(|(_, level)| level.text.clone()).collect()
    }

    /// Moves all trials into guests, with default settings unless the experiment has
    /// its own.
    pub fn move_into_guest(&mut self) {
        let guest = self.guest.get_or_insert_with(GuestSettings::default);
        for factor in &self.factors {
            guest.parameters.remove(&factor.name);
        }
        if !self.factors.iter().any(|factor| factor.name == PLACE) {
            let inside = Level::new(IN_GUEST);
            guest.parameters.insert(PLACE.to_owned(), inside);
        }
    }
}
