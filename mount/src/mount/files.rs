//! Requests that open, read and write files.

use std::sync::Arc;

use super::handles::Backend;
use super::{Access, NodeAttributes, Opened, PathTurn, Volume};
use crate::background;
use crate::cache::Mode;
use crate::descriptors::Kept;
use crate::source::{
    Content, Creation, Error, Handle, OpenFlags, Result, SeekFrom, SetAttributes, seek_in_data,
};
use crate::tree::Version;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteHow {
    /// Whether an error of a write without a copy may be reported only later: by the next write, by
    /// `flush` or by `sync`.
    pub may_end_later: bool,
    /// Whether the file is open with `O_APPEND`.
    pub is_append: bool,
}

impl Volume {
    /// Reserves the file descriptors of one more open file. Returns `ENFILE` if too few
    /// are left.
    fn keep_descriptors(&self) -> Result<Kept> {
        let copies = u64::from(self.options.mode != Mode::None);
        Kept::new(copies + self.shared.descriptors())
    }

    fn open_flags(&self, wanted: OpenFlags) -> OpenFlags {
        let is_cached = self.options.mode != Mode::None;
        OpenFlags {
            read: wanted.read || is_cached || self.is_kernel_writing_back(),
            // With a copy, the copy is truncated now and the source's file when it
            // is written back. Otherwise a connection that is lost in between would
            // leave that file empty.
            truncate: wanted.truncate && !is_cached,
            // Close-to-open consistency lets a copy keep what this open has read.
            begin: is_cached && !wanted.truncate,
            ..wanted
        }
    }

    pub fn open(&self, ino: u64, access: Access) -> Result<Opened> {
        let turn = &mut PathTurn::begin();
        let wanted = access.flags;
        if wanted.write {
            self.refuse_while_closing()?;
        }
        let mut open = || {
            let guard = self.shared.path(&mut *turn, ino)?;
            let path = guard.path();
            let flags = OpenFlags {
                expected: self.shared.tree.identity(ino),
                ..self.open_flags(wanted)
            };
            let found = self.shared.open(path, flags, wanted.read)?;
            // Another file may have the name by now: after ESTALE the kernel looks
            // the name up again and opens once more.
            if self.shared.tree.is(ino, &found.attributes) {
                Ok(found)
            } else {
                Err(Error::Errno(libc::ESTALE))
            }
        };
        if self.options.mode == Mode::None {
            let kept = self.keep_descriptors()?;
            let opened = open();
            if wanted.truncate {
                self.shared.touch(ino, false);
            }
            let opened = opened?;
            self.check_length(ino, access, opened.attributes.size_bytes)?;
            return Ok(self.add_direct(ino, (opened, kept), wanted.write));
        }
        self.add_cached(ino, access, open)
    }

    pub fn create(
        &self,
        parent: u64,
        name: &std::ffi::OsStr,
        creation: Creation,
        access: Access,
    ) -> Result<(NodeAttributes, Opened)> {
        self.refuse_while_closing()?;
        let wanted = access.flags;
        // Reserved before there is a file that could not be opened.
        let kept = self.keep_descriptors()?;
        let (made, ino) = {
            let mut turn = PathTurn::begin();
            let guard = self.shared.path_below(&mut turn, parent, name)?;
            let path = guard.path();
            let flags = OpenFlags {
                create: Some(creation),
                ..self.open_flags(wanted)
            };
            let change = self.shared.metadata.change(parent, name);
            let made = self.shared.source.open(path, flags)?;
            change.done(made.directory);
            let ino = self.shared.tree.looked_up(parent, name, &made.attributes);
            (made, ino)
        };
        let found = NodeAttributes::now(ino, made.attributes);
        let opened = if self.options.mode == Mode::None {
            Ok(self.add_direct(ino, (made, kept), wanted.write))
        } else if self.cached(ino).is_some() {
            // The file is open under another name, and may be in the middle of a
            // write-back.
            drop(made);
            let appender = None;
            self.open(ino, Access { appender, ..access })
        } else {
            let flags = OpenFlags {
                truncate: wanted.truncate && found.attributes.size_bytes > 0,
                ..wanted
            };
            // The kernel gets the length with the reply.
            let appender = None;
            self.add_cached(ino, Access { flags, appender }, || Ok(made))
        };
        match opened {
            Ok(opened) => Ok((self.with_copy(found), opened)),
            Err(error) => {
                self.shared.tree.forget(ino, 1);
                Err(error)
            }
        }
    }

    /// Reads into `buffer`. Returns less than the length of `buffer` only at the end of
    /// the file.
    pub fn read(&self, handle: u64, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let file = self.files.get(handle)?;
        match &file.content {
            Backend::Direct(handle) => handle.read_at(buffer, offset),
            Backend::Cached(cached) => {
                let count = cached.read_at(buffer, offset)?;
                let wanted = offset..offset + count as u64;
                if let Some(ahead) = cached.ahead(&wanted) {
                    let cached = Arc::clone(cached);
                    // If this fails, the read that needs the content tries again.
                    background::run(move || _ = cached.fetch(ahead));
                }
                Ok(count)
            }
        }
    }

