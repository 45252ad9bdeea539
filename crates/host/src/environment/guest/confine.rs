//! Limits what the QEMU process of a guest may do on the host.
//!
//! A guest may be hostile: somebody else's image, or a kernel with a hole. Bugs in QEMU have let
//! guests take it over, so QEMU gets no more than a guest needs. Its own seccomp filter limits its
//! system calls. If `toll` is root, QEMU runs as a separate user without privileges.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, chownat};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, capabilities, set_no_new_privs, set_thread_gid, set_thread_groups,
    set_thread_uid,
};
use toll_system::process;

use super::disk::{INITRAMFS, KERNEL, SHARED, SWAP_IMAGE, WORK_IMAGE, WORK_SOCKET};
use super::plugin::{COUNTS, COUNTS_BYTES_MAX, PLUGIN};
use super::spec::Accelerator;

/// QEMU's filter of system calls. QEMU may not start programs, change users or set priorities.
const SANDBOX: [&str; 2] = [
    "-sandbox",
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
];

/// First of the user IDs without a name that systemd assigns to services while they run
/// (systemd.exec(5), "DynamicUser"). Each `toll` takes one, so that its guests cannot access those
/// of another `toll`.
const USER_FIRST: u32 = 61_184;
const USERS: u32 = 4_336;

/// The device by which guests run on the CPU itself.
const KVM: &str = "/dev/kvm";

/// How a QEMU process is confined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confinement {
    has_sandbox: bool,
    /// The user that QEMU runs as; `None` for the user of `toll`.
    user: Option<u32>,
    /// The group that may open `/dev/kvm`.
    kvm_group: Option<u32>,
    file_bytes_max: u64,
}

impl Confinement {
    /// Confines as far as this machine allows.
    pub fn new(program: &Path, accelerator: Accelerator, disk_bytes: u64) -> Self {
        let kvm = match accelerator {
            Accelerator::Kvm => kvm_group(),
            Accelerator::Tcg | Accelerator::Icount => Ok(None),
        };
        // The limit of the caller cannot be raised.
        let limit = getrlimit(Resource::Fsize).maximum.unwrap_or(u64::MAX);
        Self {
            has_sandbox: sandbox(program).is_ok(),
            user: user().ok().filter(|_| kvm.is_ok()),
            kvm_group: kvm.unwrap_or_default(),
            file_bytes_max: disk_bytes.max(COUNTS_BYTES_MAX).min(limit),
        }
    }

    /// Returns the arguments with which QEMU's command line begins.
    pub fn arguments(&self) -> &'static [&'static str] {
        if self.has_sandbox { &SANDBOX } else { &[] }
    }

    /// Gives the files of a guest's directory to QEMU's user. The directory itself stays the
    /// caller's. Otherwise a link in it could make the next boot overwrite any file.
    pub fn hand_over(&self, directory: &Path) -> io::Result<()> {
        let Some(user) = self.user else {
            return Ok(());
        };
        give(user, directory).map_err(|error| {
            io::Error::other(format!(
                "cannot give {} to QEMU's user {user}: {error}; choose another place with \
                 TOLL_WORK_DIR",
                directory.display()
            ))
        })
    }

    /// Explains why QEMU did not start, if the other user that it runs as may be the cause.
    pub fn explain(&self, program: &Path, error: io::Error) -> io::Error {
        match self
            .user
            .filter(|_| error.kind() == io::ErrorKind::PermissionDenied)
        {
            Some(user) => io::Error::other(format!(
                "cannot run {}: {error}; as root toll runs QEMU as user {user}, so put QEMU where \
                 everybody may execute it",
                program.display()
            )),
            None => error,
        }
    }

    /// Confines the calling process, which becomes QEMU. Called between fork and exec, so it only
    /// makes system calls.
    pub fn enter(&self) -> io::Result<()> {
        let limit = |bytes| Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        // A core dump contains the guest's memory.
        setrlimit(Resource::Core, limit(0))?;
        setrlimit(Resource::Fsize, limit(self.file_bytes_max))?;
        if let Some(user) = self.user {
            let group = self.kvm_group.map(Gid::from_raw);
            set_thread_groups(group.as_slice())?;
            set_thread_gid(Gid::from_raw(user))?;
            set_thread_uid(Uid::from_raw(user))?;
        }
        set_no_new_privs(true)?;
        Ok(())
    }
}

