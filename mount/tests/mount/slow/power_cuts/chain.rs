//! Cuts of one disk, one after another. Each boot checks what the previous cut left, and then works
//! until the next one.

use std::io::{PipeWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use toll_host::environment::guest::{
    Accelerator, AcceleratorChoice, Guest, GuestDisk, GuestFailure, GuestSpec, Input, Stream,
};
use toll_host::environment::kernel::Kernel;
use toll_stats::Rng;
use toll_testing::{beside_toll, probe};
use toll_wire::guest::{GuestCommand, TerminalSize};

use super::disk::{BLOCK_BYTES, Disk};
use super::model::{Caching, Dump, Model, is_temporary};
use super::workload::{Asked, LARGE, LINKED, Workload, content};

const DISK_BYTES: usize = 48 << 20;
const MEMORY_BYTES: u64 = 160 << 20;
const SOURCE: &str = "/work/source";
const GUEST_PROGRAM: &str = "/work/bin/bench-power-cut-guest";

/// Number of requests in flight to the guest.
const WINDOW: usize = 4;

/// Longest work before a cut.
const WORK_MAX: Duration = Duration::from_millis(1500);

/// Longest time for anything in a guest, under emulation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum number of losses that are described.
const LOSSES_TOLD_MAX: usize = 20;

/// A program setup that works on the disk.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    /// The cache mode of a mount; `None` for the file system alone.
    pub mode: Option<&'static str>,
    pub is_without_fsync: bool,
}

/// The result of a chain.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    pub subject: String,
    pub cuts: usize,
    /// Calls that were answered.
    pub calls: usize,
    /// Calls that made something durable.
    pub acknowledged: usize,
    /// Cuts after which something was missing or torn.
    pub cuts_with_losses: usize,
    pub losses: usize,
    /// Descriptions of some of the losses, and of calls that failed.
    pub found: Vec<String>,
    /// Temporary files found after cuts.
    pub temporaries: usize,
    /// Temporary files that the mount after a cut did not remove.
    pub temporaries_left: usize,
    pub seconds: u64,
    pub seed: u64,
}

pub struct Chain {
    directory: tempfile::TempDir,
    spec: GuestSpec,
    disk: Disk,
    subject: Subject,
    rng: Rng,
    outcome: Outcome,
}

impl Subject {
    fn caching(&self) -> Caching {
        match self.mode {
            Some("whole") => Caching::Whole,
            Some("blocks") => Caching::Blocks,
            _ => Caching::Direct,
        }
    }

    fn words(&self) -> Vec<String> {
        let words = match self.mode {
            None => vec![GUEST_PROGRAM, "work", SOURCE],
            Some(mode) => vec![GUEST_PROGRAM, "mounted", mode, SOURCE, "/mnt"],
        };
        let further = self.is_without_fsync.then_some("without-fsync");
        words
            .into_iter()
            .chain(further)
            .map(str::to_owned)
            .collect()
    }
}

impl Chain {
    pub fn new(kernel: &Kernel, subject: Subject, seed: u64) -> Self {
        // A short path, since the path of a Unix socket is limited to 108 bytes.
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let image = image(directory.path(), seed);
        Self {
            spec: GuestSpec {
                memory_bytes: MEMORY_BYTES,
                accelerator: AcceleratorChoice::Only(Accelerator::Tcg),
                ..GuestSpec::new(kernel.clone(), probe())
            },
            directory,
            disk: Disk::new(image),
            subject,
            rng: Rng::new(seed),
            outcome: Outcome {
                subject: subject.name.to_owned(),
                seed,
                ..Outcome::default()
            },
        }
    }

    /// Cuts the power this many times, or until `is_enough`.
    pub fn run(mut self, cuts: usize, is_enough: impl Fn(&Outcome) -> bool) -> Outcome {
        let begin = Instant::now();
        let mut before: Option<Model> = None;
        loop {
            let served = self.disk.serve(&self.directory.path().join("work.nbd"));
            let disk = GuestDisk::served(self.directory.path());
            let mut guest = Guest::boot(&self.spec, &disk, &|| false)
                .unwrap_or_else(|failure| panic!("{}: {failure}", self.subject.name));
            let dump = dump(&mut guest);
            if let Some(model) = before.take() {
                self.check(&model, &dump);
            }
            if self.outcome.cuts == cuts || is_enough(&self.outcome) {
                guest.end();
                served.join();
                break;
            }
            let mut model = Model::adopt(self.subject.caching(), &dump);
            self.work(&mut guest, &mut model);
            drop(guest);
            served.join();
            self.disk.cut(&mut self.rng);
            self.outcome.cuts += 1;
            before = Some(model);
        }
        self.check_file_system();
        self.outcome.seconds = begin.elapsed().as_secs();
        self.outcome
    }

