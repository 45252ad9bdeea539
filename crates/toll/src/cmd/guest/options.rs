//! What a guest for a person is to be, and booting it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use toll_wire::guest::{GuestCommand, GuestEnd, HOST_FILES_DIRECTORY};

use super::Failure;
use crate::environment::guest::{
    AcceleratorChoice, BootFailure, Guest, GuestDisk, GuestPlace, GuestSpec, Input, RunFailure,
    Stream,
};
use crate::environment::kernel::{self, Variant};
use crate::spec::quantity::parse_size;
use crate::trial::{Interrupt, Probe};

/// Seed of a guest under a clock of instructions; what a person does there need
/// not differ from one time to the next.
const SEED: u64 = 1;

#[derive(Debug, Args)]
pub(super) struct GuestOptions {
    /// Kernel that it runs (see `toll kernel list`)
    #[arg(long, value_name = "KERNEL", default_value = "toll")]
    kernel: Variant,
    /// Its memory
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory: u64,
    /// Its virtual CPUs
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    vcpus: u32,
    /// Its swap; none without this
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    swap: Option<u64>,
    /// Size of its disk, which is mounted at /work
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    disk: u64,
    /// What executes its instructions: auto (KVM if guests boot under it here,
    /// else TCG), kvm, tcg, or icount (TCG with a clock that counts them)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = accelerator)]
    accelerator: AcceleratorChoice,
    /// Put behind its kernel's command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        allow_hyphen_values = true
    )]
    command_line: String,
    /// Take a file of the host into it, to /host/NAME
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// Write its kernel's log, then with what is merely told, to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn accelerator(word: &str) -> Result<AcceleratorChoice, String> {
    AcceleratorChoice::from_word(word)
        .ok_or_else(|| format!("choose one of {}", AcceleratorChoice::WORDS.join(", ")))
}

/// A guest with what it lives on. What is dropped first stands first.
pub(super) struct Booted {
    pub guest: Guest,
    _place: GuestPlace,
}

impl GuestOptions {
    /// Boots the guest.
    ///
    /// # Errors
    /// If something is missing or it does not come up; an interrupt gives its
    /// exit status.
    pub fn boot(&self, interrupt: &Interrupt) -> Result<Booted, Stopped> {
        let spec = self.spec()?;
        let place = GuestPlace::make().map_err(anyhow::Error::msg)?;
        let disk = GuestDisk::create(&place.directory().join("disk"), self.disk, None)
            .map_err(Failure::Prerequisite)?;
        let interrupted = || interrupt.signal().is_some();
        let booted = Guest::boot_logged(&spec, &disk, self.log.as_deref(), &interrupted);
        match booted {
            Ok(guest) => Ok(Booted {
                guest,
                _place: place,
            }),
            Err(BootFailure::Interrupted) => Err(Stopped::interrupted(interrupt)),
            Err(BootFailure::Missing(message)) => Err(Failure::Prerequisite(message).into()),
            Err(BootFailure::Failed(message)) => Err(anyhow::Error::msg(message).into()),
        }
    }

    fn spec(&self) -> anyhow::Result<GuestSpec> {
        let mut names = BTreeSet::new();
        let mut extra_files = Vec::new();
        for file in &self.add {
            let name = file.file_name().unwrap_or_default();
            if !file.is_file() || !names.insert(name) {
                let why = match file.is_file() {
                    true => "another file of that name is added, too; rename one",
                    false => "it is no regular file; name files one by one",
                };
                bail!(Failure::Usage(format!(
                    "cannot add {}: {why}",
                    file.display()
                )));
            }
            extra_files.push((file.clone(), Path::new(HOST_FILES_DIRECTORY).join(name)));
        }
        // A person who asks for the log wants to see it all.
        let verbosity = self.log.as_ref().map_or("", |_| "loglevel=7 ");
        Ok(GuestSpec {
            kernel: kernel::find(self.kernel).map_err(Failure::Prerequisite)?,
            memory_bytes: self.memory,
            vcpus: self.vcpus,
            swap_bytes: self.swap.unwrap_or(0),
            command_line: format!("{verbosity}{}", self.command_line),
            accelerator: self.accelerator,
            seed: SEED,
            probe: Probe::find()
                .map_err(Failure::Prerequisite)?
                .path()
                .to_owned(),
            extra_files,
        })
    }
}

/// Why there is no end of a command to tell of.
pub(super) enum Stopped {
    Failed(anyhow::Error),
    /// A signal came; its number.
    Signal(i32),
}

impl Stopped {
    fn interrupted(interrupt: &Interrupt) -> Self {
        Self::Signal(interrupt.signal().unwrap_or(signal_hook::consts::SIGINT))
    }
}

impl<E: Into<anyhow::Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Booted {
    /// Runs a command to its end and ends the guest.
    ///
    /// # Errors
    /// If it cannot be run, the guest dies, or a signal comes.
    pub fn run(
        mut self,
        command: &GuestCommand,
        input: Input<'_>,
        on_output: &mut dyn FnMut(Stream, &[u8]),
        interrupt: &Interrupt,
    ) -> Result<GuestEnd, Stopped> {
        let interrupted = || interrupt.signal().is_some();
        match self.guest.run(command, input, on_output, &interrupted) {
            Ok(end) => {
                self.guest.end();
                Ok(end)
            }
            Err(RunFailure::Interrupted) => Err(Stopped::interrupted(interrupt)),
            Err(RunFailure::Refused(why) | RunFailure::Dead(why)) => {
                Err(anyhow::Error::msg(why).into())
            }
        }
    }
}

/// The exit status of this program for a command's end in a guest.
pub(super) fn exit_code(end: Result<GuestEnd, Stopped>) -> anyhow::Result<std::process::ExitCode> {
    use crate::cmd::run::exit_code_of;
    match end {
        Ok(GuestEnd {
            signal: Some(signal),
            ..
        }) => Ok(exit_code_of(signal)),
        Ok(end) => {
            let status = end.status.and_then(|status| u8::try_from(status).ok());
            Ok(std::process::ExitCode::from(status.unwrap_or(1)))
        }
        Err(Stopped::Signal(signal)) => Ok(exit_code_of(signal)),
        Err(Stopped::Failed(failure)) => Err(failure),
    }
}