/// Makes a user the owner of the existing files in a guest's directory.
fn give(user: u32, directory: &Path) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
    chownat(CWD, directory, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    fs::set_permissions(directory, Permissions::from_mode(0o710))?;
    let own = |path: &Path| {
        chownat(
            CWD,
            path,
            Some(user),
            Some(group),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    };
    for name in [
        KERNEL,
        INITRAMFS,
        WORK_IMAGE,
        WORK_SOCKET,
        SWAP_IMAGE,
        PLUGIN,
        COUNTS,
    ] {
        let path = directory.join(name);
        match own(&path) {
            Err(rustix::io::Errno::NOENT) => {}
            given => {
                given?;
                fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            }
        }
    }
    let shared = directory.join(SHARED);
    let entries = match fs::read_dir(&shared) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        own(&entry?.path())?;
    }
    own(&shared)?;
    fs::set_permissions(&shared, Permissions::from_mode(0o700))
}

/// Describes how QEMU is confined here.
pub(super) fn describe(program: &Path) -> String {
    let who = match (user(), kvm_group()) {
        (Err(why), _) => format!("as your user, since {why}"),
        (Ok(user), Ok(_)) => format!("as user {user}"),
        (Ok(user), Err(why)) => format!("as user {user} (under KVM as root, since {why})"),
    };
    let sandbox = match sandbox(program) {
        Ok(()) => "its system calls limited".to_owned(),
        Err(why) => format!("its system calls not limited: {why}"),
    };
    format!("QEMU runs {who}, {sandbox}")
}

/// Returns the user for QEMU, or why QEMU runs as the caller.
fn user() -> Result<u32, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("toll is not root".into());
    }
    let user = USER_FIRST + std::process::id() % USERS;
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN;
    let has_all = capabilities(None).is_ok_and(|has| has.effective.contains(needed));
    if !has_all {
        return Err("root may not change users here".into());
    }
    // A container may have only a few users.
    let is_mapped = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line
                .split_whitespace()
                .map(|word| word.parse().unwrap_or(0_u64));
            let (first, _, count) = (words.next(), words.next(), words.next());
            let first = first.unwrap_or_default();
            (first..first + count.unwrap_or_default()).contains(&u64::from(user))
        })
    };
    if !is_mapped("/proc/self/uid_map") || !is_mapped("/proc/self/gid_map") {
        return Err(format!("this container has no user {user}"));
    }
    Ok(user)
}

/// Returns the group whose members may open `/dev/kvm`; `None` if everybody may.
fn kvm_group() -> Result<Option<u32>, String> {
    let device = fs::metadata(KVM).map_err(|error| format!("{KVM}: {error}"))?;
    match device.mode() {
        mode if mode & 0o006 == 0o006 => Ok(None),
        mode if mode & 0o060 == 0o060 && device.gid() != 0 => Ok(Some(device.gid())),
        _ => Err(format!("only root may open {KVM}")),
    }
}

/// Checks whether this QEMU can limit its system calls. A QEMU that was built without seccomp
/// refuses to start.
fn sandbox(program: &Path) -> Result<(), String> {
    static KNOWN: OnceLock<Result<(), String>> = OnceLock::new();
    KNOWN.get_or_init(|| try_sandbox(program)).clone()
}

fn try_sandbox(program: &Path) -> Result<(), String> {
    let (reader, mut writer) = io::pipe().map_err(|error| error.to_string())?;
    // Starts a machine without devices, which exits at once.
    let written = writer.write_all(b"quit\n");
    written.map_err(|error| error.to_string())?;
    drop(writer);
    let machine = [
        "-M",
        "none",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-monitor",
        "stdio",
    ];
    let arguments = SANDBOX.iter().chain(&machine).map(AsRef::as_ref);
    let arguments: Vec<&std::ffi::OsStr> = arguments.collect();
    process::run_on(Stdio::from(reader), &program.to_string_lossy(), &arguments).map(drop)
}
