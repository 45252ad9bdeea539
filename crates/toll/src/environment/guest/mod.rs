//! Virtual machines in which trials run.

mod spec;

use std::path::Path;

use toll_wire::Outcome;
use toll_wire::guest::{GuestCommand, GuestEnd, GuestFacts, GuestTrial};

pub use spec::{Accelerator, AcceleratorChoice, GuestSpec};

/// The disks of a guest, sparse image files in a directory of the caller's. They
/// go with that directory.
#[derive(Debug)]
pub struct GuestDisk;

impl GuestDisk {
    /// Makes a work disk of `size_bytes` with ext4 on it, and lays the content of
    /// a directory there, if one is given, with the paths that it has in it.
    ///
    /// # Errors
    /// If mke2fs is missing or the content does not fit.
    pub fn create(
        directory: &Path,
        size_bytes: u64,
        content: Option<&Path>,
    ) -> Result<Self, String> {
        unimplemented!("{directory:?} {size_bytes} {content:?}")
    }
}

/// Why a guest is not up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootFailure {
    /// The caller was asked to stop.
    Interrupted,
    /// QEMU or something else is missing on this machine.
    Missing(String),
    /// It did not come up: the reason, with the last lines of its log.
    Failed(String),
}

/// A running guest. Dropping it ends it at once.
#[derive(Debug)]
pub struct Guest;

/// A stream of a command in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or the terminal.
    Output,
    /// Standard error.
    Error,
}

impl Guest {
    /// Why no guest can be had on this machine, if so: a program is missing.
    pub fn obstacle() -> Option<String> {
        unimplemented!()
    }

    /// Starts a guest and waits until it can be asked.
    ///
    /// # Errors
    /// Why it is not up; nothing of it is left then.
    pub fn boot(
        spec: &GuestSpec,
        disk: &GuestDisk,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, BootFailure> {
        unimplemented!("{spec:?} {disk:?} {}", interrupted())
    }

    /// What it is, as seen from inside.
    pub fn facts(&self) -> &GuestFacts {
        unimplemented!()
    }

    /// What executes its instructions.
    pub fn accelerator(&self) -> Accelerator {
        unimplemented!()
    }

    /// Runs one trial. `None` if an interrupt ended it, and the guest with it.
    ///
    /// A guest that dies or no longer answers makes a failed trial of it, with
    /// the last lines of the guest's log; it is not alive then.
    pub fn trial(&mut self, trial: &GuestTrial, interrupted: &dyn Fn() -> bool) -> Option<Outcome> {
        unimplemented!("{trial:?} {}", interrupted())
    }

    /// Runs a command for a person.
    ///
    /// # Errors
    /// If the guest dies, or an interrupt comes.
    pub fn run(
        &mut self,
        command: &GuestCommand,
        on_output: &mut dyn FnMut(Stream, &[u8]),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<GuestEnd, String> {
        on_output(Stream::Output, b"");
        unimplemented!("{command:?} {}", interrupted())
    }

    /// Whether it can be asked still.
    pub fn is_alive(&self) -> bool {
        unimplemented!()
    }

    /// The kernel's log so far; of a long one the last part.
    pub fn log(&self) -> String {
        unimplemented!()
    }

    /// Has it bring its disks to rest and switch itself off; one that does not
    /// is ended.
    pub fn end(self) {}
}
