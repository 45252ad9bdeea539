//! Finds the devices that a command opens, from the output of strace.
//!
//! `/proc` shows what is open at one moment, but most programs hold a device only
//! briefly. Tracing shows each call that opens a device.

use std::collections::BTreeMap;

use toll_calls::assembly::{Assembly, Event};
use toll_calls::descriptor::unescape;
use toll_calls::line::{Call, CallResult};
use toll_observe::devices::{
    Access, By, Class, Number, Process, Sighting, Sightings, Tables, Target, held, shown_path,
};

/// Calls to trace: those that return a descriptor, map memory, or start a process.
pub(super) const TRACED_CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "open_by_handle_at",
    "pidfd_getfd",
    "mmap",
    "execve",
    "clone",
    "clone3",
    "fork",
    "vfork",
];

/// The devices that a command, and the processes that it started, have opened.
#[derive(Debug, Default)]
pub(super) struct OpenedDevices {
    assembly: Assembly,
    threads: BTreeMap<u32, Thread>,
    first: Option<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    name: String,
    /// The thread that started this thread, if both belong to one process.
    creator: Option<u32>,
    sightings: Sightings,
}

impl OpenedDevices {
    /// Takes one line of `strace -f --decode-fds=path,dev`. Ignores lines that
    /// do not have the expected form.
    pub fn feed(&mut self, line: &str) {
        if let Some(stamped) = toll_calls::line::stamped(line) {
            self.first.get_or_insert(stamped.thread);
            self.threads.entry(stamped.thread).or_default();
        }
        if let Some(Event::Call { thread, call, .. }) = self.assembly.feed(line) {
            self.call(thread, &call);
        }
    }

    fn call(&mut self, thread: u32, call: &Call) {
        let CallResult::Value(value) = call.result else {
            return;
        };
        match call.name.as_str() {
            "execve" => {
                let path = call
                    .arguments
                    .first()
                    .map_or("", |path| path.trim_matches('"'));
                let name = path.rsplit('/').next().unwrap_or_default();
                self.threads.entry(thread).or_default().name = shown_path(&unescape(name));
            }
            "clone" | "clone3" | "fork" | "vfork" => {
                if let Ok(child) = u32::try_from(value) {
                    let is_thread = call
                        .arguments
                        .iter()
                        .any(|one| one.contains("CLONE_THREAD"));
                    self.child(thread, child, is_thread);
                }
            }
            name => {
                let sighting = match name {
                    "mmap" => mapped(&call.arguments),
                    _ => opened(call),
                };
                if let Some(sighting) = sighting {
                    self.saw(thread, sighting);
                }
            }
        }
    }

    fn saw(&mut self, thread: u32, sighting: Sighting) {
        let thread = self.threads.entry(thread).or_default();
        *thread.sightings.entry(sighting).or_default() += 1;
    }

    fn child(&mut self, parent: u32, child: u32, is_thread: bool) {
        let name = self.threads.entry(parent).or_default().name.clone();
        let thread = self.threads.entry(child).or_default();
        // The thread may have run, and executed another program, before its parent
        // continues.
        if thread.name.is_empty() {
            thread.name = name;
        }
        if is_thread && child != parent {
            thread.creator = Some(parent);
        }
    }

    /// Returns the processes that held a device, and the number of all traced
    /// processes.
    pub fn finish(mut self, inherited: Vec<Sighting>, tables: &Tables) -> (Vec<Process>, u64) {
        if let Some(first) = self.first {
            inherited.into_iter().for_each(|one| self.saw(first, one));
        }
        let mut processes: BTreeMap<u32, Sightings> = BTreeMap::new();
        for (pid, thread) in &self.threads {
            let sightings = processes.entry(self.leader(*pid)).or_default();
            for (sighting, count) in &thread.sightings {
                *sightings.entry(sighting.clone()).or_default() += count;
            }
        }
        let count = processes.len() as u64;
        processes.retain(|_, sightings| !sightings.is_empty());
        let found = processes.into_iter().map(|(pid, sightings)| Process {
            pid,
            name: self
                .threads
                .get(&pid)
                .map_or(String::new(), |one| one.name.clone()),
            has_other_mounts: false,
            devices: held(&sightings, tables),
        });
        (found.collect(), count)
    }

    fn leader(&self, pid: u32) -> u32 {
        let creator = |pid: &u32| self.threads.get(pid)?.creator;
        // Process numbers may be reused, so the chain could be a circle.
        let chain = std::iter::successors(Some(pid), creator).take(self.threads.len() + 1);
        chain.last().unwrap_or(pid)
    }
}

/// Returns what a call opened, from a result such as `3</dev/null<char 1:3>>`.
fn opened(call: &Call) -> Option<Sighting> {
    let (returned, is_deleted) = match call.returned.strip_suffix("(deleted)") {
        Some(returned) => (returned, true),
        None => (call.returned.as_str(), false),
    };
    let (descriptor, path, number) = device(returned)?;
    // Flags come after the path, which may contain the same words.
    let is_path = |argument: &&String| argument.starts_with('"');
    let behind = call
        .arguments
        .iter()
        .skip_while(|argument| !is_path(argument))
        .skip(1);
    let has = |flag| behind.clone().any(|argument| argument.contains(flag));
    let access = match () {
        () if call.name == "creat" => Access::Write,
        () if has("O_PATH") => Access::PathOnly,
        () if has("O_RDWR") => Access::ReadWrite,
        () if has("O_WRONLY") => Access::Write,
        () if has("O_RDONLY") => Access::Read,
        () => Access::Unknown,
    };
    Some(Sighting {
        path,
        is_deleted,
        target: Target::Device(number),
        terminal: None,
        by: By::Opened,
        access,
        descriptor: Some(descriptor),
    })
}

