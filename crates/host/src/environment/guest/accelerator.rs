//! Chooses the accelerator for `auto`.
//!
//! An open `/dev/kvm` proves little: in a virtual machine, every guest may still die or hang. So
//! KVM is used only if a guest has booted under it within a few seconds. The result is kept until
//! the machine changes, since each failure costs those seconds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use toll_system::{paths, process};

use super::machine;
use super::spec::Accelerator;
use crate::environment::inspect;

/// Longest time that a guest may take to boot under KVM for KVM to count as working. The boot takes
/// a second where KVM works.
pub(super) const TRIAL_PATIENCE: Duration = Duration::from_secs(10);

/// The file of known results.
const FILE: &str = "kvm.json";

/// Results of boots under KVM: why no guest came up, or `None` if a guest did. Keyed by the
/// properties of the machine that matter to KVM, then by the name of the kernel.
type Known = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// Returns what `auto` means for a kernel; `None` if a guest has to try KVM first.
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

/// Saves the result of a boot. If the result cannot be saved, the next guest tries again.
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

/// Reads all known results. A directory that is refused counts as empty; `toll doctor` reports the
/// refusal.
fn known() -> Known {
    let directory = paths::kvm_trials().and_then(|place| place.path());
    directory.map_or_else(|_| Known::new(), |directory| read(&directory.join(FILE)))
}

/// Reads a file of results. A file that cannot be read or parsed counts as missing, so KVM is tried
/// again.
fn read(path: &Path) -> Known {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Describes KVM on this machine: `Ok` if guests of some kernel boot
/// under it, otherwise why TCG is used.
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
            None => "not tried yet; the first guest will try it".into(),
        }),
    }
}

/// Forgets all results, so that the next guest tries KVM again.
pub(super) fn forget() -> Result<(), String> {
    let directory = paths::kvm_trials().and_then(|place| place.path());
    let path = directory?.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns why KVM cannot even be tried; `None` if it can.
fn device_obstacle() -> Option<String> {
    let opened = File::options().read(true).write(true).open("/dev/kvm");
    opened.err().map(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no /dev/kvm".into(),
        std::io::ErrorKind::PermissionDenied => {
            "/dev/kvm cannot be opened by this user; join the group kvm".into()
        }
        _ => format!("/dev/kvm: {error}"),
    })
}

/// Describes the host: its kernel, its CPU and QEMU's version.
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
