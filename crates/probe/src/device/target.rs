//! The file that a device receives into.

use std::os::fd::BorrowedFd;

use rustix::fs::ftruncate;

use crate::workloads::copy::mover::CallError;

pub(super) struct Target<'a> {
    pub(super) file: BorrowedFd<'a>,
    pub(super) size_bytes: u64,
    pub(super) on_arrival: &'a mut dyn FnMut(),
    pub(super) calls: u64,
}

impl Target<'_> {
    pub(super) fn arrived(&mut self) {
        if self.calls == 0 {
            (self.on_arrival)();
        }
        self.calls += 1;
    }

    /// Notes the first arrival, like [`Self::arrived`], for a mapped file. As published, the file
    /// grows when its first bytes have arrived. If it grew before the sender begins, growing would
    /// not be part of the measured time.
    pub(super) fn arrived_for_mapping(&mut self) -> Result<(), CallError> {
        let is_first = self.calls == 0;
        self.arrived();
        if is_first {
            ftruncate(self.file, self.size_bytes)
                .map_err(|errno| CallError::new("ftruncate", errno))?;
        }
        Ok(())
    }
}