/// Returns what a call mapped, from a call such as `mmap(NULL, 4096, PROT_READ,
/// MAP_SHARED, 3</dev/x<char 1:5>>, 0)`.
fn mapped(arguments: &[String]) -> Option<Sighting> {
    let [_, _, protection, flags, described, ..] = arguments else {
        return None;
    };
    let (_, path, number) = device(described)?;
    let writes = protection.contains("PROT_WRITE") && flags.contains("MAP_SHARED");
    let access = match (protection.contains("PROT_READ"), writes) {
        (_, false) => Access::Read,
        (true, true) => Access::ReadWrite,
        (false, true) => Access::Write,
    };
    Some(Sighting {
        path,
        is_deleted: false,
        target: Target::Device(number),
        terminal: None,
        by: By::Mapping,
        access,
        descriptor: None,
    })
}

/// Parses `3</dev/null<char 1:3>>`: a descriptor, its path and the device's number.
/// strace writes `<` in a path as `\74`.
fn device(text: &str) -> Option<(u32, String, Number)> {
    let (descriptor, rest) = text.strip_suffix(">>")?.split_once('<')?;
    let (path, number) = rest.split_once('<')?;
    let (class, number) = number.split_once(' ')?;
    let class = match class {
        "char" => Class::Character,
        "block" => Class::Block,
        _ => return None,
    };
    let (major, minor) = number.split_once(':')?;
    let number = Number {
        class,
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    };
    Some((
        descriptor.parse().ok()?,
        shown_path(&unescape(path)),
        number,
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watched(lines: &[&str]) -> Vec<Process> {
        let mut watch = OpenedDevices::default();
        lines.iter().for_each(|line| watch.feed(line));
        watch.finish(Vec::new(), &Tables::default()).0
    }

    fn one(line: &str) -> (String, Number, Access, Vec<u32>) {
        let processes = watched(&[line]);
        let held = &processes.first().expect(line).devices[0];
        let number = held.number.expect("a device");
        (
            held.path.clone(),
            number,
            held.holds[0].access,
            held.holds[0].descriptors.clone(),
        )
    }

    #[test]
    fn openings_are_read() {
        let null = Number::character(1, 3);
        assert_eq!(
            one(
                r#"7  openat(AT_FDCWD</tmp>, "/dev/null", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</dev/null<char 1:3>> <0.000015278>"#
            ),
            ("/dev/null".into(), null, Access::Write, vec![3])
        );
        assert_eq!(
            one(
                r#"7 openat2(AT_FDCWD</tmp>, "x", {flags=O_RDWR|O_CLOEXEC, resolve=0}, 24) = 12</srv/n\74ull\33) = 3<char 1:3>>(deleted) <0.1>"#
            ),
            (
                "/srv/n<ull\\x1b) = 3".into(),
                null,
                Access::ReadWrite,
                vec![12]
            )
        );
        assert_eq!(
            one(r#"7 open("O_RDWR", O_RDONLY) = 3</dev/vda<block 254:0>> <0.1>"#),
            (
                "/dev/vda".into(),
                Number::block(254, 0),
                Access::Read,
                vec![3]
            )
        );
        assert_eq!(
            one("7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE, 4</dev/zero<char 1:5>>, 0) = 0x7f12 <0.1>").2,
            Access::Read
        );
    }

    #[test]
    fn what_opens_no_device_tells_of_none() {
        assert!(watched(&[
            r#"7 openat(AT_FDCWD</tmp>, "/dev/kvm", O_RDWR) = -1 EACCES (Permission denied) <0.1>"#,
            r#"7 openat(AT_FDCWD</tmp>, "/etc/passwd", O_RDONLY) = 3</etc/passwd> <0.1>"#,
            "7 mmap(NULL, 1, PROT_READ, MAP_SHARED, 4</dev/full<char 1:7>>, 0) = -1 ENODEV (No such device) <0.1>",
            "7 +++ exited with 0 +++",
            "",
        ])
        .is_empty());
    }

    #[test]
    fn processes_have_names_and_threads_are_of_their_process() {
        let processes = watched(&[
            r#"7 execve("/usr/bin/sh", [...], 0x1 /* 35 vars */) = 0 <0.1>"#,
            "7 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>",
            r#"8 openat(AT_FDCWD</tmp>, "/dev/null", O_RDONLY <unfinished ...>"#,
            "7 <... clone resumed>, child_tidptr=0x7f) = 8 <0.1>",
            "8 <... openat resumed>)            = 3</dev/null<char 1:3>> <0.1>",
            r#"8 execve("/usr/bin/cat", [...], 0x1 /* 35 vars */) = 0 <0.1>"#,
            "8 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[9]}, 88) = 9 <0.1>",
            r#"9 openat(AT_FDCWD</tmp>, "/dev/full", O_RDONLY) = 4</dev/full<char 1:7>> <0.1>"#,
        ]);
        assert_eq!(processes.len(), 1);
        assert_eq!((processes[0].pid, processes[0].name.as_str()), (8, "cat"));
        assert_eq!(processes[0].devices.len(), 2);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(lines in proptest::collection::vec(r#"[0-9]{1,2} (openat\(|mmap\(|clone\(|execve\(|<\.\.\. openat resumed>)[ -~]{0,60}"#, 0..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let _ = watched(&lines);
        }
    }
}
