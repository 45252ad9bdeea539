//! Several threads and processes on one mount: every call returns what it
//! returns on ext4, and the content in the end is the same.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, linkat};
use rustix::io::Errno;

use crate::common::{Mounted, SETTINGS, close, each, starting, without_new_processes};
use crate::random::Random;

const THREADS: u64 = 4;
const EXT4_MAGIC: i64 = 0xef53;

/// Names that a thread uses in its own directory and in the common one.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Contents that differ differ in this, too.
fn summary(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{} bytes, hash {:x}", content.len(), hasher.finish())
}

/// One thread's work: what it does depends on its number alone, and names of one
/// thread are no other's, so that every result is determined.
struct Script {
    number: u64,
    random: Random,
    /// The thread's own directory, and the one that all use and one renames.
    directories: [OwnedFd; 2],
    open: Vec<File>,
    /// A file that another thread gives other names.
    moved: File,
    results: Vec<String>,
}

fn errno<T>(outcome: Result<T, Errno>) -> String {
    outcome.map_or_else(|error| format!("{error:?}"), |_| "ok".to_owned())
}

impl Script {
    fn new(base: &Path, number: u64) -> Self {
        let own = base.join(format!("own{number}"));
        fs::create_dir(&own).unwrap();
        let open = |path: &Path| {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).unwrap()
        };
        let moved = File::create_new(base.join(format!("moved{number}"))).unwrap();
        Self {
            number,
            random: Random(number),
            directories: [open(&own), open(&base.join("common"))],
            open: Vec::new(),
            moved,
            results: Vec::new(),
        }
    }

    fn name(&mut self) -> String {
        let name = NAMES[self.random.below(NAMES.len())];
        format!("{name}{}", self.number)
    }

    /// A directory, and a name that is this thread's alone in it or in a
    /// directory that the thread may have made there.
    fn place(&mut self) -> (usize, String) {
        let at = self.random.below(2);
        let name = self.name();
        match self.random.below(3) {
            0 => (at, format!("{name}/{}", self.name())),
            _ => (at, name),
        }
    }

    fn directory(&self, at: usize) -> BorrowedFd<'_> {
        self.directories[at].as_fd()
    }

    fn open(&mut self) -> String {
        let flags = match self.random.below(5) {
            0 => OFlags::CREATE | OFlags::EXCL,
            1 => OFlags::CREATE | OFlags::TRUNC,
            2 => OFlags::CREATE | OFlags::APPEND,
            3 => OFlags::empty(),
            _ => OFlags::CREATE,
        };
        let (at, name) = self.place();
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self.directory(at), name, flags, Mode::from(0o644));
        errno(opened.map(|file| self.open.push(file.into())))
    }

    fn on_open(&mut self, operation: usize) -> String {
        if self.open.is_empty() {
            return "nothing is open".to_owned();
        }
        let at = self.random.below(self.open.len());
        let offset = self.random.below(1 << 16) as u64;
        let byte = self.random.below(255) as u8;
        let length = 1 + self.random.below(3 << 14);
        let file = &self.open[at];
        match operation {
            0 => errno(rustix::io::pwrite(file, &vec![byte; length], offset)),
            1 => errno(rustix::fs::ftruncate(file, offset)),
            2 => errno(rustix::fs::fsync(file)),
            3 => {
                let mut content = vec![0; 1 << 18];
                let read = rustix::io::pread(file, &mut content, 0);
                let read = read.map(|count| summary(&content[..count]));
                let links = rustix::fs::fstat(file).map(|stat| stat.st_nlink);
                format!("{read:?}, links {links:?}")
            }
            _ => errno(close(self.open.swap_remove(at))),
        }
    }

    fn on_names(&mut self, operation: usize) -> String {
        let (from, to) = (self.place(), self.place());
        let (old, new) = (self.directory(from.0), self.directory(to.0));
        match operation {
            0 => errno(rustix::fs::renameat(old, &from.1, new, &to.1)),
            1 => errno(linkat(old, &from.1, new, &to.1, AtFlags::empty())),
            2 => errno(rustix::fs::unlinkat(old, &from.1, AtFlags::empty())),
            3 => errno(rustix::fs::mkdirat(old, &from.1, Mode::from(0o755))),
            4 => errno(rustix::fs::unlinkat(old, &from.1, AtFlags::REMOVEDIR)),
            _ => match rustix::fs::statat(old, &from.1, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if stat.st_mode & libc::S_IFMT == libc::S_IFDIR => "directory".to_owned(),
                Ok(stat) => format!("{} bytes, {} links", stat.st_size, stat.st_nlink),
                Err(error) => format!("{error:?}"),
            },
        }
    }

    /// Writes to the file that is being renamed, and closes a descriptor of it.
    fn on_moved(&mut self) -> String {
        let byte = self.random.below(255) as u8;
        let length = 1 + self.random.below(3 << 14);
        let offset = self.random.below(1 << 16) as u64;
        let written = errno(rustix::io::pwrite(&self.moved, &vec![byte; length], offset));
        let copy = self.moved.try_clone().unwrap();
        format!("{written} {}", errno(close(copy)))
    }

    fn run(mut self, operations: usize) -> Vec<String> {
        for step in 0..operations {
            let operation = self.random.below(19);
            let result = match operation {
                0..4 => self.open(),
                4..10 => self.on_open(operation - 4),
                10..16 => self.on_names(operation - 10),
                _ => self.on_moved(),
            };
            self.results.push(format!("{step}: {operation} {result}"));
            if self.open.len() > 4 {
                let closed = errno(close(self.open.remove(0)));
                self.results.push(format!("{step}: close {closed}"));
            }
        }
        self.open.push(self.moved);
        for file in self.open.into_iter().rev() {
            let closed = errno(close(file));
            self.results.push(format!("end: close {closed}"));
        }
        self.results
    }
}

