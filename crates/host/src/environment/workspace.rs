//! Work directories and files for the trials of one run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toll_system::Cannot;
use toll_system::paths;

use super::cleanup_journal::{Change, Journal};
use super::filesystem::{self, Mounted};
use super::fuse_servers::{Served, Servers};
use super::instance::Instance;
use super::memory_limit::{MemoryLimit, memory_limit_obstacle};
use super::source_file::{self, SourceFile, SourceSpec};
use super::swap::Swap;
use super::workspace_check::{Fault, Made, lacks_room};

/// What the trials of a run need.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceRequest {
    /// Names of file systems: a level of the factor `fs`. If a program serves the file system and
    /// the trial has a level of `mount_cache`, a colon and that level follow.
    pub file_systems: Vec<String>,
    /// Source files, each with the file system to create it on.
    pub sources: Vec<(String, SourceSpec)>,
    /// Sizes of files of zeros to create on each file system, in bytes.
    pub zeros_sizes: Vec<u64>,
    /// Limits on the memory of some trials, in bytes.
    pub memory_limits: BTreeSet<u64>,
    /// Maximum number of bytes that trials use on one file system at a time, in
    /// addition to the sources.
    pub scratch_bytes: u64,
    /// Largest swap of any guest, in bytes; `None` without guests.
    pub guest_swap_bytes: Option<u64>,
    /// Whether two guests run at a time, each with its own disks.
    pub has_two_guests: bool,
    /// Where to make the work directory; `None` for the default place.
    pub base: Option<PathBuf>,
    /// The user's directory on a foreign file system; `None` if the run makes its own.
    pub foreign: Option<PathBuf>,
}

impl WorkspaceRequest {
    /// Requests a file system, once.
    pub fn add_file_system(&mut self, name: &str) {
        if !self.file_systems.iter().any(|known| known == name) {
            self.file_systems.push(name.to_owned());
        }
    }

    /// Requests a source file on a file system, once.
    pub fn add_source(&mut self, file_system: &str, spec: SourceSpec) {
        let source = (file_system.to_owned(), spec);
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
    }

    /// Size of a guest's work disk, in bytes: all files created in advance, and room for
    /// what trials add. Even an empty disk has space for ext4 and its journal.
    pub fn guest_disk_bytes(&self) -> u64 {
        Workspace::bytes_needed(self).max(128 << 20)
    }
}

const NOT_ASKED: &str = "it was not requested";

/// Work directories, one for each file system, and the source files. Dropping this value unmounts
/// and removes everything.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// File systems by name; an error says why one is not available.
    file_systems: BTreeMap<String, Result<Mounted, String>>,
    servers: Servers,
    sources: BTreeMap<(String, SourceSpec), SourceFile>,
    zeros: BTreeMap<(String, u64), PathBuf>,
    /// Memory limits by size in bytes, or why there are none.
    memory_limits: Result<BTreeMap<u64, MemoryLimit>, String>,
    swap: Option<Swap>,
    made: Made,
    /// Maximum number of bytes that a trial needs in addition to the files created in advance.
    scratch_bytes: u64,
    journal: RefCell<Journal>,
}

impl Workspace {
    /// Makes the work directories. An unavailable file system is not an error; [`Self::directory`]
    /// gives the reason. Must be called before other threads start, since it may move the calling
    /// thread into a mount namespace. Checks `interrupted` before each step that takes time.
    pub fn create(
        request: &WorkspaceRequest,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let base = paths::work(request.base.as_deref())?.make()?;
        let mut journal = Journal::open()?;
        let root = match journal.make_directory(&base, "run") {
            Ok(root) => root,
            Err(why) => {
                journal.close()?;
                return Err(why);
            }
        };
        // Dropping the workspace undoes everything if a later step fails.
        let mut workspace = Self {
            root: root.clone(),
            file_systems: BTreeMap::new(),
            servers: Servers::default(),
            sources: BTreeMap::new(),
            zeros: BTreeMap::new(),
            memory_limits: Ok(BTreeMap::new()),
            swap: None,
            made: Made::default(),
            scratch_bytes: request.scratch_bytes,
            journal: RefCell::new(journal),
        };
        Self::check_space(&root, request)?;
        let is_root = rustix::process::geteuid().is_root();
        if is_root && request.file_systems.iter().any(|name| name != "work") {
            filesystem::enter_mount_namespace()?;
        }
        for name in &request.file_systems {
            go_on_unless(interrupted)?;
            let mounted = workspace.mount(name, request);
            workspace.file_systems.insert(name.clone(), mounted);
        }
        workspace.lay_sources(request, interrupted)?;
        workspace.note_made()?;
        go_on_unless(interrupted)?;
        workspace.memory_limits = workspace.limit_memory(&request.memory_limits);
        Ok(workspace)
    }

