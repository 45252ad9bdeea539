//! Devices that a command opens, from the lines of strace.
//!
//! What is open can be looked at in `/proc`, but only now and then, and most
//! programs hold a device for less than that. Each call that opens one is seen
//! by tracing.

use std::collections::BTreeMap;

use super::kind::{Class, Number, Tables};
use super::{Access, By, Process, Sighting, Sightings, Target, held, shown_path};

/// The calls that bring a descriptor of a device, memory of it, or a process.
pub const TRACED_CALLS: &[&str] = &[
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

/// What a command and what it starts have opened.
#[derive(Debug, Default)]
pub struct Watch {
    threads: BTreeMap<u32, Thread>,
    first: Option<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    name: String,
    /// The thread that started it, if they are of one process.
    creator: Option<u32>,
    sightings: Sightings,
    /// The begin of a call whose end is still to come.
    begun: Option<String>,
}

impl Watch {
    /// Takes one line of `strace -f --decode-fds=path,dev`. What has not the
    /// expected form tells of no device.
    pub fn feed(&mut self, line: &str) {
        let Some((pid, text)) = line.split_once(' ') else {
            return;
        };
        let Ok(pid) = pid.parse() else { return };
        self.first.get_or_insert(pid);
        let text = text.trim_start();
        let thread = self.threads.entry(pid).or_default();
        if let Some(begun) = text.strip_suffix("<unfinished ...>") {
            thread.begun = Some(begun.to_owned());
            return;
        }
        let whole = match text.strip_prefix("<... ") {
            Some(resumed) => {
                let begun = thread.begun.take().unwrap_or_default();
                let rest = resumed.split_once(" resumed>").map_or("", |(_, rest)| rest);
                begun + rest
            }
            None => text.to_owned(),
        };
        self.call(pid, &whole);
    }

    fn call(&mut self, pid: u32, text: &str) {
        let Some((name, _)) = text.split_once('(') else {
            return;
        };
        // The time of the call stands last.
        let text = text.rsplit_once(" <").map_or(text, |(text, _)| text);
        match name {
            "execve" if text.ends_with("= 0") => {
                self.threads.entry(pid).or_default().name = program(text);
            }
            "clone" | "clone3" | "fork" | "vfork" => self.child(pid, text),
            "mmap" => {
                if let Some(sighting) = mapped(text) {
                    self.saw(pid, sighting);
                }
            }
            _ => {
                if let Some(sighting) = opened(name, text) {
                    self.saw(pid, sighting);
                }
            }
        }
    }

    fn saw(&mut self, pid: u32, sighting: Sighting) {
        let thread = self.threads.entry(pid).or_default();
        *thread.sightings.entry(sighting).or_default() += 1;
    }

    fn child(&mut self, pid: u32, text: &str) {
        let result = text.rsplit_once("= ").map(|(_, result)| result.trim());
        let Some(child) = result.and_then(|result| result.parse::<u32>().ok()) else {
            return;
        };
        let name = self.threads.entry(pid).or_default().name.clone();
        let thread = self.threads.entry(child).or_default();
        // It may have run, and become something else, before its parent goes on.
        if thread.name.is_empty() {
            thread.name = name;
        }
        if text.contains("CLONE_THREAD") && child != pid {
            thread.creator = Some(pid);
        }
    }

    /// The processes that hold something, and how many there were.
    #[must_use]
    pub fn finish(mut self, inherited: Vec<Sighting>, tables: &Tables) -> (Vec<Process>, u64) {
        if let Some(first) = self.first {
            inherited.into_iter().for_each(|one| self.saw(first, one));
        }
        let mut processes: BTreeMap<u32, (String, Sightings)> = BTreeMap::new();
        for (pid, thread) in &self.threads {
            let leader = self.leader(*pid);
            let (name, sightings) = processes.entry(leader).or_default();
            if *pid == leader {
                name.clone_from(&thread.name);
            }
            for (sighting, count) in &thread.sightings {
                *sightings.entry(sighting.clone()).or_default() += count;
            }
        }
        let count = processes.len() as u64;
        let found = processes
            .into_iter()
            .filter(|(_, (_, sightings))| !sightings.is_empty())
            .map(|(pid, (name, sightings))| Process {
                pid,
                name,
                has_other_mounts: false,
                devices: held(&sightings, tables),
            });
        (found.collect(), count)
    }

    fn leader(&self, pid: u32) -> u32 {
        let mut leader = pid;
        // Numbers may come again, so that a chain could be a circle.
        for _ in 0..self.threads.len() {
            match self.threads.get(&leader).and_then(|thread| thread.creator) {
                Some(creator) => leader = creator,
                None => break,
            }
        }
        leader
    }
}

/// The name of the program in `execve("/usr/bin/cat", …`.
fn program(text: &str) -> String {
    let path = text.split('"').nth(1).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    shown_path(&unescape(name))
}

/// What a call opened: `… = 3</dev/null<char 1:3>>`.
fn opened(call: &str, text: &str) -> Option<Sighting> {
    let (text, is_deleted) = match text.strip_suffix("(deleted)") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let described = text.strip_suffix(">>")?;
    let (before, descriptor, path, number) = device(described)?;
    Some(Sighting {
        path,
        is_deleted,
        target: Target::Device(number),
        terminal: None,
        by: By::Opened,
        access: access(call, before),
        descriptor: Some(descriptor),
    })
}

/// What a call mapped: `mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</dev/x<char
/// 1:5>>, 0) = 0x7f…`.
fn mapped(text: &str) -> Option<Sighting> {
    let (arguments, result) = text.rsplit_once(") = ")?;
    if result.starts_with('-') || result.starts_with('?') {
        return None;
    }
    let (described, _) = arguments.rsplit_once(">>")?;
    let (before, _, path, number) = device(described)?;
    let has = |flag: &str| before.contains(flag);
    let access = match (has("PROT_READ"), has("PROT_WRITE") && has("MAP_SHARED")) {
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

/// What stands before a descriptor, the descriptor, its path and number, from
/// text that ends as `3</dev/null<char 1:3`. strace writes `<` in a path as
/// `\74`.
fn device(text: &str) -> Option<(&str, u32, String, Number)> {
    let (text, number) = text.rsplit_once('<')?;
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
    let (before, path) = text.rsplit_once('<')?;
    let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (before, descriptor) = before.split_at(before.len() - digits);
    let path = shown_path(&unescape(path));
    Some((before, descriptor.parse().ok()?, path, number))
}

/// From the flags of an open, which stand behind its path.
fn access(call: &str, before: &str) -> Access {
    if call == "creat" {
        return Access::Write;
    }
    let flags = [
        ("O_PATH", Access::PathOnly),
        ("O_RDWR", Access::ReadWrite),
        ("O_WRONLY", Access::Write),
        ("O_RDONLY", Access::Read),
    ];
    // A path may have such words in it, too, but not behind its last quote.
    let flags_text = before.rsplit_once('"').map_or("", |(_, behind)| behind);
    let found = flags.iter().find(|(flag, _)| flags_text.contains(flag));
    found.map_or(Access::Unknown, |(_, access)| *access)
}

/// Undoes the escapes of C strings.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes().peekable();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
        let Some(escape) = bytes.next() else {
            plain.push(b'\\');
            break;
        };
        if !is_octal(&escape) {
            plain.push(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'v' => 0x0b,
                b'f' => 0x0c,
                other => other,
            });
            continue;
        }
        let mut value = u32::from(escape - b'0');
        for _ in 0..2 {
            if let Some(digit) = bytes.next_if(is_octal) {
                value = value * 8 + u32::from(digit - b'0');
            }
        }
        plain.push(u8::try_from(value).unwrap_or(b'?'));
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watched(lines: &[&str]) -> Vec<Process> {
        let mut watch = Watch::default();
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
