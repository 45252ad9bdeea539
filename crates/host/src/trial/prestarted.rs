//! A probe that waits for its request.

use std::process::Child;

use toll_system::children::end_tree;

/// A probe process that has no request yet. Dropping it ends the process.
///
/// Starting a program takes about as long as making a trial durable, so both
/// happen at once. The probe only comes up and waits.
#[derive(Debug)]
pub struct PrestartedProbe {
    /// None once it was taken.
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

    /// Bytes that its environment is padded with.
    pub(super) fn padding_bytes(&self) -> usize {
        self.padding_bytes
    }

    pub(super) fn pid(&self) -> i32 {
        let id = self.child.as_ref().map_or(0, Child::id);
        i32::try_from(id).expect("process numbers are below 2^22")
    }

    /// Its process, which the caller now looks after.
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