    fn check(&mut self, model: &Model, dump: &Dump) {
        let losses = model.losses(dump);
        self.outcome.cuts_with_losses += usize::from(!losses.is_empty());
        self.outcome.losses += losses.len();
        let cut = self.outcome.cuts;
        for loss in losses {
            self.tell(format!("cut {cut}: {loss}"));
        }
        self.outcome.temporaries += dump.keys().filter(|name| is_temporary(name)).count();
    }

    fn tell(&mut self, what: String) {
        eprintln!("{}: {what}", self.subject.name);
        if self.outcome.found.len() < LOSSES_TOLD_MAX {
            self.outcome.found.push(what);
        }
    }

    /// Works until the guest is killed at a random moment.
    fn work(&mut self, guest: &mut Guest, model: &mut Model) {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        let process = Pid::from_raw(guest.process_id().cast_signed()).expect("it is positive");
        let moment = WORK_MAX.mul_f64(self.rng.uniform());
        let is_over = Arc::new(AtomicBool::new(false));
        let mut talk = Talk {
            writer,
            model,
            workload: Workload::new(self.rng.fork(self.outcome.cuts as u64)),
            asked: Vec::new(),
            rest: Vec::new(),
            left: 0,
            answered: 0,
            acknowledged: 0,
            wrong: None,
        };
        let mut killer = None;
        let mut on_output = |_: Stream, bytes: &[u8]| {
            if talk.hear(bytes) && killer.is_none() {
                let is_over = Arc::clone(&is_over);
                killer = Some(std::thread::spawn(move || {
                    std::thread::sleep(moment);
                    if !is_over.load(Ordering::Relaxed) {
                        // The guest may have just ended.
                        let _ = kill_process(process, Signal::KILL);
                    }
                }));
            }
        };
        let command = GuestCommand {
            words: self.subject.words(),
            terminal: Some(TerminalSize {
                rows: 24,
                columns: 80,
            }),
            input: String::new(),
        };
        let deadline = Instant::now() + PATIENCE;
        let input = Input::From(std::os::fd::AsFd::as_fd(&reader));
        let ended = guest.run(&command, input, None, &mut on_output, &|| {
            Instant::now() > deadline
        });
        is_over.store(true, Ordering::Relaxed);
        let is_killed = killer.is_some_and(|killer| killer.join().is_ok());
        assert!(
            is_killed && matches!(ended, Err(GuestFailure::Failed(_))),
            "{}: {ended:?}: {}\n{}",
            self.subject.name,
            String::from_utf8_lossy(&talk.rest),
            guest.log()
        );
        let (left, answered, acknowledged) = (talk.left, talk.answered, talk.acknowledged);
        let wrong = talk.wrong.take();
        self.outcome.temporaries_left += left;
        self.outcome.calls += answered;
        self.outcome.acknowledged += acknowledged;
        if let Some(wrong) = wrong {
            self.outcome.losses += 1;
            self.outcome.cuts_with_losses += 1;
            self.tell(format!("cut {}: {wrong}", self.outcome.cuts + 1));
        }
    }

    /// Checks that the file system is consistent after all cuts, as the guest's kernel recovered
    /// it.
    fn check_file_system(&self) {
        let path = self.directory.path().join("work.img");
        std::fs::write(&path, self.disk.image()).expect("the image can be written");
        let checked = Command::new("e2fsck").arg("-fn").arg(&path).output();
        let checked = checked.expect("e2fsck comes with mke2fs");
        assert!(
            checked.status.success(),
            "{}: {checked:?}",
            self.subject.name
        );
    }
}

/// The dialogue between the host and the program in the guest.
struct Talk<'a> {
    writer: PipeWriter,
    model: &'a mut Model,
    workload: Workload,
    asked: Vec<Asked>,
    rest: Vec<u8>,
    left: usize,
    answered: usize,
    acknowledged: usize,
    /// The first call that failed; no call should.
    wrong: Option<String>,
}

