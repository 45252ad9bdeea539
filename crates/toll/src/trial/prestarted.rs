//! A probe that waits for its request.

use std::process::Child;

use crate::environment::children::end_tree;

/// A probe that was started and has not been asked yet. It is ended if it never
/// is.
///
/// To start a program and to make a trial durable takes about as long. Both at
/// once take the time of one, and the probe does nothing but come up and wait.
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
