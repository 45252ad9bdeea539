//! Names: looking up, making, removing, renaming.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use super::metadata_cache::{Answer, NAMES_MAX, Version};
use super::{Found, PathTurn, Volume};
use crate::source::{Attributes, Creation, Error, Kind, LookUp, Owner, RenameFlags, Result};

impl Volume {
    /// What a name leads to, and how old what is told of it is; the kernel is
    /// told, so it counts as a lookup.
    pub fn look_up_known(&self, parent: u64, name: &OsStr) -> Result<(Found, Duration)> {
        let known = &self.shared.known;
        let answer = match known.child(parent, name) {
            Answer::List(before) => {
                self.peek(parent, before);
                known.listed(parent, name)
            }
            answer => answer,
        };
        match answer {
            Answer::Is(attributes, age) => {
                let ino = self.shared.tree.looked_up(parent, name, &attributes);
                Ok((self.with_copy(Found { ino, attributes }), age))
            }
            _ => {
                let found = self.look_up(parent, name)?;
                known.found(parent);
                Ok((found, Duration::ZERO))
            }
        }
    }

    /// Asks for all names of a directory; without an answer, each is asked for.
    fn peek(&self, ino: u64, before: Version) {
        let listed = match self.shared.path(&mut PathTurn::begin(), ino) {
            Ok(guard) => self.shared.source.list(guard.path(), &[], NAMES_MAX),
            Err(error) => Err(error),
        };
        let entries = listed.as_ref().ok().map(|listing| listing.entries.iter());
        self.shared.known.take(ino, before, entries);
    }

    /// What a name leads to; the kernel is told, so it counts as a lookup.
    pub fn look_up(&self, parent: u64, name: &OsStr) -> Result<Found> {
        self.look_up_in(parent, name, None)
    }

    /// The same for whoever has the directory open.
    pub(super) fn look_up_in(
        &self,
        parent: u64,
        name: &OsStr,
        open: Option<&LookUp>,
    ) -> Result<Found> {
        let turn = &mut PathTurn::begin();
        let read = || {
            let found = {
                let guard = self.shared.path_below(turn, parent, name)?;
                let asked = match open {
                    Some(look_up) => look_up(name),
                    None => self.shared.source.attributes(guard.path()),
                };
                self.looked_up(parent, name, asked)?
            };
            Ok(self.with_copy(found))
        };
        let forget = |found: Result<Found>| {
            if let Ok(found) = found {
                self.shared.tree.forget(found.ino, 1);
            }
        };
        self.shared.consistent(read, forget)
    }

    /// What a name leads to according to the source; whoever asked it holds the
    /// path.
    fn looked_up(&self, parent: u64, name: &OsStr, asked: Result<Attributes>) -> Result<Found> {
        match asked {
            Ok(attributes) => Ok(Found {
                ino: self.shared.tree.looked_up(parent, name, &attributes),
                attributes,
            }),
            Err(error) => {
                if error.is(libc::ENOENT) {
                    self.shared.tree.unlinked(parent, name);
                }
                Err(error)
            }
        }
    }

    fn look_up_held(&self, parent: u64, name: &OsStr, path: &Path) -> Result<Found> {
        self.looked_up(parent, name, self.shared.source.attributes(path))
    }

    /// Makes something at a name and tells what it is.
    fn made(
        &self,
        parent: u64,
        name: &OsStr,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Found> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let mut turn = PathTurn::begin();
        let guard = self.shared.path_below(&mut turn, parent, name)?;
        let change = self.shared.known.change(parent, name);
        make(guard.path())?;
        change.done(None);
        self.look_up_held(parent, name, guard.path())
    }

    /// `mkdir`.
    pub fn make_directory(&self, parent: u64, name: &OsStr, creation: &Creation) -> Result<Found> {
        self.made(parent, name, |path| {
            self.shared.source.make_directory(path, creation)
        })
    }

    /// `mknod`.
    pub fn make_node(
        &self,
        parent: u64,
        name: &OsStr,
        kind: Kind,
        device_number: u64,
        creation: &Creation,
    ) -> Result<Found> {
        self.made(parent, name, |path| {
            let source = &self.shared.source;
            source.make_node(path, kind, device_number, creation)
        })
    }

    /// `symlink`.
    pub fn make_symlink(
        &self,
        parent: u64,
        name: &OsStr,
        target: &OsStr,
        owner: Owner,
    ) -> Result<Found> {
        self.made(parent, name, |path| {
            self.shared.source.symlink(target, path, Some(owner))
        })
    }

