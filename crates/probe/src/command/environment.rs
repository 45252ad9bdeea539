//! Variables that commands, and what is run around them, inherit from the probe.

use toll_wire::{CommandRequest, Failure, ITERATION_VARIABLE, Numbering};

use crate::failure;

pub fn set_all(request: &CommandRequest) -> Result<(), Failure> {
    for (name, value) in &request.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(failure::failed(format!(
                "cannot set the variable {name:?} to {value:?}: a name is not empty and has no `=`, \
                 and neither has a NUL; choose others"
            )));
        }
        set(name, value);
    }
    Ok(())
}

/// Sets a variable of this process. A variable of the command alone would have the
/// whole environment copied within the timed region.
fn set(name: &str, value: &str) {
    // SAFETY: only the standard library reads the environment here, under its own
    // lock. The probe's threads only move bytes.
    unsafe { std::env::set_var(name, value) }
}

/// Tells commands which iteration they are.
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
