//! Calls summed up by name and by file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::assembly::{Assembly, Event};
use super::descriptor::{self, Descriptor, Kind};
use super::line::{Call, CallResult};
use super::sizes::Sizes;

/// Which way bytes went, seen from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Read,
    Written,
}

/// How a call takes part in advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The next bytes of a stream: several calls could be one.
    Stream,
    /// At a place that the call names, or a message with bounds of its own.
    Apart,
    /// From descriptor to descriptor without a buffer of the program's.
    Transfer,
}

/// What one system call did, summed up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallTally {
    /// How often it was called.
    pub calls: u64,
    pub errors: BTreeMap<String, u64>,
    /// Bytes that it moved; `None` if its result does not tell.
    pub bytes: Option<u64>,
    /// Time in it under trace, in nanoseconds.
    pub traced_ns: u64,
    /// What it moved, by what the cost depends on.
    pub moved: BTreeMap<(Direction, Kind), Sizes>,
    /// What it moved between descriptors, by the kind of where to.
    pub transferred: BTreeMap<Kind, Sizes>,
}

/// One direction of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Calls of a stream that moved all that was asked of them: fewer and
    /// larger ones could have moved the same.
    pub stream: Sizes,
    /// Calls that stand for themselves: at a place of their own, with a
    /// message each, or answered with less than was asked for (the end of a
    /// file, a pipe that held no more).
    pub apart: Sizes,
    /// Moved without a buffer of the program's, by `sendfile` and its like.
    pub transfer: Sizes,
    /// Time in these calls under trace, in nanoseconds.
    pub traced_ns: u64,
}

impl Flow {
    /// All calls of the flow.
    pub fn all(&self) -> Sizes {
        let mut all = self.stream.clone();
        all.add_all(&self.apart);
        all.add_all(&self.transfer);
        all
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileTally {
    pub read: Flow,
    pub written: Flow,
    /// Times the place in it was changed; a read behind that cannot be one
    /// with the read before it.
    pub seeks: u64,
    /// Numbers of the programs that used it, in [`Tally::programs`].
    pub programs: BTreeSet<usize>,
}

/// What all processes of one program did together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramTally {
    /// Its file's name, without directories.
    pub name: String,
    pub calls: u64,
    pub traced_ns: u64,
}

/// Number of a file in [`Tally::files`].
type FileIndex = usize;

/// Bytes that a thread moved by calls of a stream, read and written.
type ThreadFlows = BTreeMap<FileIndex, (u64, u64)>;

#[derive(Debug, Default)]
pub struct Tally {
    pub assembly: Assembly,
    /// By name of the call.
    pub calls: BTreeMap<String, CallTally>,
    names: HashMap<Descriptor, FileIndex>,
    /// Every file that bytes came from or went to, in the order of its first call.
    pub files: Vec<(Descriptor, FileTally)>,
    /// Programs that were executed, the command's own first.
    pub programs: Vec<ProgramTally>,
    program_of: HashMap<u32, usize>,
    flows: HashMap<u32, ThreadFlows>,
    /// Bytes that a thread read of one file and wrote to another through a buffer, as
    /// far as counts can tell.
    pub copies: BTreeMap<(FileIndex, FileIndex), u64>,
    /// Threads that made a call that was traced.
    pub threads: BTreeSet<u32>,
    /// Lines of strace.
    pub lines: u64,
}

impl Tally {
    /// Takes the next line of strace; gives what it completed.
    pub fn feed(&mut self, line: &str) -> Option<Event> {
        self.lines += 1;
        let event = self.assembly.feed(line);
        match &event {
            Some(Event::Call { thread, call, .. }) => self.count(*thread, call),
            Some(Event::Ended { thread, .. }) => self.end_thread(*thread),
            None => {}
        }
        event
    }

    /// Sees to what threads left that were still there at the end.
    pub fn finish(&mut self) {
        let threads: Vec<u32> = self.flows.keys().copied().collect();
        for thread in threads {
            self.end_thread(thread);
        }
    }

