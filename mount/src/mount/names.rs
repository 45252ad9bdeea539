//! Requests about names: looking up, making, removing, renaming.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::metadata_cache::{DirectoryVersion, NAMES_MAX};
use super::{NodeAttributes, PathTurn, Volume};
use crate::source::{Attributes, Creation, Error, LookUp, New, RenameFlags, Result};

impl Volume {
    /// Looks a name up for the kernel, and counts the lookup (`FUSE_FORGET`).
    pub fn look_up(&self, parent: u64, name: &OsStr) -> Result<NodeAttributes> {
        let metadata = &self.shared.metadata;
        if let Some(before) = metadata.walked_version(parent) {
            self.peek(parent, before);
        }
        if let Some((attributes, age)) = metadata.child(parent, name) {
            return Ok(self.look_up_as(parent, name, attributes, age));
        }
        let found = self.look_up_in(parent, name, None)?;
        metadata.found(parent);
        Ok(found)
    }

    /// Looks a name up by attributes that the source returned some time ago.
    pub(super) fn look_up_as(
        &self,
        parent: u64,
        name: &OsStr,
        attributes: Attributes,
        age: Duration,
    ) -> NodeAttributes {
        let ino = self.shared.tree.looked_up(parent, name, &attributes);
        self.with_copy(NodeAttributes {
            ino,
            attributes,
            age,
        })
    }

    /// Reads all names of a directory. If that fails, names are looked up one by one.
    fn peek(&self, ino: u64, before: DirectoryVersion) {
        let listed = self.by_path(ino, |source, path| source.list(path, &[], NAMES_MAX));
        let entries = listed.as_ref().ok().map(|listing| &*listing.entries);
        self.shared.metadata.take(ino, before, entries);
    }

    /// Looks a name up at the source, through the open directory if there is one.
    pub(super) fn look_up_in(
        &self,
        parent: u64,
        name: &OsStr,
        open: Option<&LookUp>,
    ) -> Result<NodeAttributes> {
        let turn = &mut PathTurn::begin();
        let read = || {
            let guard = self.shared.path_below(turn, parent, name)?;
            let asked = match open {
                Some(look_up) => look_up(name),
                None => self.shared.source.attributes(guard.path()),
            };
            Ok(self.with_copy(self.looked_up(parent, name, asked)?))
        };
        let forget = |found: Result<NodeAttributes>| {
            if let Ok(found) = found {
                self.shared.tree.forget(found.ino, 1);
            }
        };
        self.shared.consistent(read, forget)
    }

    /// Looks a name up by the source's reply. The caller has locked the path since the
    /// request.
    fn looked_up(
        &self,
        parent: u64,
        name: &OsStr,
        asked: Result<Attributes>,
    ) -> Result<NodeAttributes> {
        let tree = &self.shared.tree;
        if asked == Err(Error::Errno(libc::ENOENT)) {
            tree.unlinked(parent, name);
        }
        let found = asked?;
        Ok(NodeAttributes::now(
            tree.looked_up(parent, name, &found),
            found,
        ))
    }

    pub fn make(
        &self,
        parent: u64,
        name: &OsStr,
        new: New,
        owned: &Creation,
    ) -> Result<NodeAttributes> {
        self.refuse_while_closing()?;
        let source = &*self.shared.source;
        let mut turn = PathTurn::begin();
        let guard = self.shared.path_below(&mut turn, parent, name)?;
        let change = self.shared.metadata.change(parent, name);
        source.make(guard.path(), new, owned)?;
        change.done(None);
        self.looked_up(parent, name, source.attributes(guard.path()))
    }

    pub fn hard_link(&self, ino: u64, parent: u64, name: &OsStr) -> Result<NodeAttributes> {
        self.refuse_while_closing()?;
        let (tree, source) = (&self.shared.tree, &self.shared.source);
        let find = || Ok(vec![tree.path_below(parent, name)?, tree.path(ino)?]);
        let mut turn = PathTurn::begin();
        let guard = self.shared.locks.lock(&mut turn, false, find)?;
        let (new, existing) = (&guard.paths[0], &guard.paths[1]);
        let _change = self.shared.metadata.change(parent, name);
        self.shared.touch(ino, false);
        source.hard_link(existing, new)?;
        self.shared.touch(ino, false);
        // Some sources give a file an identity only when it gets its second name.
        let now = source.attributes(existing)?;
        tree.set_identity(ino, now.identity);
        let found = self.looked_up(parent, name, source.attributes(new))?;
        Ok(self.with_copy(found))
    }

