//! A source that a test observes: it records each change that reaches the wrapped source,
//! and holds or fails the changes that the test names.
//!
//! The test and the process that serves its mount share a directory: `calls` has one line
//! for each change that has been made; `hold-CALL` and `fail-CALL` say what happens to the
//! next ones.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toll_mount::source::{
    Attributes, Content, Creation, Error, Extended, Handle, Identity, Listing, New, OpenFlags,
    OpenReply, Owner, RenameFlags, Result, SeekFrom, SetAttributes, Source, StatVfs, Timespec,
};

use crate::mounts::common::await_that;

/// The shared directory, as both sides see it.
#[derive(Clone)]
pub struct Control {
    directory: PathBuf,
}

/// The test's side.
impl Control {
    /// Creates the directory unless it exists, as it does for the source's side.
    pub fn new(directory: &Path) -> Self {
        fs::create_dir_all(directory).unwrap();
        let directory = directory.to_path_buf();
        Self { directory }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file(&self, what: &str, call: &str) -> PathBuf {
        self.directory.join(format!("{what}-{call}"))
    }

    /// Writes a file that is complete from the beginning, because the other side may read
    /// it at once.
    fn put(&self, what: &str, call: &str, content: &str) {
        let new = self.directory.join("new");
        fs::write(&new, content).unwrap();
        fs::rename(new, self.file(what, call)).unwrap();
    }

    /// Holds each such call before it is made if its path contains `part`.
    pub fn hold(&self, call: &str, part: &str) {
        self.put("hold", call, part);
    }

    pub fn await_held(&self, call: &str) {
        let held = self.file("held", call);
        await_that(&format!("{call} after {:#?}", self.calls()), || {
            held.exists()
        });
    }

    pub fn let_go(&self, call: &str) {
        fs::remove_file(self.file("hold", call)).unwrap();
    }

    pub fn fail(&self, call: &str, part: &str, errno: i32) {
        self.put("fail", call, &format!("always {errno} {part}"));
    }

    pub fn fail_once(&self, call: &str, part: &str, errno: i32) {
        self.put("fail", call, &format!("once {errno} {part}"));
    }

    pub fn succeed(&self, call: &str) {
        fs::remove_file(self.file("fail", call)).unwrap();
    }

    /// Returns all changes so far, each with what it concerns.
    pub fn calls(&self) -> Vec<Vec<String>> {
        let calls = fs::read_to_string(self.directory.join("calls")).unwrap_or_default();
        let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
        calls.lines().map(fields).collect()
    }
}

/// The source's side.
impl Control {
    /// Waits or fails before a call, as the test wants.
    pub fn enter(&self, call: &str, path: &Path) -> Result<()> {
        let path = path.to_string_lossy();
        let hold = self.file("hold", call);
        if fs::read_to_string(&hold).is_ok_and(|part| path.contains(&part)) {
            let held = self.file("held", call);
            fs::write(&held, path.as_bytes()).unwrap();
            while hold.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Several calls may have waited.
            let _ = fs::remove_file(held);
        }
        let fail = self.file("fail", call);
        let Ok(rule) = fs::read_to_string(&fail) else {
            return Ok(());
        };
        let [times, errno, part] = rule.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("malformed rule: {rule}");
        };
        if !path.contains(part) || (times == "once" && fs::remove_file(&fail).is_err()) {
            return Ok(());
        }
        self.done(&["failed", call, &path]);
        Err(Error::Errno(errno.parse().unwrap()))
    }

    fn done(&self, fields: &[&str]) {
        let mut options = fs::File::options();
        options.append(true).create(true);
        let mut calls = options.open(self.directory.join("calls")).unwrap();
        let line = format!("{}\n", fields.join("\t"));
        calls.write_all(line.as_bytes()).unwrap();
    }

    fn change<T>(
        &self,
        call: &str,
        path: &Path,
        to: Option<&Path>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.enter(call, path)?;
        let made = make()?;
        let to = to.map(Path::to_string_lossy).unwrap_or_default();
        self.done(&[call, &path.to_string_lossy(), &to]);
        Ok(made)
    }
}

