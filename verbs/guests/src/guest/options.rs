//! Options of the guests that a user runs, and the boot of these guests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use signal_hook::consts::SIGINT;
use toll_core::spec::guest::GuestAccelerator;
use toll_core::spec::quantity::{parse_duration, parse_size};
use toll_host::environment::guest::{
    AcceleratorChoice, Guest, GuestDisk, GuestFailure, GuestPlace, GuestSpec, names_lack_of_memory,
};
use toll_host::environment::kernel;
use toll_host::trial::Probe;
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, exit_code_of, output};
use toll_wire::guest::{GuestEnd, HOST_FILES_DIRECTORY};

#[derive(Debug, Args)]
pub struct GuestOptions {
    /// Kernel of the guest (see `toll kernel list`)
    #[arg(long, value_name = "KERNEL", default_value = "toll")]
    kernel: String,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory: u64,
    /// Number of virtual CPUs
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    vcpus: u32,
    /// Size of the swap [default: no swap]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    swap: Option<u64>,
    /// Size of the disk, which is mounted at /work
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    disk: u64,
    /// What executes the guest's instructions: auto (KVM if guests boot under it here,
    /// else TCG), kvm, tcg, or icount (TCG with a clock that counts instructions)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = accelerator)]
    accelerator: AcceleratorChoice,
    /// Text to append to the kernel's command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        allow_hyphen_values = true
    )]
    command_line: String,
    /// Copy a file of the host into the guest, to /host/NAME
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// Time limit of the command [default: 1h; none for an interactive shell]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Write the kernel's log, including informational messages, to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn accelerator(word: &str) -> Result<AcceleratorChoice, String> {
    let named = toll_wire::from_word::<GuestAccelerator>(word).map(AcceleratorChoice::from);
    let words = toll_wire::words::<GuestAccelerator>;
    named.ok_or_else(|| format!("choose one of {}", words().join(", ")))
}

/// Default time limit of a command that is not interactive.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl GuestOptions {
    /// Time limit of the guest's command; `None` for no limit.
    pub fn timeout(&self, is_interactive: bool) -> Option<Duration> {
        let default = (!is_interactive).then_some(TIMEOUT);
        self.timeout.or(default)
    }

    /// Boots the guest, runs `work` in it, and ends the guest. Returns this program's exit status,
    /// which follows from the command's end.
    pub fn run(
        &self,
        interrupt: &Interrupt,
        work: impl FnOnce(&mut Guest, &dyn Fn() -> bool) -> Result<GuestEnd, GuestFailure>,
    ) -> anyhow::Result<ExitCode> {
        let spec = self.spec()?;
        let place = GuestPlace::make().map_err(anyhow::Error::msg)?;
        let disk = GuestDisk::create(&place.directory().join("disk"), self.disk, None)
            .map_err(Failure::Prerequisite)?;
        let interrupted = || interrupt.signal().is_some();
        let booted = Guest::boot_logged(&spec, &disk, self.log.as_deref(), &interrupted);
        let end = booted.and_then(|mut guest| {
            let end = work(&mut guest, &interrupted)?;
            if names_lack_of_memory(&guest.end()) {
                output::note(
                    "the guest ran out of memory, and its kernel killed a process; give it more \
                     with --memory or --swap",
                );
            }
            Ok(end)
        });
        match end {
            Ok(GuestEnd {
                signal: Some(signal),
                ..
            }) => Ok(exit_code_of(signal)),
            Ok(end) => {
                let status = end.status.and_then(|status| u8::try_from(status).ok());
                Ok(ExitCode::from(status.unwrap_or(1)))
            }
            Err(GuestFailure::Interrupted) => {
                Ok(exit_code_of(interrupt.signal().unwrap_or(SIGINT)))
            }
            Err(GuestFailure::Missing(why)) => bail!(Failure::Prerequisite(why)),
            Err(GuestFailure::Failed(why)) => bail!(why),
        }
    }

    fn spec(&self) -> anyhow::Result<GuestSpec> {
        let mut names = BTreeSet::new();
        let mut extra_files = Vec::new();
        for file in &self.add {
            let name = file.file_name().unwrap_or_default();
            if !file.is_file() || !names.insert(name) {
                let why = if file.is_file() {
                    "another added file has the same name; rename one"
                } else {
                    "it is not a regular file; name files one by one"
                };
                bail!(Failure::Usage(format!(
                    "cannot add {}: {why}",
                    file.display()
                )));
            }
            extra_files.push((file.clone(), Path::new(HOST_FILES_DIRECTORY).join(name)));
        }
        // A user who asks for the log wants all messages.
        let verbosity = self.log.as_ref().map_or("", |_| "loglevel=7 ");
        let probe = Probe::find().map_err(Failure::Prerequisite)?;
        kernel::require(&self.kernel).map_err(Failure::Usage)?;
        let kernel = kernel::find(&self.kernel).map_err(Failure::Prerequisite)?;
        Ok(GuestSpec {
            memory_bytes: self.memory,
            vcpus: self.vcpus,
            swap_bytes: self.swap.unwrap_or(0),
            command_line: format!("{verbosity}{}", self.command_line),
            accelerator: self.accelerator,
            extra_files,
            ..GuestSpec::new(kernel, probe.path().to_owned())
        })
    }
}