    fn count(&mut self, thread: u32, call: &Call) {
        self.threads.insert(thread);
        let shape = Shape::of(call);
        let duration_ns = call.duration_ns.unwrap_or(0);
        if !self.calls.contains_key(&call.name) {
            self.calls.insert(call.name.clone(), CallTally::default());
        }
        let tally = self.calls.get_mut(&call.name).expect("just made");
        tally.calls += 1;
        tally.traced_ns = tally.traced_ns.saturating_add(duration_ns);
        let program = self.charge(thread, call, duration_ns);
        let tally = self.calls.get_mut(&call.name).expect("just made");
        let value = match &call.result {
            CallResult::Error(name) => {
                *tally.errors.entry(name.clone()).or_default() += 1;
                return;
            }
            CallResult::Value(value) => u64::try_from(*value).unwrap_or(0),
            CallResult::Restarted | CallResult::Unknown => return,
        };
        if call.name == "lseek" || call.name == "_llseek" {
            self.seek(call);
            return;
        }
        let Some(shape) = shape else { return };
        let tally = self.calls.get_mut(&call.name).expect("made above");
        tally.bytes = Some(tally.bytes.unwrap_or(0).saturating_add(value));
        if shape.role == Role::Transfer {
            let to = shape
                .ends
                .iter()
                .find(|(way, _)| *way == Direction::Written);
            if let Some((_, to)) = to {
                tally.transferred.entry(to.kind).or_default().add(value);
            }
        } else if let [(way, end)] = shape.ends.as_slice() {
            tally.moved.entry((*way, end.kind)).or_default().add(value);
        }
        for (way, end) in shape.ends {
            let index = self.file(end);
            let file = &mut self.files[index].1;
            file.programs.insert(program);
            let flow = match way {
                Direction::Read => &mut file.read,
                Direction::Written => &mut file.written,
            };
            flow.traced_ns = flow.traced_ns.saturating_add(duration_ns);
            match shape.role {
                Role::Transfer => flow.transfer.add(value),
                Role::Stream => {
                    let is_whole = value > 0 && shape.asked.is_none_or(|asked| value >= asked);
                    let sizes = if is_whole {
                        &mut flow.stream
                    } else {
                        &mut flow.apart
                    };
                    sizes.add(value);
                    self.note_thread(thread, index, way, value);
                }
                Role::Apart => flow.apart.add(value),
            }
        }
    }

    /// Charges a call to the program of its process; a process that has executed
    /// none yet is still the command's. Gives the program's number.
    fn charge(&mut self, thread: u32, call: &Call, duration_ns: u64) -> usize {
        let is_done = call.result == CallResult::Value(0);
        if call.name == "execve" && is_done {
            let path = call
                .arguments
                .first()
                .map_or("", |path| path.trim_matches('"'));
            let name = path.rsplit('/').next().unwrap_or(path);
            let known = self
                .programs
                .iter()
                .position(|program| program.name == name);
            let index = known.unwrap_or_else(|| {
                self.programs.push(ProgramTally {
                    name: name.to_owned(),
                    ..ProgramTally::default()
                });
                self.programs.len() - 1
            });
            self.program_of.insert(thread, index);
        }
        if self.programs.is_empty() {
            self.programs.push(ProgramTally::default());
        }
        let index = self.program_of.get(&thread).copied().unwrap_or(0);
        let program = &mut self.programs[index];
        program.calls += 1;
        program.traced_ns = program.traced_ns.saturating_add(duration_ns);
        index
    }

    fn seek(&mut self, call: &Call) {
        let argument = |at: usize| call.arguments.get(at).map_or("", String::as_str);
        let only_asks =
            argument(1) == "0" && call.arguments.last().is_some_and(|w| w == "SEEK_CUR");
        if only_asks {
            return;
        }
        if let Some(descriptor) = descriptor::parse(argument(0)) {
            let index = self.file(descriptor);
            self.files[index].1.seeks += 1;
        }
    }

    fn file(&mut self, descriptor: Descriptor) -> FileIndex {
        if let Some(index) = self.names.get(&descriptor) {
            return *index;
        }
        let index = self.files.len();
        self.names.insert(descriptor.clone(), index);
        self.files.push((descriptor, FileTally::default()));
        index
    }

    fn note_thread(&mut self, thread: u32, index: FileIndex, way: Direction, bytes: u64) {
        let flows = self.flows.entry(thread).or_default();
        let (read, written) = flows.entry(index).or_default();
        let sum = match way {
            Direction::Read => read,
            Direction::Written => written,
        };
        *sum = sum.saturating_add(bytes);
    }