    /// `link`.
    pub fn hard_link(&self, ino: u64, parent: u64, name: &OsStr) -> Result<Found> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let found = {
            let tree = &self.shared.tree;
            let find = || Ok(vec![tree.path_below(parent, name)?, tree.path(ino)?]);
            let mut turn = PathTurn::begin();
            let guard = self.shared.lock_paths(&mut turn, false, find)?;
            let (new, existing) = (&guard.paths[0], &guard.paths[1]);
            let _change = self.shared.known.change(parent, name);
            self.shared.touch(ino, false);
            self.shared.source.hard_link(existing, new)?;
            self.shared.touch(ino, false);
            // A source may tell files apart only from their second name on.
            let now = self.shared.source.attributes(existing)?;
            tree.set_identity(ino, now.identity);
            self.look_up_held(parent, name, guard.path())?
        };
        Ok(self.with_copy(found))
    }

    /// What a symbolic link says.
    pub fn read_link(&self, ino: u64) -> Result<OsString> {
        let mut turn = PathTurn::begin();
        let guard = self.shared.path(&mut turn, ino)?;
        self.shared.source.read_link(guard.path())
    }

    /// `rmdir`.
    pub fn remove_directory(&self, parent: u64, name: &OsStr) -> Result<()> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let turn = &mut PathTurn::begin();
        let remove = |turn: &mut PathTurn| {
            let guard = self.shared.path_below(turn, parent, name)?;
            let _change = self.shared.known.change(parent, name);
            self.shared.source.remove_directory(guard.path())?;
            self.shared.tree.unlinked(parent, name);
            Ok(())
        };
        match remove(turn) {
            // A file that was moved out of it may still be sent to there.
            Err(Error::Errno(libc::ENOTEMPTY)) if self.leave(turn, parent, name) => remove(turn),
            removed => removed,
        }
    }

    /// `unlink`. A file that is open stays readable. What is returned may take
    /// long to drop, which need not be waited for.
    pub fn unlink(&self, parent: u64, name: &OsStr) -> Result<Option<OwnedFd>> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let turn = &mut PathTurn::begin();
        self.before_removal(turn, parent, name)?;
        let find = || Ok(vec![self.shared.tree.path_below(parent, name)?]);
        let guard = self.shared.lock_paths(turn, true, find)?;
        let ino = self.shared.tree.child(parent, name);
        let names = self.other_names(parent, name);
        self.shared.known.touch(&names, false);
        let change = self.shared.known.change(parent, name);
        let rest = self.shared.source.keep_content(guard.path());
        let directory = self.shared.source.unlink(guard.path())?;
        self.shared.tree.unlinked(parent, name);
        self.shared.known.touch(&names, false);
        change.done(directory);
        self.after_removal(ino);
        Ok(rest)
    }

    /// What else a name's file is called.
    fn other_names(&self, parent: u64, name: &OsStr) -> Vec<(u64, OsString)> {
        let tree = &self.shared.tree;
        let ino = tree.child(parent, name);
        let mut names = ino.map_or_else(Vec::new, |ino| tree.names(ino));
        names.retain(|(directory, other)| (*directory, other.as_os_str()) != (parent, name));
        names
    }

    /// Brings the changes of an open file to the source before a name of it
    /// goes, if the file may have other names: this mount may not know them.
    fn before_removal(&self, turn: &mut PathTurn, parent: u64, name: &OsStr) -> Result<()> {
        let ino = self.shared.tree.child(parent, name);
        let Some(cached) = ino.and_then(|ino| self.cached(ino)) else {
            return Ok(());
        };
        if !cached.is_changed() {
            return Ok(());
        }
        let found = {
            let guard = self.shared.path_below(turn, parent, name)?;
            self.shared.source.attributes(guard.path())?
        };
        if found.identity.is_some() && found.links <= 1 {
            return Ok(());
        }
        self.write_back(turn, &cached, false)
    }

    /// A name of a file has gone. If it was the last, nothing has to go to the
    /// source any more; a source without identities does not tell.
    fn after_removal(&self, ino: Option<u64>) {
        let Some(ino) = ino.filter(|ino| self.shared.tree.path(*ino).is_err()) else {
            return;
        };
        let Some(cached) = self.cached(ino) else {
            return;
        };
        let now = cached.handle().map(|handle| handle.attributes());
        if let Some(Ok(now)) = now
            && now.identity.is_some()
            && now.links == 0
        {
            cached.removed();
        }
    }

    /// `rename`.
    pub fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: RenameFlags) -> Result<()> {
        if self.is_closing() {
            return Err(Error::Errno(libc::EROFS));
        }
        let is_same = self.shared.tree.child(from.0, from.1) == self.shared.tree.child(to.0, to.1);
        let turn = &mut PathTurn::begin();
        if flags.is_empty() && !is_same {
            // The rename tells what is wrong with the name.
            let _ = self.before_removal(turn, to.0, to.1);
        }
        let tree = &self.shared.tree;
        let guard = self.shared.lock_paths(turn, true, || {
            let old = tree.path_below(from.0, from.1)?;
            Ok(vec![old, tree.path_below(to.0, to.1)?])
        })?;
        let doomed = tree.child(to.0, to.1);
        let (old, new) = (&guard.paths[0], &guard.paths[1]);
        let known = &self.shared.known;
        let _changes = [known.change(from.0, from.1), known.change(to.0, to.1)];
        let replaced = self.other_names(to.0, to.1);
        known.touch(&replaced, false);
        self.shared.source.rename(old, new, flags)?;
        known.touch(&replaced, false);
        match flags {
            RenameFlags::EXCHANGE => self.shared.tree.exchanged(from, to),
            _ => self.shared.tree.renamed(from, to),
        }
        self.after_removal(doomed);
        Ok(())
    }
}
