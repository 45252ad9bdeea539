//! Mounts and threads that work as users other than root.

use std::fs;
use std::io::Result;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use toll_sshd::{Settings, Subsystem};

use crate::mounts::common::{Mounted, REMOTE_MODES, Setting, set_mode};

/// A user who may write others' files only through the group: Debian's `nobody`, because
/// `sftp-server` needs a user with a name.
pub const USER: u32 = 65_534;
pub const OTHER_USER: u32 = 64_001;
pub const GROUP: u32 = 64_003;

/// Settings of a server that works as [`USER`].
fn server_of_user() -> Settings {
    Settings {
        subsystem: Subsystem::Command(format!(
            "exec setpriv --reuid {USER} --regid {USER} --groups {GROUP} \
             /usr/lib/openssh/sftp-server"
        )),
        ..Settings::default()
    }
}

/// Creates a file in the directory `project` below `base` that belongs to another user and
/// is writable for the group.
pub fn put_shared(base: &Path, name: &str, content: &[u8]) {
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

/// Works as a user other than root, in its own thread.
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

#[test]
fn the_user_of_the_server_is_shown_as_the_one_who_mounts() {
    each_of_user(&REMOTE_MODES, |mounted| {
        set_mode(&mounted.source, 0o777);
        for (name, uid, gid) in [
            ("own", USER, USER),
            ("others", OTHER_USER, GROUP),
            // The id of the mounting user belongs to somebody else there.
            ("roots", 0, 0),
        ] {
            fs::write(mounted.behind(name), b"content").unwrap();
            chown(mounted.behind(name), Some(uid), Some(gid)).unwrap();
        }
        let shown = |name: &str| {
            let found = fs::metadata(mounted.path(name)).unwrap();
            (found.uid(), found.gid())
        };
        assert_eq!(shown("own"), (0, 0));
        assert_eq!(shown("others"), (OTHER_USER, GROUP));
        assert_eq!(shown("roots"), (u32::MAX - 1, u32::MAX - 1));
        fs::write(mounted.path("new"), b"content").unwrap();
        assert_eq!(shown("new"), (0, 0));
        let behind = fs::metadata(mounted.behind("new")).unwrap();
        assert_eq!((behind.uid(), behind.gid()), (USER, USER));
        // The server gets its own ids, and gives no file to anybody else.
        chown(mounted.path("own"), Some(0), Some(0)).unwrap();
        assert!(chown(mounted.path("own"), Some(OTHER_USER), None).is_err());
        let behind = fs::metadata(mounted.behind("own")).unwrap();
        assert_eq!((behind.uid(), behind.gid()), (USER, USER));
        mounted.stop_clean();
    });
}
