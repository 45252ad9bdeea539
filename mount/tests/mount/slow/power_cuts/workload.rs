//! Random file operations on a few file names.
//!
//! Three scripts run interleaved, call by call. Each owns its names, so the result of a call
//! depends only on the calls before it.

use std::collections::{BTreeSet, VecDeque};

use toll_stats::Rng;

use super::model::{Model, Promise};

const DIRECTORIES: [&str; 2] = ["a", "b"];
const SMALL_NAMES: usize = 12;
pub const LARGE: [&str; 2] = ["a/large", "b/large"];
/// Two names of the same file.
pub const LINKED: [&str; 2] = ["a/linked", "b/linked"];
const SCRIPTS: usize = 3;

/// Returns bytes that are determined by a seed. Equals `power_cut::content` of the package
/// toll-bench, whose program makes them in the guest.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let words = std::iter::repeat_with(|| rng.next_u64().to_le_bytes());
    words.flatten().take(bytes).collect()
}

/// One call that the guest makes.
#[derive(Debug, Clone)]
enum Call {
    Open(&'static str, String),
    Append(usize),
    Write(usize, usize),
    Truncate(usize),
    Fsync,
    Close,
    Sync(String),
    SyncDirectory(&'static str),
    Rename(String, String),
    Unlink(String),
}

struct Script {
    slot: u32,
    names: Vec<String>,
    calls: VecDeque<Call>,
}

/// A request to the guest, and what its reply promises.
pub struct Asked {
    pub line: String,
    pub promises: Vec<Promise>,
}

pub struct Workload {
    rng: Rng,
    scripts: Vec<Script>,
    next_slot: u32,
}

impl Workload {
    pub fn new(rng: Rng) -> Self {
        Self {
            rng,
            scripts: Vec::new(),
            next_slot: 0,
        }
    }

    /// Returns the next call, and adds it to the model.
    pub fn next(&mut self, model: &mut Model) -> Asked {
        while self.scripts.len() < SCRIPTS {
            if let Some(script) = self.script(model) {
                self.scripts.push(script);
            }
        }
        let index = self.rng.below(SCRIPTS);
        let script = &mut self.scripts[index];
        let call = script.calls.pop_front().expect("a script is not empty");
        let slot = script.slot;
        if script.calls.is_empty() {
            self.scripts.swap_remove(index);
        }
        self.ask(model, slot, call)
    }

    fn ask(&mut self, model: &mut Model, slot: u32, call: Call) -> Asked {
        let mut promises = Vec::new();
        let line = match call {
            Call::Open(flags, name) => {
                model.open(slot, &name, flags.contains('t'));
                format!("open {slot} {flags} {name}")
            }
            Call::Append(bytes) => self.write(model, slot, model.end(slot), bytes),
            Call::Write(offset, bytes) => self.write(model, slot, offset, bytes),
            Call::Truncate(bytes) => {
                model.truncate(slot, bytes);
                format!("truncate {slot} {bytes}")
            }
            Call::Fsync => {
                promises = model.fsync(slot);
                format!("fsync {slot}")
            }
            Call::Close => {
                promises = model.close(slot);
                format!("close {slot}")
            }
            Call::Sync(name) => {
                promises = model.sync(&name);
                format!("sync {name}")
            }
            Call::SyncDirectory(name) => {
                promises = model.sync_directory(name);
                format!("sync {name}")
            }
            Call::Rename(from, to) => {
                model.rename(&from, &to);
                format!("rename {from} {to}")
            }
            Call::Unlink(name) => {
                model.unlink(&name);
                format!("unlink {name}")
            }
        };
        Asked { line, promises }
    }

    fn write(&mut self, model: &mut Model, slot: u32, offset: usize, bytes: usize) -> String {
        let seed = self.rng.next_u64();
        model.write(slot, offset, &content(seed, bytes));
        format!("write {slot} {offset} {bytes} {seed}")
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.rng.below(100) < percent
    }

    /// Chooses a name that no script owns. Returns it with its file's length, if that exists;
    /// `None` if the name is taken.
    fn name(&mut self, model: &Model) -> Option<(String, Option<usize>)> {
        let directory = DIRECTORIES[self.rng.below(2)];
        let name = format!("{directory}/s{}", self.rng.below(SMALL_NAMES));
        self.free(&[&name])?;
        let size = model.size_of(&name);
        Some((name, size))
    }

    fn free(&self, names: &[&str]) -> Option<()> {
        let taken = self.scripts.iter().flat_map(|script| &script.names);
        let taken: BTreeSet<&str> = taken.map(String::as_str).collect();
        names.iter().all(|name| !taken.contains(name)).then_some(())
    }

    /// Makes a script if its names are free; otherwise `None`.
    fn script(&mut self, model: &Model) -> Option<Script> {
        let (names, calls) = match self.rng.below(100) {
            0..25 => self.rewrite(model)?,
            25..45 => self.patch(model)?,
            45..60 => self.save(model)?,
            60..72 => self.rename(model)?,
            72..80 => self.unlink(model)?,
            80..92 => self.patch_large(model)?,
            _ => self.patch_linked(model)?,
        };
        self.next_slot += 1;
        Some(Script {
            slot: self.next_slot,
            names,
            calls: calls.into(),
        })
    }

    /// Rewrites a file in one to three writes.
    fn rewrite(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let (name, _) = self.name(model)?;
        let mut calls = vec![Call::Open("ct", name.clone())];
        self.appends(&mut calls);
        self.end(&mut calls, &name, 30);
        if self.chance(20) {
            calls.push(Call::SyncDirectory(directory_of(&name)));
        }
        Some((vec![name], calls))
    }

    /// Overwrites, truncates or appends a part of a file.
    fn patch(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let (name, size) = self.name(model)?;
        let size = size.filter(|size| *size < 100_000)?;
        let mut calls = Vec::new();
        match self.rng.below(3) {
            0 => {
                calls.push(Call::Open("a", name.clone()));
                calls.push(Call::Append(1 + self.rng.below(6000)));
            }
            1 => {
                calls.push(Call::Open("", name.clone()));
                calls.push(Call::Truncate(self.rng.below(size + 5000)));
            }
            _ => {
                calls.push(Call::Open("", name.clone()));
                let offset = self.rng.below(size + 1);
                calls.push(Call::Write(offset, 1 + self.rng.below(10_000)));
            }
        }
        self.end(&mut calls, &name, 40);
        Some((vec![name], calls))
    }

    /// Writes and synchronises a new file, and renames it over another.
    fn save(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let (name, _) = self.name(model)?;
        let new = format!("{name}.new");
        let mut calls = vec![Call::Open("ct", new.clone())];
        self.appends(&mut calls);
        calls.extend([Call::Fsync, Call::Close]);
        calls.push(Call::Rename(new.clone(), name.clone()));
        if self.chance(70) {
            calls.push(Call::SyncDirectory(directory_of(&name)));
        }
        Some((vec![name, new], calls))
    }

    /// Renames a file, half of the time while it is open and changed.
    fn rename(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let (from, size) = self.name(model)?;
        let (to, _) = self.name(model).filter(|(to, _)| *to != from)?;
        size?;
        let moved = Call::Rename(from.clone(), to.clone());
        let mut calls = Vec::new();
        if self.chance(50) {
            calls.push(Call::Open("a", from.clone()));
            calls.push(Call::Append(1 + self.rng.below(9000)));
            calls.push(moved);
            if self.chance(50) {
                calls.push(Call::Append(1 + self.rng.below(9000)));
            }
            self.end(&mut calls, &to, 40);
        } else {
            calls.push(moved);
        }
        if self.chance(60) {
            calls.push(Call::SyncDirectory(directory_of(&to)));
            calls.push(Call::SyncDirectory(directory_of(&from)));
        }
        Some((vec![from, to], calls))
    }

    /// Removes a file, half of the time while it is open.
    fn unlink(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let (name, size) = self.name(model)?;
        size?;
        let mut calls = Vec::new();
        let is_open = self.chance(50);
        if is_open {
            calls.push(Call::Open("a", name.clone()));
            calls.push(Call::Append(3000));
        }
        calls.push(Call::Unlink(name.clone()));
        if is_open {
            calls.push(Call::Append(3000));
            calls.push(Call::Close);
        }
        if self.chance(50) {
            calls.push(Call::SyncDirectory(directory_of(&name)));
        }
        Some((vec![name], calls))
    }

    fn patch_large(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        let name = LARGE[self.rng.below(2)];
        self.free(&[name])?;
        let size = model.size_of(name)?;
        let mut calls = vec![Call::Open("", name.into())];
        for _ in 0..=self.rng.below(2) {
            let offset = self.rng.below(size);
            let bytes = (size - offset).min(1 + self.rng.below(200_000));
            calls.push(Call::Write(offset, bytes));
        }
        self.end(&mut calls, name, 50);
        Some((vec![name.into()], calls))
    }

    fn patch_linked(&mut self, model: &Model) -> Option<(Vec<String>, Vec<Call>)> {
        self.free(&LINKED)?;
        let name = LINKED[self.rng.below(2)];
        let offset = self.rng.below(model.size_of(name)?);
        let mut calls = vec![Call::Open("", name.into())];
        calls.push(Call::Write(offset, 1 + self.rng.below(9000)));
        self.end(&mut calls, name, 50);
        Some((LINKED.map(str::to_owned).into(), calls))
    }

    fn appends(&mut self, calls: &mut Vec<Call>) {
        let bytes_max = [200, 4096, 20_000][self.rng.below(3)];
        for _ in 0..=self.rng.below(3) {
            calls.push(Call::Append(1 + self.rng.below(bytes_max)));
        }
    }

    /// Synchronises a file before its close, after it, or not at all.
    fn end(&mut self, calls: &mut Vec<Call>, name: &str, fsync_percent: usize) {
        if self.chance(fsync_percent) {
            calls.push(Call::Fsync);
        }
        calls.push(Call::Close);
        if self.chance(30) {
            calls.push(Call::Sync(name.into()));
        }
    }
}

fn directory_of(name: &str) -> &'static str {
    let is_above = |directory: &&&str| name.starts_with(**directory);
    DIRECTORIES
        .iter()
        .find(is_above)
        .expect("each name is in a directory")
}
