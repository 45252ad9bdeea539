//! Which accelerator the choice `auto` comes to.
//!
//! That `/dev/kvm` opens says little: in a virtual machine it may be there and
//! every guest die or stand still. So KVM is used where a guest has booted under
//! it within a few seconds. What came out is kept, since each failure costs those
//! seconds, until the machine is another.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::disk::GuestDisk;
use super::life::{BootFailure, Guest};
use super::machine;
use super::place::GuestPlace;
use super::spec::{Accelerator, AcceleratorChoice, GuestSpec};
use crate::environment::kernel::{Kernel, Variant};
use crate::environment::{inspect, paths, process};

/// Longest that a guest may take to boot under KVM to be believed. It takes a
/// second where KVM works.
const TRIAL_PATIENCE: Duration = Duration::from_secs(10);

/// Size of the disk of a guest that only tries KVM: the least that holds ext4
/// with a journal.
const TRIAL_DISK_BYTES: u64 = 16 << 20;

/// Memory of a guest that only tries KVM; kernels of distributions need as much.
const TRIAL_MEMORY_BYTES: u64 = 512 << 20;

/// What a machine is, as far as KVM goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Host {
    kernel_release: String,
    cpu_model: String,
    qemu_version: String,
}

/// What came out of a boot under KVM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KvmTrial {
    host: Host,
    variant: Variant,
    /// Why no guest came up; `None` if one did.
    obstacle: Option<String>,
}

/// Boots a guest under KVM or TCG. `boot` boots it with an accelerator and a
/// patience, `with` with the usual patience.
pub(super) fn boot(
    spec: &GuestSpec,
    program: &Path,
    boot: &dyn Fn(Accelerator, Duration) -> Result<Guest, BootFailure>,
    with: &dyn Fn(Accelerator) -> Result<Guest, BootFailure>,
) -> Result<Guest, BootFailure> {
    if device_obstacle().is_some() {
        return with(Accelerator::Tcg);
    }
    let host = host(program).map_err(BootFailure::Failed)?;
    let trials = read(&paths::kvm_trials());
    let known = find(&trials, &host, spec.kernel.variant);
    if let Some(trial) = known {
        return with(match trial.obstacle {
            None => Accelerator::Kvm,
            Some(_) => Accelerator::Tcg,
        });
    }
    let (guest, obstacle) = match boot(Accelerator::Kvm, TRIAL_PATIENCE) {
        Ok(guest) => (guest, None),
        // A guest that does not come up under TCG either says nothing of KVM.
        Err(BootFailure::Failed(why)) => (with(Accelerator::Tcg)?, Some(why)),
        Err(other) => return Err(other),
    };
    let trial = KvmTrial {
        host,
        variant: spec.kernel.variant,
        obstacle,
    };
    remember(&paths::kvm_trials(), trials, trial);
    Ok(guest)
}

/// What is known of KVM on this machine: `Ok` where guests of some kernel boot
/// under it, else why TCG is used.
pub fn kvm_state() -> Result<String, String> {
    if let Some(why) = device_obstacle() {
        return Err(why);
    }
    let host = host(&machine::program()?)?;
    let trials = read(&paths::kvm_trials());
    let mut of_host = trials.iter().filter(|trial| trial.host == host);
    match of_host.clone().find(|trial| trial.obstacle.is_none()) {
        Some(trial) => Ok(format!(
            "a guest with kernel {} booted",
            trial.variant.word()
        )),
        None => Err(match of_host.find_map(|trial| trial.obstacle.clone()) {
            Some(why) => why,
            None => "not tried yet; the first guest tries it".into(),
        }),
    }
}

/// Forgets what is known of KVM and boots a small guest, which tries it again.
///
/// # Errors
/// If what is known cannot be forgotten, or no guest boots at all.
pub fn retry_kvm(
    kernel: Kernel,
    probe: PathBuf,
    interrupted: &dyn Fn() -> bool,
) -> Result<Accelerator, BootFailure> {
    let path = paths::kvm_trials();
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("cannot remove {}: {error}", path.display());
            return Err(BootFailure::Failed(message));
        }
        _ => {}
    }
    let place = GuestPlace::make().map_err(BootFailure::Failed)?;
    let disk = GuestDisk::create(&place.directory().join("disk"), TRIAL_DISK_BYTES, None)
        .map_err(BootFailure::Missing)?;
    let spec = GuestSpec {
        kernel,
        memory_bytes: TRIAL_MEMORY_BYTES,
        vcpus: 1,
        swap_bytes: 0,
        command_line: String::new(),
        accelerator: AcceleratorChoice::Auto,
        seed: 0,
        probe,
        extra_files: Vec::new(),
    };
    let guest = Guest::boot(&spec, &disk, interrupted)?;
    let accelerator = guest.accelerator();
    guest.end();
    Ok(accelerator)
}

/// Why KVM cannot even be tried, if it cannot.
fn device_obstacle() -> Option<String> {
    let opened = File::options().read(true).write(true).open("/dev/kvm");
    opened.err().map(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no /dev/kvm".into(),
        std::io::ErrorKind::PermissionDenied => {
            "/dev/kvm may not be opened; join the group kvm".into()
        }
        _ => format!("/dev/kvm: {error}"),
    })
}

fn host(program: &Path) -> Result<Host, String> {
    let said = process::run(&program.to_string_lossy(), &["--version".as_ref()])?;
    Ok(Host {
        kernel_release: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        cpu_model: inspect::cpu_model(),
        qemu_version: said.lines().next().unwrap_or_default().to_owned(),
    })
}

fn find<'a>(trials: &'a [KvmTrial], host: &Host, variant: Variant) -> Option<&'a KvmTrial> {
    trials
        .iter()
        .find(|trial| trial.host == *host && trial.variant == variant)
}

/// A file that cannot be read or understood is as good as none: it is tried
/// again.
fn read(path: &Path) -> Vec<KvmTrial> {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keeps what came out, with what else is known of the same machine. If it
/// cannot be kept, the next guest tries again.
fn remember(path: &Path, mut trials: Vec<KvmTrial>, trial: KvmTrial) {
    trials.retain(|known| known.host == trial.host && known.variant != trial.variant);
    trials.push(trial);
    let text = serde_json::to_string_pretty(&trials).expect("plain data");
    if let Some(directory) = path.parent() {
        let _ = fs::create_dir_all(directory);
    }
    let new = path.with_extension("new");
    let _ = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(release: &str, variant: Variant, obstacle: Option<&str>) -> KvmTrial {
        KvmTrial {
            host: Host {
                kernel_release: release.into(),
                cpu_model: "CPU".into(),
                qemu_version: "QEMU".into(),
            },
            variant,
            obstacle: obstacle.map(str::to_owned),
        }
    }

    #[test]
    fn what_came_out_is_kept_until_the_machine_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("below/kvm.json");
        assert_eq!(read(&path), []);
        let first = trial("6.1", Variant::Toll, Some("MSR"));
        remember(&path, read(&path), first.clone());
        let second = trial("6.1", Variant::Stock, None);
        remember(&path, read(&path), second.clone());
        let known = read(&path);
        assert_eq!(find(&known, &first.host, Variant::Toll), Some(&first));
        assert_eq!(find(&known, &first.host, Variant::Stock), Some(&second));
        let later = trial("6.2", Variant::Toll, None);
        assert_eq!(find(&known, &later.host, Variant::Toll), None);
        remember(&path, known, later.clone());
        assert_eq!(read(&path), [later]);
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kvm.json");
        fs::write(&path, "{").unwrap();
        assert_eq!(read(&path), []);
    }
}