    fn bytes_needed(request: &WorkspaceRequest) -> u64 {
        // Adds a quarter, and 128 MiB for metadata and journals. Counts all sources for each file
        // system.
        let sources: BTreeSet<SourceSpec> = request.sources.iter().map(|(_, spec)| *spec).collect();
        let sources = sources.into_iter().map(|source| source.size_bytes);
        let laid = sources.chain(request.zeros_sizes.iter().copied());
        let swap = request.memory_limits.last().copied().unwrap_or(0);
        let payload = laid.sum::<u64>() + request.scratch_bytes + swap;
        match payload {
            0 => 0,
            payload => payload + payload / 4 + (128 << 20),
        }
    }

    /// Checks whether the work directories could be made, and leaves nothing behind.
    pub fn check(request: &WorkspaceRequest) -> Result<(), String> {
        let place = paths::work(request.base.as_deref())?;
        let base = place.unchecked_path();
        let above = base.ancestors();
        let missing: Vec<&Path> = above.take_while(|directory| !directory.exists()).collect();
        let checked = place.make().and_then(|base| {
            let root = base.unused_path("run")?;
            base.make_new(&root)?;
            let checked = Self::check_space(&root, request);
            let _ = fs::remove_dir(root);
            checked
        });
        for directory in missing {
            let _ = fs::remove_dir(directory);
        }
        checked
    }

    fn check_space(directory: &Path, request: &WorkspaceRequest) -> Result<(), String> {
        let on_disk = request
            .file_systems
            .iter()
            .filter(|name| *name != "tmpfs")
            .count() as u64;
        let guest = request.guest_swap_bytes;
        let of_one = guest.map_or(0, |swap| swap + request.guest_disk_bytes());
        let images = of_one * if request.has_two_guests { 2 } else { 1 };
        let needed = Self::bytes_needed(request) * on_disk.max(1) + images;
        let free = rustix::fs::statvfs(directory)
            .map(|stat| stat.f_bavail * stat.f_frsize)
            .unwrap_or(u64::MAX);
        if free < needed {
            return Err(format!(
                "cannot make the work files: {} needs about {} MiB free and has {}; choose \
                 another place with --work-dir, or fewer levels of fs or size",
                directory.display(),
                needed >> 20,
                free >> 20
            ));
        }
        Ok(())
    }

    fn mount(&mut self, name: &str, request: &WorkspaceRequest) -> Result<Mounted, String> {
        let bytes = Self::bytes_needed(request);
        let (root, journal) = (&self.root, self.journal.get_mut());
        match name {
            "work" => {
                let directory = root.join("work");
                fs::create_dir(&directory).map_err(|error| error.to_string())?;
                Ok(Mounted::there(directory))
            }
            "tmpfs" => filesystem::mount_tmpfs(root, bytes, journal),
            "foreign" => filesystem::mount_foreign(request.foreign.as_deref(), root, journal),
            name => match Served::parse(name) {
                Some(served) => self.servers.mount(served, name, root, journal),
                None => filesystem::mount_loop(name, root, bytes, journal),
            },
        }
    }

    fn lay_sources(
        &mut self,
        request: &WorkspaceRequest,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        for (name, mounted) in mounted(&self.file_systems) {
            let here = request.sources.iter().filter(|(place, _)| place == name);
            for &(_, spec) in here {
                go_on_unless(interrupted)?;
                let path = mounted.directory.join(spec.name());
                let source = SourceFile::create(&path, spec).cannot("write", &path)?;
                self.sources.insert((name.clone(), spec), source);
            }
            for &size_bytes in &request.zeros_sizes {
                let path = mounted.directory.join(format!("zeros-{size_bytes}"));
                source_file::lay_zeros(&path, size_bytes).cannot("write", &path)?;
                self.zeros.insert((name.clone(), size_bytes), path);
            }
        }
        Ok(())
    }

    /// Records what was made, so that changes are noticed.
    fn note_made(&mut self) -> Result<(), String> {
        let directories =
            mounted(&self.file_systems).map(|(name, mounted)| (name, &mounted.directory));
        let sources = self.sources.iter();
        let sources = sources.map(|((name, _), source)| (name, &source.path));
        let zeros = self.zeros.iter().map(|((name, _), path)| (name, path));
        self.made.note(&self.root, None).cannot("use", &self.root)?;
        for (name, path) in directories.chain(sources).chain(zeros) {
            let is_own = name != "work";
            let noted = self.made.note(path, is_own.then_some(name));
            noted.cannot("use", path)?;
        }
        Ok(())
    }

    /// Returns what happened from outside to the work directory or to a file system in it, if
    /// trials can no longer work there. Ignores file systems that are no longer used.
    pub fn fault(&self, is_used: &dyn Fn(&str) -> bool) -> Option<Fault> {
        let changed = self.made.changed(is_used);
        changed.or_else(|| {
            let full = lacks_room(&self.root, &self.made, self.scratch_bytes);
            full.map(Fault::WorkDirectory)
        })
    }

    /// Whether a file system is still mounted where it was. If not, a trial that makes its own
    /// files would measure the file system below the mount point.
    pub fn is_mounted(&self, file_system: &str) -> bool {
        let directory = self.directory(file_system);
        directory.map_or(true, |directory| self.made.is_there(directory))
    }

