//! The QEMU process of a guest.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use toll_system::process;
use toll_wire::guest::PairSide;

use super::arguments::{self, Descriptors};
use super::boot::{Boot, Card};
use super::confine::Confinement;
use super::disk::KERNEL;
use super::log::Log;
use super::plugin;
use super::spec::Accelerator;
use super::tsc;

/// Interval between checks whether QEMU has ended.
const END_POLL: Duration = Duration::from_millis(5);

/// The program that runs guests.
pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// Finds QEMU.
pub(super) fn program() -> Result<PathBuf, String> {
    process::find(PROGRAM).ok_or_else(|| {
        format!("cannot start a guest: {PROGRAM} is missing; install the package qemu-system-x86")
    })
}

/// A running QEMU. Dropping this value kills it. So does the kernel when this program dies, or the
/// thread that started QEMU.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    /// The guest's console.
    pub console: Log,
    /// QEMU's own messages.
    pub words: Log,
}

/// The host's ends of the ports.
#[derive(Debug)]
pub(super) struct Ports {
    pub requests: UnixStream,
    pub output: UnixStream,
    pub error: UnixStream,
    /// The partner's end of the cable, for the main guest of a pair.
    pub cable: Option<UnixStream>,
}

impl Machine {
    /// Starts QEMU in the directory of the guest's disk.
    pub fn start(
        program: &Path,
        boot: &Boot<'_>,
        accelerator: Accelerator,
    ) -> io::Result<(Self, Ports)> {
        let log = boot.log.map(File::create).transpose()?;
        let directory = boot.disk.directory();
        if boot.spec.has_plugin(accelerator) {
            plugin::write(directory)?;
        }
        // QEMU's user may have no access to the cache.
        std::fs::copy(&boot.spec.kernel.image, directory.join(KERNEL))?;
        let disk_bytes = boot.disk.bytes().max(boot.spec.swap_bytes);
        let confinement = Confinement::new(program, accelerator, disk_bytes);
        confinement.hand_over(directory)?;
        let (requests, far_requests) = UnixStream::pair()?;
        let (output, far_output) = UnixStream::pair()?;
        let (error, far_error) = UnixStream::pair()?;
        let (own_end, cable) = match boot.card {
            Card::Main => UnixStream::pair().map(|(own, far)| (Some(own), Some(far)))?,
            Card::None | Card::Partner(_) => (None, None),
        };
        let card = match (boot.card, &own_end) {
            (Card::Partner(end), _) => Some((PairSide::Partner, end.as_raw_fd())),
            (_, Some(end)) => Some((PairSide::Main, end.as_raw_fd())),
            (_, None) => None,
        };
        let descriptors = Descriptors {
            requests: far_requests.as_raw_fd(),
            output: far_output.as_raw_fd(),
            error: far_error.as_raw_fd(),
            card,
        };
        let tsc_khz = tsc::khz(accelerator);
        let work = boot.disk.work();
        let mut command = Command::new(program);
        command
            .args(confinement.arguments())
            .args(arguments::qemu(
                boot.spec,
                accelerator,
                tsc_khz,
                descriptors,
                work,
            ))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A ^C at the terminal is for toll. toll then ends the guest.
            .process_group(0);
        hand_down(&mut command, descriptors, confinement);
        let child = command.spawn();
        let mut child = child.map_err(|error| confinement.explain(program, error))?;
        let console = Log::collect(child.stdout.take().expect("stdout is piped"), log);
        let words = Log::collect(child.stderr.take().expect("stderr is piped"), None);
        let machine = Self {
            child,
            console,
            words,
        };
        let ports = Ports {
            requests,
            output,
            error,
            cable,
        };
        // This process closes the guest's ends here. So only QEMU holds them, and they close when
        // QEMU ends.
        Ok((machine, ports))
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for QEMU's end until a deadline, and returns how it ended.
    pub fn ended_by(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(END_POLL),
                _ => return None,
            }
        }
    }

    /// Kills QEMU and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes a command inherit descriptors, be confined, and die with this program.
fn hand_down(command: &mut Command, descriptors: Descriptors, confinement: Confinement) {
    let parent = std::process::id();
    let Descriptors {
        requests,
        output,
        error,
        card,
    } = descriptors;
    let card = card.map(|(_, descriptor)| descriptor);
    let prepare = move || {
        confinement.enter()?;
        // Comes after the change of the user, which clears this setting.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the previous call, there is no signal.
        if getppid().is_none_or(|pid| pid.as_raw_pid().cast_unsigned() != parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        for descriptor in [requests, output, error].iter().chain(&card) {
            rustix::io::fcntl_setfd(borrow(descriptor), FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec, `prepare` only makes system calls by rustix, and allocates
    // nothing.
    unsafe { command.pre_exec(prepare) };
}

fn borrow(descriptor: &RawFd) -> BorrowedFd<'_> {
    // SAFETY: `Machine::start` or its caller holds this descriptor open until the process is
    // started. A forked process has it at the same number.
    unsafe { BorrowedFd::borrow_raw(*descriptor) }
}