impl Talk<'_> {
    /// Takes output of the guest, and sends further requests. Returns whether work has begun.
    fn hear(&mut self, bytes: &[u8]) -> bool {
        self.rest.extend_from_slice(bytes);
        let mut has_begun = self.answered > 0;
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            match line.strip_prefix("ready ") {
                Some(left) => {
                    self.left = left.parse().unwrap_or(0);
                    has_begun = true;
                    (0..WINDOW).for_each(|_| self.ask());
                }
                None if self.asked.is_empty() => {
                    // An error before work has begun.
                    self.rest = line.into_bytes();
                    return false;
                }
                None => self.answer(&line),
            }
        }
        has_begun
    }

    fn ask(&mut self) {
        let asked = self.workload.next(self.model);
        let line = format!("{}\n", asked.line);
        self.writer
            .write_all(line.as_bytes())
            .expect("this process holds the reading end");
        self.asked.push(asked);
    }

    fn answer(&mut self, line: &str) {
        let asked = self.asked.remove(0);
        if self.wrong.is_some() {
            return;
        }
        if line != "ok" {
            self.wrong = Some(format!("{}: {line}", asked.line));
            return;
        }
        self.answered += 1;
        self.acknowledged += usize::from(!asked.promises.is_empty());
        for promise in &asked.promises {
            self.model.acknowledge(promise, &asked.line);
        }
        self.ask();
    }
}

/// Returns the files in the source directory of a guest.
fn dump(guest: &mut Guest) -> Dump {
    let command = GuestCommand {
        words: [GUEST_PROGRAM, "dump", SOURCE].map(str::to_owned).into(),
        terminal: None,
        input: String::new(),
    };
    let mut bytes = Vec::new();
    let mut said = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let ended = guest.run(
        &command,
        Input::None,
        None,
        &mut |stream, piece| match stream {
            Stream::Output => bytes.extend_from_slice(piece),
            Stream::Error => said.extend_from_slice(piece),
        },
        &|| Instant::now() > deadline,
    );
    let said = String::from_utf8_lossy(&said);
    assert!(
        ended.as_ref().is_ok_and(|end| end.status == Some(0)),
        "{ended:?}: {said}"
    );
    parse(&bytes)
}

fn parse(mut bytes: &[u8]) -> Dump {
    let mut dump = Dump::new();
    loop {
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("each line has an end");
        let line = std::str::from_utf8(&bytes[..end]).expect("names are UTF-8");
        bytes = &bytes[end + 1..];
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let ["file", inode, length, name] = words[..] else {
            assert_eq!((line, bytes.len()), ("end", 0));
            return dump;
        };
        let (content, behind) = bytes.split_at(length.parse().expect("the length is a number"));
        bytes = behind;
        let inode = inode.parse().expect("the inode is a number");
        dump.insert(name.to_owned(), (inode, content.to_vec()));
    }
}

/// Makes an ext4 image with the guest's programs and the first files.
fn image(directory: &Path, seed: u64) -> Vec<u8> {
    let root = directory.join("root");
    for below in ["bin", "source/a", "source/b"] {
        std::fs::create_dir_all(root.join(below)).expect("a directory can be made");
    }
    for name in ["toll-mount", "bench-power-cut-guest"] {
        strip(&beside_toll(name), &root.join("bin").join(name));
    }
    let source = root.join("source");
    for (number, name) in LARGE.iter().enumerate() {
        let bytes = content(seed + number as u64, 1_200_000 + 1234 * number);
        std::fs::write(source.join(name), bytes).expect("the file can be written");
    }
    std::fs::write(source.join(LINKED[0]), content(seed, 50_000)).expect("the file can be written");
    std::fs::hard_link(source.join(LINKED[0]), source.join(LINKED[1])).expect("links work here");
    let path = directory.join("new.img");
    let made = Command::new("mke2fs")
        .args(["-q", "-t", "ext4", "-b", &BLOCK_BYTES.to_string()])
        .args([
            "-m",
            "0",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
            "-d",
        ])
        .args([&root, &path])
        .arg(format!("{}k", (DISK_BYTES + programs_bytes(&root)) >> 10))
        .output()
        .expect("mke2fs can be started");
    assert!(made.status.success(), "{made:?}");
    std::fs::remove_dir_all(&root).expect("the files belong to this test");
    let image = std::fs::read(&path).expect("the image was just made");
    std::fs::remove_file(&path).expect("the image was just made");
    image
}

fn programs_bytes(root: &Path) -> usize {
    let entries = std::fs::read_dir(root.join("bin")).expect("the directory was just made");
    let length = |entry: std::io::Result<std::fs::DirEntry>| {
        let length = entry
            .and_then(|entry| entry.metadata())
            .expect("the file was just copied")
            .len();
        usize::try_from(length).expect("the length fits into usize")
    };
    entries.map(length).sum()
}

/// Copies a program without its debug information, so that guests load less.
fn strip(from: &Path, to: &Path) {
    let stripped = Command::new("strip").arg("-o").args([to, from]).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(from, to).expect("the program can be copied");
    }
}