    /// Writes all of `bytes`. Returns whether the kernel's pages of the file are wrong
    /// now: appended content goes to the real end of the file, which the kernel may not
    /// know.
    pub fn write(&self, handle: u64, bytes: &[u8], offset: u64, how: WriteHow) -> Result<bool> {
        self.refuse_while_closing()?;
        let file = self.files.get(handle)?;
        let (at, has_news) = match &file.content {
            Backend::Direct(handle) => {
                let written = self.write_direct(&**handle, bytes, offset, how);
                self.shared.touch(file.ino, false);
                (written?, false)
            }
            Backend::Cached(cached) => {
                let has_news = cached.follow(&mut PathTurn::begin(), how.is_append)?;
                if how.is_append {
                    (cached.append(bytes)?, has_news)
                } else {
                    cached.write_at(bytes, offset)?;
                    (offset, has_news)
                }
            }
        };
        if let Backend::Cached(cached) = &file.content
            && cached.begin_sending()
        {
            let cached = Arc::clone(cached);
            background::run(move || cached.send_ahead(&mut PathTurn::begin()));
        }
        self.shared.tree.written(file.ino, at + bytes.len() as u64);
        Ok(has_news || at != offset)
    }

    /// Writes to a file without a copy. Returns the offset of the write.
    fn write_direct(
        &self,
        handle: &dyn Handle,
        bytes: &[u8],
        offset: u64,
        how: WriteHow,
    ) -> Result<u64> {
        // Over SFTP, asking for the end would take a round trip for each write.
        let is_end_asked = how.is_append && !self.shared.source.is_remote();
        let at = if is_end_asked && !self.is_kernel_writing_back() {
            handle.attributes()?.size_bytes
        } else {
            offset
        };
        if how.may_end_later {
            handle.write_later(Content::Bytes(bytes), at)?
        } else {
            handle.write_at(bytes, at)?
        }
        Ok(at)
    }

    /// Clears set-user-id, and set-group-id of programs, after a write by a user who is
    /// not allowed to keep these bits.
    pub fn drop_privileges(&self, ino: u64) -> Result<()> {
        let turn = &mut PathTurn::begin();
        let mode = self.attributes_now(turn, ino)?.attributes.mode;
        let group = if mode & 0o010 == 0 { 0 } else { 0o2000 };
        let kept = mode & !(0o4000 | group);
        if kept == mode {
            return Ok(());
        }
        let changes = SetAttributes {
            mode: Some(kept),
            ..SetAttributes::default()
        };
        match self.change(turn, ino, &changes) {
            // Only the owner may change the mode. The source's own kernel clears
            // these bits when somebody else writes there.
            Err(error) if error.is(libc::EPERM) => Ok(()),
            done => done,
        }
    }

    /// Sends the changes to the source when a file descriptor is closed.
    pub fn flush(&self, handle: u64) -> Result<()> {
        let file = self.files.get(handle)?;
        match &file.content {
            Backend::Cached(cached) if cached.awaits_content() => Ok(()),
            Backend::Cached(cached) => self.write_back(&mut PathTurn::begin(), cached, false),
            Backend::Direct(handle) => handle.flush(),
        }
    }

    pub fn sync(&self, handle: u64) -> Result<()> {
        let file = self.files.get(handle)?;
        match &file.content {
            Backend::Cached(cached) => self.write_back(&mut PathTurn::begin(), cached, true),
            Backend::Direct(handle) => handle.sync(),
        }
    }

    /// Closes a file handle that the kernel has released.
    pub fn release(&self, handle: u64) {
        let Some(file) = self.files.remove(handle) else {
            return;
        };
        if let Backend::Cached(cached) = &file.content
            && cached.is_changed()
        {
            // A program changed the file through a mapping after the last close. Nobody
            // is left to get an error, but the copy is kept.
            let _ = self.write_back(&mut PathTurn::begin(), cached, false);
        }
        self.await_sent(&file);
        if let Some(handle) = file.direct()
            && self.is_kernel_writing_back()
            && file.is_writable
            && let Ok(found) = handle.attributes()
        {
            // Nobody else changes the file, and all writes of the kernel have
            // arrived. So the kernel's pages have the version that the file has now. If
            // that version is unknown, the pages are read again.
            let version = Some(Version::from_attributes(&found));
            self.shared.tree.set_seen(file.ino, version);
            self.shared.tree.give(file.ino, &found);
        }
        self.stop_using(file.ino);
    }

    pub fn allocate(&self, handle: u64, mode: i32, offset: u64, length: u64) -> Result<()> {
        self.refuse_while_closing()?;
        let file = self.files.get(handle)?;
        match &file.content {
            Backend::Cached(cached) => cached.allocate(mode, offset, length)?,
            Backend::Direct(handle) => {
                let allocated = handle.allocate(mode, offset, length);
                self.shared.touch(file.ino, false);
                allocated?;
            }
        }
        if mode & libc::FALLOC_FL_KEEP_SIZE == 0 {
            let end = offset.saturating_add(length);
            self.shared.tree.written(file.ino, end);
        }
        Ok(())
    }

    pub fn seek(&self, handle: u64, from: SeekFrom) -> Result<u64> {
        let file = self.files.get(handle)?;
        match &file.content {
            Backend::Cached(cached) => cached.seek(from),
            Backend::Direct(handle) => match handle.seek(from) {
                Err(error) if error.is(libc::EOPNOTSUPP) => {
                    seek_in_data(from, handle.attributes()?.size_bytes)
                }
                found => found,
            },
        }
    }

    /// Calls `call` with the file descriptor of an open file; `None` if this process
    /// has no descriptor for it.
    pub fn with_descriptor<T>(
        &self,
        handle: u64,
        call: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> T,
    ) -> Option<T> {
        let file = self.files.get(handle).ok()?;
        let descriptor = file.direct()?.descriptor()?;
        Some(call(descriptor))
    }
}
