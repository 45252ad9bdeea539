//! Counts the instructions of a guest's trials by function.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toll_wire::guest::PATH_LENGTH;
use toll_wire::{Outcome, TrialData};

use super::boot::Boot;
use super::plugin;
use crate::count::{Symbols, functions_in_the_middle};

/// The plugin's counts in a guest, and the kernel's functions.
#[derive(Debug)]
pub(super) struct Counting {
    directory: PathBuf,
    symbols: Option<Symbols>,
    /// Whether modules are inserted for each trial, perhaps at other addresses each time.
    has_trial_modules: bool,
}

impl Counting {
    pub fn new(boot: &Boot<'_>) -> Self {
        Self {
            directory: boot.disk.directory().to_owned(),
            symbols: None,
            has_trial_modules: !boot.spec.kernel.trial_modules.is_empty(),
        }
    }

    pub fn lacks_symbols(&self) -> bool {
        self.symbols.is_none() || self.has_trial_modules
    }

    /// Adds to a trial the counts that were made during it. If there are none, a note says why.
    pub fn add_to(&mut self, outcome: Outcome, symbols: Option<String>) -> Outcome {
        if let Some(lines) = symbols {
            self.symbols = Some(Symbols::read(&lines));
        }
        // Earlier counts must not be part of the next trial.
        let counts = plugin::take_counts(&self.directory);
        let Outcome::Completed(mut data) = outcome else {
            return outcome;
        };
        let functions = counts.map_err(|error| error.to_string());
        match functions.and_then(|counts| self.functions(&counts, &data)) {
            Ok(functions) => data.functions = functions,
            Err(why) => data.notes.push(format!("functions are not known: {why}")),
        }
        Outcome::Completed(data)
    }

    fn functions(&self, counts: &[u8], data: &TrialData) -> Result<BTreeMap<String, u64>, String> {
        let samples = data.samples.iter();
        let lengths = samples.filter_map(|sample| sample.metrics.get(PATH_LENGTH).copied());
        let lengths: Vec<f64> = lengths.collect();
        let symbols = self.symbols.as_ref();
        let symbols = symbols.ok_or("the kernel does not report its symbols")?;
        functions_in_the_middle(counts, symbols, &lengths)
    }
}
