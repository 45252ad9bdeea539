//! Virtual machines in which trials run.
//!
//! A guest is one QEMU process with a kernel of the caller's choice and the probe as its init. Its
//! only network joins the guests of a pair. `toll` sends requests over a virtio serial port. The
//! guest's console carries the kernel's log.

mod accelerator;
mod arguments;
mod boot;
mod command;
mod confine;
mod count;
mod counting;
mod disk;
mod initramfs;
mod life;
mod log;
mod machine;
mod pair;
mod place;
mod plugin;
mod port;
mod spec;
mod tsc;

use std::path::PathBuf;

use toll_system::process;

use super::kernel::Kernel;
pub use accelerator::kvm_state;
pub use command::{Input, Stream};
pub use count::{Counted, count};
pub use disk::GuestDisk;
pub use initramfs::shell_obstacle;
pub use life::{Guest, GuestFailure};
pub use log::names_lack_of_memory;
pub use pair::GuestGroup;
pub use place::GuestPlace;
pub use spec::{Accelerator, AcceleratorChoice, GuestSpec};

/// Disk size of a guest that only tries KVM: the smallest for ext4 with a journal.
const TRIAL_DISK_BYTES: u64 = 16 << 20;

/// Returns why guests cannot run here; `None` if they can.
pub fn guest_obstacle() -> Option<String> {
    let missing = |program: &str, package: &str| match process::find(program) {
        Some(_) => None,
        None => Some(format!(
            "{program} is missing; install the package {package}"
        )),
    };
    missing(machine::PROGRAM, "qemu-system-x86").or_else(|| missing("mke2fs", "e2fsprogs"))
}

/// Describes what executes the instructions of guests here.
///
/// # Errors
///
/// If guests cannot run here.
pub(super) fn guest_state() -> Result<String, String> {
    match guest_obstacle() {
        Some(reason) => Err(reason),
        None => {
            let confined = confine::describe(&machine::program()?);
            Ok(match kvm_state() {
                Ok(detail) => format!("by KVM: {detail}; {confined}"),
                Err(why) => {
                    format!("by emulation (TCG), whose times mean nothing; KVM: {why}; {confined}")
                }
            })
        }
    }
}

/// Forgets the results for KVM, and boots a small guest, which tries KVM again.
pub fn retry_kvm(
    kernel: Kernel,
    probe: PathBuf,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), GuestFailure> {
    accelerator::forget().map_err(GuestFailure::Failed)?;
    let place = GuestPlace::make().map_err(GuestFailure::Failed)?;
    let disk = GuestDisk::create(&place.directory().join("disk"), TRIAL_DISK_BYTES, None)
        .map_err(GuestFailure::Missing)?;
    let spec = GuestSpec::new(kernel, probe);
    Guest::boot(&spec, &disk, interrupted)?.end();
    Ok(())
}
