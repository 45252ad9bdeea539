//! Mounts and threads that work as other users than root.

use std::fs;
use std::io::Result;
use std::path::Path;

use toll_sshd::{Settings, Subsystem};

use crate::common::{Mounted, Setting, set_mode};

/// Who may write files of somebody else by the group alone: Debian's `nobody`, as
/// `sftp-server` wants a user with a name.
pub const USER: u32 = 65_534;
pub const OTHER_USER: u32 = 64_001;
pub const GROUP: u32 = 64_003;

/// A server that works as [`USER`].
fn server_of_user() -> Settings {
    Settings {
        subsystem: Subsystem::Command(format!(
            "exec setpriv --reuid {USER} --regid {USER} --groups {GROUP} \
             /usr/lib/openssh/sftp-server"
        )),
        ..Settings::default()
    }
}

/// Makes a file in a directory of a project below `base`: somebody else's, and
/// writable for the group.
pub fn put_shared(base: &Path, name: &str, content: &[u8]) {
    use std::os::unix::fs::chown;
    let directory = base.join("project");
    fs::create_dir_all(&directory).unwrap();
    chown(&directory, Some(OTHER_USER), Some(GROUP)).unwrap();
    set_mode(&directory, 0o2775);
    let file = base.join(name);
    fs::write(&file, content).unwrap();
    chown(&file, Some(OTHER_USER), Some(GROUP)).unwrap();
    set_mode(&file, 0o664);
}

/// Runs a test in each setting, with a mount that works as [`USER`].
pub fn each_of_user<'a>(
    settings: impl IntoIterator<Item = &'a Setting>,
    test: impl Fn(&mut Mounted),
) {
    for setting in settings.into_iter().filter(|setting| setting.is_possible()) {
        let setting = Setting {
            is_of_user: true,
            ..setting.clone()
        };
        eprintln!("in {setting:?}");
        test(&mut Mounted::with(&setting, |_| server_of_user()));
    }
}

/// Works as somebody who is not root, in a thread of its own.
pub fn as_user<T: Send>(uid: u32, gid: u32, work: impl FnOnce() -> Result<T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: no memory is passed; it changes this thread alone.
            unsafe { libc::setfsgid(gid) };
            // SAFETY: no memory is passed; it changes this thread alone.
            unsafe { libc::setfsuid(uid) };
            work().unwrap()
        });
        thread.join().unwrap()
    })
}
