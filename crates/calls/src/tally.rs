//! Sums up calls by name and by file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::descriptor::{Descriptor, Kind};
use super::shape::{Direction, Role, Shape};
use super::sizes::Sizes;

/// Sums over the calls of one system call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallTally {
    /// How often the system call was made.
    pub calls: u64,
    pub errors: BTreeMap<String, u64>,
    /// Bytes that the calls moved; `None` if their results do not show it.
    pub bytes: Option<u64>,
    /// Time in the calls under trace, in nanoseconds.
    pub traced_ns: u64,
    /// Sizes of the calls by direction and kind of file, on which the cost depends.
    pub moved: BTreeMap<(Direction, Kind), Sizes>,
    /// Sizes of calls between file descriptors, by kind of destination.
    pub transferred: BTreeMap<Kind, Sizes>,
}

/// One direction of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Calls of a stream that moved everything that they requested. Fewer, larger calls could have
    /// moved the same bytes.
    pub stream: Sizes,
    /// Calls that cannot be merged. They have a position of their own or one message each, or moved
    /// less than requested (the end of a file, a pipe that held no more).
    pub apart: Sizes,
    /// Calls that moved bytes without a buffer in the program, such as `sendfile`.
    pub transfer: Sizes,
    /// Time in the flow's calls under trace, in nanoseconds.
    pub traced_ns: u64,
}

impl Flow {
    /// Returns all calls of the flow.
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
    /// How often the file's position was changed. A read after a change cannot be merged with the
    /// read before it.
    pub seeks: u64,
    /// The programs that used the file, as indexes in [`Tally::programs`].
    pub programs: BTreeSet<usize>,
}

/// What all processes of one program did together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramTally {
    /// Name of the program's file, without directories.
    pub name: String,
    pub calls: u64,
    pub traced_ns: u64,
}

/// Index of a file in [`Tally::files`].
pub type FileIndex = usize;

/// Bytes that a thread read from and wrote to each file by calls of a stream.
type ThreadFlows = BTreeMap<FileIndex, (u64, u64)>;

/// Calls of one thread with the same outcome on the same files.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSum<'a> {
    pub thread: u32,
    /// Index of the calls' program in [`Tally::programs`].
    pub program: usize,
    pub name: &'a str,
    pub calls: u64,
    /// Time in the calls under trace, in nanoseconds.
    pub traced_ns: u64,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The error's name, such as `ENOENT`.
    Error(String),
    /// The calls moved bytes; [`Shape::for_call`] says how.
    Moved {
        /// Files in the order of the shape's ends.
        files: Vec<FileIndex>,
        sizes: Sizes,
        /// Whether each call moved everything that it requested.
        is_whole: bool,
    },
    Sought(FileIndex),
    /// Only the fact that the call was made is known.
    Other,
}

#[derive(Debug, Default)]
pub struct Tally {
    /// Sums by name of the call.
    pub calls: BTreeMap<String, CallTally>,
    names: HashMap<Descriptor, FileIndex>,
    /// Every file that bytes came from or went to, in the order of its first call.
    pub files: Vec<(Descriptor, FileTally)>,
    /// Programs that were executed, the command's own first.
    pub programs: Vec<ProgramTally>,
    flows: HashMap<u32, ThreadFlows>,
    /// Bytes that a thread read from one file and wrote to another through a buffer, as far as
    /// counts show that.
    pub copies: BTreeMap<(FileIndex, FileIndex), u64>,
    /// Threads that made a traced call.
    pub threads: BTreeSet<u32>,
}

impl Tally {
    pub fn add(&mut self, sum: &CallSum) {
        self.threads.insert(sum.thread);
        let program = &mut self.programs[sum.program];
        program.calls += sum.calls;
        program.traced_ns = program.traced_ns.saturating_add(sum.traced_ns);
        if !self.calls.contains_key(sum.name) {
            self.calls.insert(sum.name.to_owned(), CallTally::default());
        }
        let call = self.calls.get_mut(sum.name).expect("just made");
        call.calls += sum.calls;
        call.traced_ns = call.traced_ns.saturating_add(sum.traced_ns);
        match &sum.outcome {
            Outcome::Error(name) => *call.errors.entry(name.clone()).or_default() += sum.calls,
            Outcome::Sought(file) => self.files[*file].1.seeks += sum.calls,
            Outcome::Moved {
                files,
                sizes,
                is_whole,
            } => {
                let shape = Shape::for_call(sum.name).expect("only such calls move bytes");
                self.add_to_call(sum.name, shape, files, sizes);
                self.add_to_files(sum, shape, files, sizes, *is_whole);
            }
            Outcome::Other => {}
        }
    }

    fn add_to_call(&mut self, name: &str, shape: Shape, files: &[FileIndex], sizes: &Sizes) {
        let kind_of = |way| {
            let at = shape.ends.iter().position(|(own, _)| *own == way)?;
            Some(self.files[*files.get(at)?].0.kind)
        };
        let to = kind_of(Direction::Written);
        let from = kind_of(Direction::Read);
        let call = self.calls.get_mut(name).expect("made before");
        call.bytes = Some(call.bytes.unwrap_or(0).saturating_add(sizes.bytes()));
        let buckets = match (shape.role, from, to) {
            (Role::Transfer, _, Some(to)) => call.transferred.entry(to).or_default(),
            (_, Some(from), _) => call.moved.entry((Direction::Read, from)).or_default(),
            (_, _, Some(to)) => call.moved.entry((Direction::Written, to)).or_default(),
            (_, None, None) => return,
        };
        buckets.add_all(sizes);
    }

    fn add_to_files(
        &mut self,
        sum: &CallSum,
        shape: Shape,
        files: &[FileIndex],
        sizes: &Sizes,
        is_whole: bool,
    ) {
        for ((way, _), index) in shape.ends.iter().zip(files) {
            let file = &mut self.files[*index].1;
            file.programs.insert(sum.program);
            let flow = match way {
                Direction::Read => &mut file.read,
                Direction::Written => &mut file.written,
            };
            flow.traced_ns = flow.traced_ns.saturating_add(sum.traced_ns);
            match shape.role {
                Role::Transfer => flow.transfer.add_all(sizes),
                Role::Stream if is_whole => flow.stream.add_all(sizes),
                Role::Stream | Role::Apart | Role::Seek => flow.apart.add_all(sizes),
            }
            if shape.role == Role::Stream {
                self.note_thread(sum.thread, *index, *way, sizes.bytes());
            }
        }
    }

    /// Returns the index of a program by the name of its file; programs of the same name
    /// count as one.
    pub fn program(&mut self, name: &str) -> usize {
        let known = self
            .programs
            .iter()
            .position(|program| program.name == name);
        known.unwrap_or_else(|| {
            self.programs.push(ProgramTally {
                name: name.to_owned(),
                ..ProgramTally::default()
            });
            self.programs.len() - 1
        })
    }

    pub fn file(&mut self, descriptor: Descriptor) -> FileIndex {
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

    /// Ends the threads that still existed at the end.
    pub fn finish(&mut self) {
        let threads: Vec<u32> = self.flows.keys().copied().collect();
        for thread in threads {
            self.end_thread(thread);
        }
    }

    /// Ends a thread. Notes a copy if the thread wrote exactly as many bytes to one file as it had
    /// read from another.
    pub fn end_thread(&mut self, thread: u32) {
        let Some(flows) = self.flows.remove(&thread) else {
            return;
        };
        // With every further file a sum is more likely to agree by chance. So only the largest file
        // of each direction is compared.
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