    /// Looks whether a thread that ended wrote somewhere exactly as many bytes
    /// as it had read of a file.
    fn end_thread(&mut self, thread: u32) {
        let Some(flows) = self.flows.remove(&thread) else {
            return;
        };
        // One file more, and a sum may agree by chance; so only the largest
        // of each direction is looked at.
        let largest = |pick: fn(&(u64, u64)) -> u64| {
            let best = flows.iter().max_by_key(|(_, flow)| pick(flow));
            best.map(|(index, flow)| (*index, pick(flow)))
        };
        let (Some((from, read)), Some((to, written))) = (largest(|f| f.0), largest(|f| f.1)) else {
            return;
        };
        if read > 0 && read == written && from != to {
            let bytes = self.copies.entry((from, to)).or_default();
            *bytes = bytes.saturating_add(read);
        }
    }
}

/// Where the bytes of a call come from and go to.
struct Shape {
    ends: Vec<(Direction, Descriptor)>,
    role: Role,
    /// Bytes asked for, where the arguments tell.
    asked: Option<u64>,
}

impl Shape {
    /// `None` for a call that moves no bytes, or whose result is no count of
    /// them.
    fn of(call: &Call) -> Option<Self> {
        use Direction::{Read, Written};
        use Role::{Apart, Stream, Transfer};
        // Directions with the places of their descriptors, and the place of
        // the count that is asked for.
        let (ends, role, asked): (&[(Direction, usize)], Role, Option<usize>) =
            match call.name.as_str() {
                "read" => (&[(Read, 0)], Stream, Some(2)),
                "write" => (&[(Written, 0)], Stream, Some(2)),
                "readv" => (&[(Read, 0)], Stream, None),
                "writev" => (&[(Written, 0)], Stream, None),
                "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" | "recv" => {
                    (&[(Read, 0)], Apart, None)
                }
                "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "send" => {
                    (&[(Written, 0)], Apart, None)
                }
                "vmsplice" => (&[(Written, 0)], Transfer, None),
                "sendfile" | "sendfile64" => (&[(Written, 0), (Read, 1)], Transfer, None),
                "splice" | "copy_file_range" => (&[(Read, 0), (Written, 2)], Transfer, None),
                "tee" => (&[(Read, 0), (Written, 1)], Transfer, None),
                _ => return None,
            };
        let argument = |at: usize| call.arguments.get(at);
        let ends = ends
            .iter()
            .map(|(way, at)| Some((*way, descriptor::parse(argument(*at)?)?)))
            .collect::<Option<_>>()?;
        let asked = asked.and_then(|at| argument(at)?.parse().ok());
        Some(Self { ends, role, asked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From real runs, `strace -f -y -s 0 --syscall-times=ns`.
    const SEVERAL: &str = r#"7647  sendmsg(3<socket:[949743]>, {msg_name=NULL, msg_namelen=0, msg_iov=[...], msg_iovlen=2, msg_controllen=0, msg_flags=0}, 0) = 5 <0.000020969>
7647  recvmsg(4<socket:[949744]>, {msg_name=0x7ffd9cd78070, msg_namelen=110 => 0, msg_iov=[...], msg_iovlen=1, msg_controllen=0, msg_flags=0}, 0) = 5 <0.000016585>
7647  sendto(3<socket:[949743]>, ""..., 3, 0, NULL, 0) = 3 <0.000012563>
7647  writev(1</tmp/stdout>, [...], 2) = 4 <0.000013150>
7647  copy_file_range(5</tmp/tr/in>, NULL, 6</tmp/tr/out>, NULL, 1000, 0) = 1000 <0.000041011>
7647  sendfile(6</tmp/tr/out>, 5</tmp/tr/in>, [0] => [5000], 5000) = 5000 <0.000019288>
7647  splice(5</tmp/tr/in>, NULL, 8<pipe:[949745]>, NULL, 100, 0) = 100 <0.000013198>
7647  readv(7<pipe:[949745]>, [...], 2) = 30 <0.000011485>
7647  pwritev2(6</tmp/tr/out>, [...], 2, 0, 0) = 3 <0.000015883>
7647  writev(6</tmp/tr/out>(deleted), [...], 1) = 1 <0.000014091>
7647  read(99, 0x7f00, 1) = -1 EBADF (Bad file descriptor) <0.000001000>
7647  lseek(5</tmp/tr/in>, 0, SEEK_CUR) = 0 <0.000001000>
7647  lseek(5</tmp/tr/in>, 10, SEEK_SET) = 10 <0.000001000>
7647  +++ exited with 0 +++
"#;

    fn tally(lines: &str) -> Tally {
        let mut tally = Tally::default();
        for line in lines.lines() {
            tally.feed(line);
        }
        tally.finish();
        tally
    }

    fn file<'a>(tally: &'a Tally, name: &str) -> &'a FileTally {
        let found = tally.files.iter().find(|(file, _)| file.name == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    }

    #[test]
    fn every_way_to_move_bytes_is_counted() {
        let tally = tally(SEVERAL);
        assert_eq!(tally.assembly.not_understood, 0);
        let bytes = |name: &str| tally.calls[name].bytes;
        for (name, count) in [
            ("sendmsg", 5),
            ("recvmsg", 5),
            ("sendto", 3),
            ("writev", 5),
            ("copy_file_range", 1000),
            ("sendfile", 5000),
            ("splice", 100),
            ("readv", 30),
            ("pwritev2", 3),
        ] {
            assert_eq!(bytes(name), Some(count), "{name}");
        }
        assert_eq!(bytes("lseek"), None);
        let read = &tally.calls["read"];
        assert_eq!((read.calls, read.bytes), (1, None));
        assert_eq!(read.errors["EBADF"], 1);
        assert_eq!(tally.calls["splice"].traced_ns, 13_198);
    }

    #[test]
    fn files_have_their_directions() {
        let tally = tally(SEVERAL);
        let input = file(&tally, "/tmp/tr/in");
        assert_eq!(input.read.transfer.bytes(), 6100);
        assert_eq!(input.seeks, 1, "asking for the place is no seek");
        let output = file(&tally, "/tmp/tr/out");
        assert_eq!(output.written.transfer.bytes(), 6000);
        assert_eq!(output.written.apart.bytes(), 3);
        assert_eq!(output.written.stream.bytes(), 1);
        assert_eq!(output.written.all().calls(), 4);
    }

    #[test]
    fn a_call_that_got_less_than_it_asked_for_stands_for_itself() {
        let tally = tally(
            "1 read(3</a>, \"\"..., 10) = 10 <0.000000100>\n\
             1 read(3</a>, \"\"..., 10) = 4 <0.000000100>\n\
             1 read(3</a>, \"\", 10) = 0 <0.000000100>\n",
        );
        let read = &file(&tally, "/a").read;
        assert_eq!((read.stream.calls(), read.stream.bytes()), (1, 10));
        assert_eq!((read.apart.calls(), read.apart.bytes()), (2, 4));
        assert_eq!(read.traced_ns, 300);
    }

    #[test]
    fn calls_are_charged_to_the_program_that_a_process_has_executed() {
        let tally = tally(
            "1 execve(\"/bin/sh\", [\"sh\"], 0x7 /* 3 vars */) = 0 <0.000000100>\n\
             2 read(3</a>, \"\"..., 4) = 4 <0.000000010>\n\
             2 execve(\"/nowhere/tail\", [\"tail\"], 0x7) = -1 ENOENT (No such file) <0.000000001>\n\
             2 execve(\"/usr/bin/tail\", [\"tail\"], 0x7) = 0 <0.000000020>\n\
             2 read(3</b>, \"\"..., 4) = 4 <0.000000030>\n\
             1 read(3</b>, \"\"..., 4) = 4 <0.000000040>\n",
        );
        let programs = tally.programs.iter();
        let told: Vec<_> = programs
            .map(|one| (&one.name[..], one.calls, one.traced_ns))
            .collect();
        assert_eq!(told, [("sh", 4, 151), ("tail", 2, 50)]);
        let users = |name| {
            file(&tally, name)
                .programs
                .iter()
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!((users("/a"), users("/b")), (vec![0], vec![0, 1]));
    }

    #[test]
    fn a_copy_is_seen_by_its_sums() {
        let lines = "1 read(3</a>, \"\"..., 9) = 9 <0.1>\n1 write(4</b>, \"\"..., 9) = 9 <0.1>\n";
        let same = tally(lines);
        assert_eq!(same.copies.values().next(), Some(&9));
        let other = tally(&lines.replace("9) = 9", "9) = 8").replacen("= 8", "= 9", 1));
        assert!(other.copies.is_empty());
        // Different threads are no copy.
        let two = tally(&lines.replace("1 write", "2 write"));
        assert!(two.copies.is_empty());
        assert_eq!(two.threads.len(), 2);
    }

    #[test]
    fn what_never_returned_moved_nothing() {
        let tally = tally(
            "1 read(0<pipe:[1]>,  <unfinished ...>\n1 +++ killed by SIGKILL +++\n\
             2 read(0<pipe:[1]>, 0x1, 5) = ? ERESTARTSYS (To be restarted) <0.1>\n",
        );
        assert_eq!(tally.calls["read"].calls, 1);
        assert!(tally.files.is_empty());
        assert_eq!(tally.assembly.not_understood, 0);
    }
}