pub struct Watched {
    pub inner: Arc<dyn Source>,
    pub control: Control,
    pub opened: AtomicU64,
}

impl Watched {
    fn watch(&self, path: &Path, flags: OpenFlags, inner: Box<dyn Handle>) -> Box<dyn Handle> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed).to_string();
        let how = match (flags.create.is_some(), flags.truncate) {
            (_, true) => "cut",
            (true, false) => "create",
            (false, false) => "open",
        };
        let control = self.control.clone();
        control.done(&[how, &path.to_string_lossy(), &number]);
        Box::new(WatchedHandle {
            inner,
            control,
            path: path.to_path_buf(),
            number,
        })
    }
}

/// Methods that only call the wrapped source or handle.
macro_rules! forward {
    ($(fn $method:ident(&self $(, $name:ident: $type:ty)*) $(-> $result:ty)?;)*) => {$(
        fn $method(&self $(, $name: $type)*) $(-> $result)? {
            self.inner.$method($($name),*)
        }
    )*};
}

impl Source for Watched {
    forward! {
        fn name(&self) -> String;
        fn is_remote(&self) -> bool;
        fn user(&self) -> Option<Owner>;
        fn is_settled(&self, changed: Timespec) -> bool;
        fn attributes(&self, path: &Path) -> Result<Attributes>;
        fn list(&self, path: &Path, next: &[&Path], names_max: usize) -> Result<Listing>;
        fn read_link(&self, path: &Path) -> Result<OsString>;
        fn make(&self, path: &Path, new: New<'_>, creation: &Creation) -> Result<()>;
        fn keep_content(&self, path: &Path) -> Option<OwnedFd>;
        fn space(&self) -> Result<StatVfs>;
        fn has_extended(&self) -> bool;
        fn extended(&self, path: &Path, expected: Option<Identity>) -> Result<Box<dyn Extended>>;
    }

    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenReply> {
        let found = self.inner.open(path, flags)?;
        Ok(OpenReply {
            handle: self.watch(path, flags, found.handle),
            ..found
        })
    }

    fn remove(&self, path: &Path, is_directory: bool) -> Result<Option<Attributes>> {
        let call = if is_directory {
            "remove_directory"
        } else {
            "unlink"
        };
        let make = || self.inner.remove(path, is_directory);
        self.control.change(call, path, None, make)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()> {
        let make = || self.inner.hard_link(existing, new);
        self.control.change("hard_link", existing, Some(new), make)
    }

    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
        let make = || self.inner.rename(from, to, flags);
        self.control.change("rename", from, Some(to), make)
    }

    fn set_attributes(
        &self,
        path: &Path,
        expected: Option<Identity>,
        changes: &SetAttributes,
    ) -> Result<()> {
        let make = || self.inner.set_attributes(path, expected, changes);
        self.control.change("set_attributes", path, None, make)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let make = || self.inner.sync_directory(path);
        self.control.change("sync_directory", path, None, make)
    }
}

/// An open file of a watched source. Combined calls are recorded as their parts.
struct WatchedHandle {
    inner: Box<dyn Handle>,
    control: Control,
    path: PathBuf,
    number: String,
}

impl WatchedHandle {
    fn change(&self, call: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let number = Path::new(&self.number);
        self.control.change(call, &self.path, Some(number), make)
    }
}

impl Handle for WatchedHandle {
    forward! {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
        fn sync_later(&self) -> Result<()>;
        fn flush(&self) -> Result<()>;
        fn attributes(&self) -> Result<Attributes>;
        fn seek(&self, from: SeekFrom) -> Result<u64>;
        fn descriptor(&self) -> Option<BorrowedFd<'_>>;
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.change("write", || self.inner.write_at(bytes, offset))
    }

    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        self.change("write", || self.inner.write_later(content, offset))
    }

    fn truncate(&self, size_bytes: u64) -> Result<()> {
        self.change("truncate", || self.inner.truncate(size_bytes))
    }

    fn sync(&self) -> Result<()> {
        self.change("sync", || self.inner.sync())
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        self.change("set_handle", || self.inner.set_attributes(changes))
    }

    fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        self.change("allocate", || self.inner.allocate(mode, offset, length))
    }
}
