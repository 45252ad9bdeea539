//! Virtual machines in which trials run.
//!
//! A guest is one QEMU process without a network, with a kernel of the caller's
//! choice and the probe as its init. `toll` asks it over a virtio serial port;
//! its console is the kernel's log.

mod accelerator;
mod arguments;
mod command;
mod disk;
mod initramfs;
mod life;
mod log;
mod machine;
mod port;
mod spec;
mod tsc;

pub use accelerator::{forget_kvm, kvm_state};
pub use command::{Input, RunFailure, Stream};
pub use disk::GuestDisk;
pub use life::{BootFailure, Guest};
pub use spec::{Accelerator, AcceleratorChoice, GuestSpec};

/// Why there can be no guests here, if there cannot.
pub fn guest_obstacle() -> Option<String> {
    machine::program().err().or_else(|| {
        crate::environment::process::find("mke2fs")
            .is_none()
            .then(|| "mke2fs is missing; install the package e2fsprogs".to_owned())
    })
}
