//! The process that serves a mount: this program, started again. A process must not map
//! files that it serves itself, because the kernel writes a mapping's pages while it holds
//! the lock that the serving threads' own memory needs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clap::ValueEnum;
use toll_mount::cache::Mode;
use toll_mount::fuse::{KernelCache, Mount, Options};
use toll_mount::local::Local;
use toll_mount::sftp;
use toll_mount::source::Source;

use crate::mounts::users::{GROUP, USER};
use crate::mounts::watched::{Control, Watched};

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn needed(name: &str) -> String {
    variable(name).unwrap_or_else(|| panic!("{name} is not set"))
}

fn options() -> Options {
    let lifetime_ms = needed("USERFS_LIFETIME_MS").parse().unwrap();
    Options {
        mode: Mode::from_str(&needed("USERFS_MODE"), false).unwrap(),
        kernel: KernelCache::from_str(&needed("USERFS_KERNEL"), false).unwrap(),
        is_read_only: variable("USERFS_READ_ONLY").is_some(),
        allows_others: true,
        maps_user: true,
        contains_links: variable("USERFS_SSH_PORT").is_some(),
        shows_extended: true,
        attribute_lifetime: Duration::from_millis(lifetime_ms),
        directory: needed("USERFS_DIRECTORY").into(),
    }
}

/// Switches the process to a user other than root, after it has mounted.
fn become_user(directory: &Path) {
    std::os::unix::fs::chown(directory, Some(USER), Some(USER)).unwrap();
    // SAFETY: the list has one element; glibc changes all threads.
    let groups = unsafe { libc::setgroups(1, &GROUP) };
    // SAFETY: no memory is passed; glibc changes all threads.
    let group = unsafe { libc::setresgid(USER, USER, USER) };
    // SAFETY: no memory is passed; glibc changes all threads.
    let user = unsafe { libc::setresuid(USER, USER, USER) };
    assert_eq!((groups, group, user), (0, 0, 0));
}

fn open(source: &str) -> Arc<dyn Source> {
    let Some(port) = variable("USERFS_SSH_PORT") else {
        return Arc::new(Local::new(Path::new(source)).unwrap());
    };
    let settings = needed("USERFS_SSH_SETTINGS");
    let options = sftp::Options {
        port: Some(port.parse().unwrap()),
        identity: variable("USERFS_SSH_IDENTITY").map(PathBuf::from),
        config: Some("/dev/null".into()),
        settings: settings.lines().map(str::to_owned).collect(),
        notice: Arc::new(|line| eprintln!("note: {line}")),
        ..sftp::Options::default()
    };
    let address = sftp::Address::parse(source).unwrap();
    Arc::new(sftp::Sftp::connect(&address, &options).unwrap())
}

#[test]
#[ignore = "not a test: the process that serves the tests' mounts"]
fn serve() {
    let Some(source) = variable("USERFS_SOURCE") else {
        return;
    };
    let mountpoint = needed("USERFS_MOUNTPOINT");
    let source = open(&source);
    let control = variable("USERFS_CONTROL").map(|at| Control::new(Path::new(&at)));
    let source: Arc<dyn Source> = match &control {
        Some(control) => Arc::new(Watched {
            inner: source,
            control: control.clone(),
            opened: AtomicU64::new(0),
        }),
        None => source,
    };
    let note = Box::new(move |text: &str| {
        if let Some(control) = &control {
            // A message is not a call that could fail.
            let _ = control.enter("note", Path::new(text));
        }
        eprintln!("note: {text}");
    });
    let (mount, stopper) = Mount::begin(source, Path::new(&mountpoint), &options(), note).unwrap();
    if variable("USERFS_AS_USER").is_some() {
        // A reply shows that the threads have opened the device, which may be accessible to
        // root alone.
        std::fs::metadata(&mountpoint).unwrap();
        become_user(&options().directory);
    }
    eprintln!("ready");
    std::thread::spawn(move || {
        // The end of the input means stop.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        let ended = stopper.stop().unwrap();
        eprintln!("stopped: {} kept", ended);
        std::process::exit(i32::from(ended > 0));
    });
    let ended = mount.wait().unwrap();
    eprintln!("ended: {} kept", ended);
    std::process::exit(i32::from(ended > 0));
}
