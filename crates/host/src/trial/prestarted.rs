//! A probe that waits for its request.

use std::process::Child;

use toll_system::children::end_tree;

/// A probe process that has no request yet. Dropping it kills the process.
///
/// Starting a program takes about as long as saving a trial, so both happen in parallel. The probe
/// only starts up and waits.
#[derive(Debug)]
pub struct PrestartedProbe {
    /// The probe's process; `None` once it was taken.
    child: Option<Child>,
    padding_bytes: usize,
}

impl PrestartedProbe {
    pub(super) fn new(child: Child, padding_bytes: usize) -> Self {
        Self {
            child: Some(child),
            padding_bytes,
        }
    }

    /// Number of bytes by which the probe's environment is padded.
    pub(super) fn padding_bytes(&self) -> usize {
        self.padding_bytes
    }

    pub(super) fn pid(&self) -> i32 {
        let id = self.child.as_ref().map_or(0, Child::id);
        i32::try_from(id).expect("PIDs are below 2^22")
    }

    /// Returns the probe's process, which the caller must now end.
    pub(super) fn into_child(mut self) -> Child {
        self.child.take().expect("it is taken once")
    }
}

impl Drop for PrestartedProbe {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end_tree(child);
        }
    }
}
