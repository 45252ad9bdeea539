//! Which accelerator the choice `auto` comes to.
//!
//! That `/dev/kvm` opens says little: in a virtual machine it may be there and
//! every guest die or stand still. So KVM is used where a guest has booted under
//! it within a few seconds. What came out is kept, since each failure costs those
//! seconds, until the machine is another.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toll_system::{paths, process};

use super::disk::GuestDisk;
use super::life::{Guest, GuestFailure};
use super::machine;
use super::place::GuestPlace;
use super::spec::{Accelerator, GuestSpec};
use crate::environment::kernel::Kernel;
use crate::environment::inspect;

/// Longest that a guest may take to boot under KVM to be believed. It takes a
/// second where KVM works.
pub(super) const TRIAL_PATIENCE: Duration = Duration::from_secs(10);

/// The file of what is known.
const FILE: &str = "kvm.json";

/// Size of the disk of a guest that only tries KVM: the least that holds ext4
/// with a journal.
const TRIAL_DISK_BYTES: u64 = 16 << 20;

/// What came out of boots under KVM: why no guest came up, or none if one did. By
/// what the machine is, as far as KVM goes, and the word of the kernel.
type Known = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// What `auto` comes to for a kernel, or none if a guest has to try KVM first.
pub(super) fn choose(program: &Path, kernel: &str) -> Result<Option<Accelerator>, String> {
    if device_obstacle().is_some() {
        return Ok(Some(Accelerator::Tcg));
    }
    let known = known();
    let trial = known
        .get(&host(program)?)
        .and_then(|trials| trials.get(kernel));
    Ok(trial.map(|obstacle| match obstacle {
        None => Accelerator::Kvm,
        Some(_) => Accelerator::Tcg,
    }))
}

/// Keeps what came out of a trial, with what else is known of the same machine. If it
/// cannot be kept, the next guest tries again.
pub(super) fn remember(program: &Path, kernel: &str, obstacle: Option<String>) {
    if let Ok(host) = host(program) {
        let directory = paths::kvm_trials().and_then(|place| place.make());
        let _ = directory.map(|directory| {
            remember_in(&directory.path().join(FILE), host, kernel, obstacle);
        });
    }
}

fn remember_in(path: &Path, host: String, kernel: &str, obstacle: Option<String>) {
    let mut known = read(path);
    known.retain(|other, _| *other == host);
    let trials = known.entry(host).or_default();
    trials.insert(kernel.to_owned(), obstacle);
    let text = serde_json::to_string_pretty(&known).expect("plain data");
    let new = path.with_extension("new");
    let _ = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
}

/// All that is known. A directory that is refused is as good as none; toll doctor
/// reports it.
fn known() -> Known {
    let directory = paths::kvm_trials().and_then(|place| place.path());
    directory.map_or_else(|_| Known::new(), |directory| read(&directory.join(FILE)))
}

/// A file that cannot be read or understood is as good as none: it is tried
/// again.
fn read(path: &Path) -> Known {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// What is known of KVM on this machine: `Ok` where guests of some kernel boot
/// under it, else why TCG is used.
pub fn kvm_state() -> Result<String, String> {
    if let Some(why) = device_obstacle() {
        return Err(why);
    }
    let mut known = known();
    let trials = known
        .remove(&host(&machine::program()?)?)
        .unwrap_or_default();
    match trials.iter().find(|(_, obstacle)| obstacle.is_none()) {
        Some((word, _)) => Ok(format!("a guest with kernel {word} booted")),
        None => Err(match trials.into_values().flatten().next() {
            Some(why) => why,
            None => "not tried yet; the first guest tries it".into(),
        }),
    }
}

/// Forgets what is known of KVM and boots a small guest, which tries it again.
pub fn retry_kvm(
    kernel: Kernel,
    probe: PathBuf,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), GuestFailure> {
    let directory = paths::kvm_trials().and_then(|place| place.path());
    let path = directory.map_err(GuestFailure::Failed)?.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("cannot remove {}: {error}", path.display());
            return Err(GuestFailure::Failed(message));
        }
        _ => {}
    }
    let place = GuestPlace::make().map_err(GuestFailure::Failed)?;
    let disk = GuestDisk::create(&place.directory().join("disk"), TRIAL_DISK_BYTES, None)
        .map_err(GuestFailure::Missing)?;
    let spec = GuestSpec::new(kernel, probe);
    Guest::boot(&spec, &disk, interrupted)?.end();
    Ok(())
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

/// The host's kernel, its CPU and QEMU's version.
fn host(program: &Path) -> Result<String, String> {
    let said = process::run(&program.to_string_lossy(), &["--version".as_ref()])?;
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let qemu = said.lines().next().unwrap_or_default();
    Ok(format!("{release}; {}; {qemu}", inspect::cpu_model()))
}

#[test]
fn what_came_out_is_kept_until_the_machine_is_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    assert_eq!(read(&path), Known::new());
    remember_in(&path, "6.1".into(), "toll", Some("MSR".into()));
    remember_in(&path, "6.1".into(), "stock", None);
    let known = read(&path);
    assert_eq!(known["6.1"]["toll"].as_deref(), Some("MSR"));
    assert_eq!(known["6.1"]["stock"], None);
    remember_in(&path, "6.2".into(), "toll", None);
    let known = read(&path);
    assert_eq!((known.len(), &known["6.2"]["toll"]), (1, &None));
    fs::write(&path, "{").unwrap();
    assert_eq!(read(&path), Known::new());
}