/// Gives the common directory and each thread's `moved` file another name and
/// back, until it is told to stop: under everybody's feet. Tells how often.
fn rename_all(base: &Path, is_over: &AtomicBool) -> u64 {
    let files = (0..THREADS).map(|number| format!("moved{number}"));
    let names: Vec<_> = files.chain(["common".to_owned()]).collect();
    let mut rounds = 0;
    while !is_over.load(Ordering::Relaxed) {
        rounds += 1;
        for name in &names {
            let (old, new) = (base.join(name), base.join(format!("{name}-renamed")));
            fs::rename(&old, &new).unwrap();
            fs::rename(&new, &old).unwrap();
        }
    }
    rounds
}

/// What each thread's calls return.
fn run(base: &Path, operations: usize) -> Vec<Vec<String>> {
    fs::create_dir(base.join("common")).unwrap();
    let scripts: Vec<_> = (0..THREADS)
        .map(|number| Script::new(base, number))
        .collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| rename_all(base, &is_over));
        let run = |script: Script| scope.spawn(move || script.run(operations));
        let threads: Vec<_> = scripts.into_iter().map(run).collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(renames.join().unwrap() > 0, "nothing was renamed meanwhile");
        results.into_iter().map(|result| result.unwrap()).collect()
    })
}

/// Every file's content, and links, by its path; directories as such.
fn tree(at: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![at.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(at).unwrap().display().to_string();
            if metadata.is_dir() {
                found.insert(name, "directory".to_owned());
                left.push(path);
                continue;
            }
            let content = summary(&fs::read(&path).unwrap());
            found.insert(name, format!("{content}, {} links", metadata.nlink()));
        }
    }
    found
}

fn each_without_write_back(test: impl Fn(&mut Mounted)) {
    let is_tested = |kernel| matches!(kernel, "pages" | "direct");
    each(
        SETTINGS.iter().filter(|setting| is_tested(setting.kernel)),
        test,
    );
}

#[test]
fn threads_get_from_every_call_what_ext4_returns_and_leave_the_same_files() {
    let plain = tempfile::tempdir().unwrap();
    if rustix::fs::statfs(plain.path()).unwrap().f_type != EXT4_MAGIC {
        eprintln!("skipped: temporary files are not on ext4");
        return;
    }
    let operations = std::env::var("USERFS_OPERATIONS");
    let operations = operations.map_or(400, |count| count.parse().expect("it is a number"));
    let expected = run(plain.path(), operations);
    let expected_tree = tree(plain.path());
    each_without_write_back(|mounted| {
        let alone = without_new_processes();
        let results = run(&mounted.at, operations);
        drop(alone);
        for (number, (results, expected)) in results.iter().zip(&expected).enumerate() {
            let mut pairs = results.iter().zip(expected);
            let different = pairs.find(|(one, other)| one != other);
            assert_eq!(different, None, "thread {number} in {:?}", mounted.setting);
        }
        assert_eq!(tree(&mounted.at), expected_tree, "{:?}", mounted.setting);
        mounted.stop_clean();
        assert_eq!(
            tree(&mounted.source),
            expected_tree,
            "{:?}",
            mounted.setting
        );
        assert_eq!(mounted.kept(), [] as [&Path; 0], "{:?}", mounted.setting);
    });
}

#[test]
fn appends_of_four_shells_lose_no_line() {
    let of_shell = |number| (1..=300).map(move |line| format!("{number} {line}"));
    let mut expected: Vec<_> = (0..4).flat_map(of_shell).collect();
    expected.sort();
    each_without_write_back(|mounted| {
        let log = mounted.path("log");
        let shells = [0, 1, 2, 3].map(|number| {
            let script = format!("for i in $(seq 300); do echo {number} $i >>\"$1\" || exit; done");
            let mut command = Command::new("sh");
            command.args(["-ec", &script, "sh"]).arg(&log);
            starting(|| command.stderr(Stdio::piped()).spawn().unwrap())
        });
        for shell in shells {
            let ended = shell.wait_with_output().unwrap();
            assert!(ended.status.success(), "{:?}: {ended:?}", mounted.setting);
        }
        for text in [mounted.read("log"), mounted.read_behind("log")] {
            let text = String::from_utf8(text).unwrap();
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, expected, "{:?}", mounted.setting);
        }
    });
}