    /// Makes the memory limits, and swap for what they push out. The swap is as large as the
    /// largest limit, a customary size.
    fn limit_memory(
        &mut self,
        limits: &BTreeSet<u64>,
    ) -> Result<BTreeMap<u64, MemoryLimit>, String> {
        let Some(&largest) = limits.last() else {
            return Ok(BTreeMap::new());
        };
        if let Some(reason) = memory_limit_obstacle() {
            return Err(reason);
        }
        let journal = self.journal.get_mut();
        self.swap = Some(Swap::create(&self.root, largest, journal)?);
        let made = limits
            .iter()
            .map(|&bytes| Ok((bytes, MemoryLimit::create(bytes, journal)?)));
        made.collect()
    }

    /// Returns the limit of `limit_bytes` of memory, backed by swap, or the reason
    /// why this machine does not have it.
    pub fn memory_limit(&self, limit_bytes: u64) -> Result<&MemoryLimit, &str> {
        let limits = self.memory_limits.as_ref().map_err(String::as_str)?;
        limits.get(&limit_bytes).ok_or(NOT_ASKED)
    }

    fn file_system(&self, name: &str) -> Result<&Mounted, &str> {
        let found = self.file_systems.get(name).ok_or(NOT_ASKED)?;
        found.as_ref().map_err(String::as_str)
    }

    /// Returns the directory on a file system, or the reason why this machine does not have that
    /// file system.
    pub fn directory(&self, file_system: &str) -> Result<&Path, &str> {
        Ok(&self.file_system(file_system)?.directory)
    }

    /// Returns where a file system's files are stored, if it shows the files of another one;
    /// otherwise its own directory.
    pub fn below(&self, file_system: &str) -> Result<&Path, &str> {
        let mounted = self.file_system(file_system)?;
        Ok(mounted.below.as_ref().unwrap_or(&mounted.directory))
    }

    /// Returns why files on a file system stay in memory when they are dropped; `None` if they do
    /// not.
    pub fn cold_obstacle(&self, file_system: &str) -> Option<&str> {
        let mounted = self.file_system(file_system).ok()?;
        mounted.cold_obstacle.as_deref()
    }

    /// Returns a source file on a file system.
    pub fn source(&self, file_system: &str, spec: SourceSpec) -> Option<&SourceFile> {
        self.sources.get(&(file_system.to_owned(), spec))
    }

    /// Returns the file of zeros of a size on a file system.
    pub fn zeros(&self, file_system: &str, size_bytes: u64) -> Option<&Path> {
        let path = self.zeros.get(&(file_system.to_owned(), size_bytes));
        path.map(PathBuf::as_path)
    }

    /// Records processes that a set-up left running, which the next start kills if
    /// this program is killed.
    pub fn note_processes(&self, pids: &BTreeSet<i32>) -> Result<(), String> {
        let alive = pids
            .iter()
            .filter_map(|pid| Instance::from_pid(pid.cast_unsigned()));
        let mut journal = self.journal.borrow_mut();
        alive
            .map(Change::Process)
            .try_for_each(|change| journal.note(change))
    }

    /// The directory that contains all work directories.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Lists the available file systems by name.
fn mounted(
    file_systems: &BTreeMap<String, Result<Mounted, String>>,
) -> impl Iterator<Item = (&String, &Mounted)> {
    let all = file_systems.iter();
    all.filter_map(|(name, mounted)| Some((name, mounted.as_ref().ok()?)))
}

fn go_on_unless(interrupted: &dyn Fn() -> bool) -> Result<(), String> {
    if interrupted() {
        Err("cannot make the work files: interrupted".into())
    } else {
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.file_systems.clear();
        // Removes the limits first, since swap empties sooner without users.
        self.memory_limits = Ok(BTreeMap::new());
        self.swap = None;
        // What cannot be undone stays in the journal for the next start.
        let _ = self.journal.get_mut().close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_its_sources_and_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let request = WorkspaceRequest {
            file_systems: vec!["work".into()],
            sources: [1000, 0]
                .map(|size| ("work".into(), SourceSpec::random(size)))
                .into(),
            zeros_sizes: vec![2000],
            base: Some(base.path().to_owned()),
            ..WorkspaceRequest::default()
        };
        let workspace = Workspace::create(&request, &|| false).unwrap();
        let zeros = workspace.zeros("work", 2000).unwrap();
        assert_eq!(fs::read(zeros).unwrap(), [0; 2000]);
        let source = workspace.source("work", SourceSpec::random(1000)).unwrap();
        assert_eq!(fs::metadata(&source.path).unwrap().len(), 1000);
        assert!(workspace.directory("zfs").is_err());
        drop(workspace);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_run_that_cannot_fit_is_refused_before_it_starts() {
        let base = tempfile::tempdir().unwrap();
        let request = WorkspaceRequest {
            file_systems: vec!["work".into()],
            sources: vec![("work".into(), SourceSpec::random(1 << 50))],
            base: Some(base.path().to_owned()),
            ..WorkspaceRequest::default()
        };
        let error = Workspace::create(&request, &|| false).unwrap_err();
        assert!(error.contains("--work-dir"), "{error}");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
