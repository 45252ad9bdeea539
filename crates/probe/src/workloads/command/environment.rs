//! Environment variables that the measured command, and the commands run before
//! and after it, inherit from the probe.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use toll_wire::{
    CommandRequest, Failure, ITERATION_VARIABLE, Numbering, PADDING_VARIABLE, Variable,
};

use crate::failure;

pub fn set_all(request: &CommandRequest) -> Result<(), Failure> {
    if let Some(inherited) = &request.inherited {
        inherit(inherited);
    }
    for (name, value) in &request.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(failure::failed(format!(
                "cannot set the variable {name:?} to {value:?}: a name must not be empty or \
                 contain `=`, and neither name nor value may contain NUL; choose others"
            )));
        }
        set(name, value);
    }
    Ok(())
}

/// Replaces the probe's variables with the user's. The probe was started without the user's
/// variables, so none of them changed how it was loaded or how it allocates.
fn inherit(variables: &[Variable]) {
    let own: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in own.iter().filter(|name| *name != PADDING_VARIABLE) {
        // SAFETY: as in `set`.
        unsafe { std::env::remove_var(name) }
    }
    let parts = variables.iter().filter_map(Variable::parts);
    for (name, value) in parts.filter(|(name, _)| *name != PADDING_VARIABLE.as_bytes()) {
        set(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
}

/// Sets a variable of this process. Setting it on the command alone would copy the
/// whole environment within the timed region.
fn set(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
    // SAFETY: only the standard library reads the environment here, under its own
    // lock. The probe's threads only move bytes.
    unsafe { std::env::set_var(name, value) }
}

/// Passes the number of the iteration to commands, in [`ITERATION_VARIABLE`].
pub struct IterationNumbers {
    numbering: Option<Numbering>,
    warmups: u64,
    begun: u64,
}

impl IterationNumbers {
    pub fn new(numbering: Option<Numbering>, warmups: u32) -> Self {
        Self {
            numbering,
            warmups: warmups.into(),
            begun: 0,
        }
    }

    pub fn begin(&mut self) {
        if let Some(number) = self.next() {
            set(ITERATION_VARIABLE, &number);
        }
    }

    fn next(&mut self) -> Option<String> {
        let numbering = self.numbering?;
        let begun = self.begun;
        self.begun += 1;
        Some(match numbering.iterations_before {
            Some(before) if begun >= self.warmups => (before + begun - self.warmups).to_string(),
            _ => format!("warmup-{}", numbering.warmups_before + begun),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(iterations_before: Option<u64>, expected: [&str; 4]) {
        let numbering = Numbering {
            warmups_before: 5,
            iterations_before,
        };
        let mut numbers = IterationNumbers::new(Some(numbering), 2);
        assert_eq!(expected.map(|_| numbers.next().unwrap()), expected);
    }

    #[test]
    fn warm_ups_and_iterations_are_counted_apart() {
        check(Some(7), ["warmup-5", "warmup-6", "7", "8"]);
        check(None, ["warmup-5", "warmup-6", "warmup-7", "warmup-8"]);
        assert_eq!(IterationNumbers::new(None, 2).next(), None);
    }
}