    pub fn remove_directory(&self, parent: u64, name: &OsStr) -> Result<()> {
        self.refuse_while_closing()?;
        let turn = &mut PathTurn::begin();
        let remove = |turn: &mut PathTurn| {
            let guard = self.shared.path_below(turn, parent, name)?;
            let change = self.shared.metadata.change(parent, name);
            change.done(self.shared.source.remove(guard.path(), true)?);
            self.shared.tree.unlinked(parent, name);
            Ok(())
        };
        match remove(turn) {
            // A file that was moved out of it may still have a temporary file
            // there.
            Err(Error::Errno(libc::ENOTEMPTY)) if self.leave(turn, parent, name) => remove(turn),
            removed => removed,
        }
    }

    /// Implements `unlink`. An open file stays readable. Dropping the returned value
    /// may take long, and no caller needs to wait for that.
    pub fn unlink(&self, parent: u64, name: &OsStr) -> Result<Option<OwnedFd>> {
        self.refuse_while_closing()?;
        let turn = &mut PathTurn::begin();
        self.before_removal(turn, parent, name)?;
        let find = || Ok(vec![self.shared.tree.path_below(parent, name)?]);
        let guard = self.shared.locks.lock(turn, true, find)?;
        let ino = self.shared.tree.child(parent, name);
        let names = self.other_names(parent, name);
        self.shared.metadata.touch(&names, false);
        let change = self.shared.metadata.change(parent, name);
        let rest = self.shared.source.keep_content(guard.path());
        let directory = self.shared.source.remove(guard.path(), false)?;
        self.shared.tree.unlinked(parent, name);
        self.shared.metadata.touch(&names, false);
        change.done(directory);
        self.after_removal(ino);
        Ok(rest)
    }

    fn other_names(&self, parent: u64, name: &OsStr) -> Vec<(u64, OsString)> {
        let tree = &self.shared.tree;
        let ino = tree.child(parent, name);
        let mut names = ino.map_or_else(Vec::new, |ino| tree.names(ino));
        names.retain(|(directory, other)| (*directory, other.as_os_str()) != (parent, name));
        names
    }

    /// Writes an open file back before one of its names is removed, if the file may
    /// have names that this mount does not know.
    fn before_removal(&self, turn: &mut PathTurn, parent: u64, name: &OsStr) -> Result<()> {
        let ino = self.shared.tree.child(parent, name);
        let cached = ino.and_then(|ino| self.cached(ino));
        let Some(cached) = cached.filter(|cached| cached.is_changed()) else {
            return Ok(());
        };
        let found = {
            let guard = self.shared.path_below(turn, parent, name)?;
            self.shared.source.attributes(guard.path())?
        };
        if found.identity.is_some() && found.links <= 1 {
            return Ok(());
        }
        self.write_back(turn, &cached, false)
    }

    /// Handles the removal of a name. After the last name, nothing has to be written
    /// back any more. A source without identities does not show whether a name was the
    /// last.
    fn after_removal(&self, ino: Option<u64>) {
        let nameless = ino.filter(|ino| self.shared.tree.path(*ino).is_err());
        let Some(cached) = nameless.and_then(|ino| self.cached(ino)) else {
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

    pub fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: RenameFlags) -> Result<()> {
        self.refuse_while_closing()?;
        let is_same = self.shared.tree.child(from.0, from.1) == self.shared.tree.child(to.0, to.1);
        let turn = &mut PathTurn::begin();
        if flags.is_empty() && !is_same {
            // If the name has a problem, the rename reports the problem.
            let _ = self.before_removal(turn, to.0, to.1);
        }
        let tree = &self.shared.tree;
        let guard = self.shared.locks.lock(turn, true, || {
            let old = tree.path_below(from.0, from.1)?;
            Ok(vec![old, tree.path_below(to.0, to.1)?])
        })?;
        let doomed = tree.child(to.0, to.1);
        let (old, new) = (&guard.paths[0], &guard.paths[1]);
        let metadata = &self.shared.metadata;
        let _changes = [metadata.change(from.0, from.1), metadata.change(to.0, to.1)];
        let replaced = self.other_names(to.0, to.1);
        metadata.touch(&replaced, false);
        self.shared.source.rename(old, new, flags)?;
        metadata.touch(&replaced, false);
        match flags {
            RenameFlags::EXCHANGE => self.shared.tree.exchanged(from, to),
            _ => self.shared.tree.renamed(from, to),
        }
        self.after_removal(doomed);
        Ok(())
    }
}
