//! Turns the sums that the BPF programs keep in the kernel into a tally of system calls.

use std::collections::{HashMap, HashSet};

use toll_calls::TRACED_CALLS;
use toll_calls::descriptor::{Descriptor, Kind};
use toll_calls::shape::{Role, Shape};
use toll_calls::sizes::Sizes;
use toll_calls::tally::{CallSum, FileIndex, Outcome, Tally};

use crate::layout::{
    ERROR_MASK, EVENT_END, EVENT_FILE, EVENT_PROGRAM, EventHead, OUTCOME_ERROR, OUTCOME_WHOLE,
    PROGRAM_NOT_TRACED, Sum, SumKey,
};
use crate::names;

#[derive(Debug, Default)]
pub struct Sums {
    pub tally: Tally,
    /// Number of all counted calls, not only of those in the tally.
    pub calls: u64,
    /// Number of calls on files whose names did not arrive.
    pub calls_without_file: u64,
    counts_all: bool,
    files: HashMap<u32, FileIndex>,
    programs: HashMap<u32, usize>,
    /// Threads that have ended and whose sums are still in the kernel.
    pub ended: HashSet<u32>,
    /// How many calls of each system call were timed, and their time in nanoseconds. The key is the
    /// system call's number.
    timed: HashMap<u32, (u64, u64)>,
}

impl Sums {
    pub fn new(counts_all: bool) -> Self {
        Self {
            counts_all,
            ..Self::default()
        }
    }

    pub fn name_program(&mut self, number: u32, name: &str) {
        let program = self.tally.program(name);
        self.programs.insert(number, program);
    }

    pub fn take_event(&mut self, event: &[u8]) {
        let Some((head, text)) = EventHead::read(event) else {
            return;
        };
        match head.kind {
            EVENT_FILE => {
                let file = self.tally.file(names::file(head, text));
                self.files.insert(head.number, file);
            }
            EVENT_PROGRAM => self.name_program(head.number, &names::program(text)),
            EVENT_END => {
                self.ended.insert(head.number);
            }
            _ => {}
        }
    }

    /// Adds sums to the tally, which holds none of them yet.
    pub fn add(&mut self, sums: &[(SumKey, Sum)]) {
        let is_traced = |(key, _): &&(SumKey, Sum)| key.program != PROGRAM_NOT_TRACED;
        for (key, sum) in sums.iter().filter(is_traced) {
            self.calls += sum.calls;
            let (calls, ns) = self.timed.entry(key.call).or_default();
            *calls += sum.timed_calls;
            *ns += sum.timed_ns;
        }
        for (key, sum) in sums.iter().filter(is_traced) {
            let unknown = format!("call {}", key.call);
            let name = names::call(key.call).unwrap_or(&unknown);
            if self.counts_all || TRACED_CALLS.contains(&name) {
                self.add_one(name, key, sum);
            }
        }
    }

    fn add_one(&mut self, name: &str, key: &SumKey, sum: &Sum) {
        if self.tally.programs.is_empty() {
            self.tally.program("");
        }
        let outcome = self.outcome(name, key, sum);
        self.tally.add(&CallSum {
            thread: key.thread,
            program: self.programs.get(&key.program).copied().unwrap_or(0),
            name,
            calls: sum.calls,
            traced_ns: self.traced_ns(key.call, sum),
            outcome,
        });
    }

    /// Estimates the time in the calls, in nanoseconds. Extrapolates the time on the CPU from the
    /// timed calls of this sum or, if there are none, from the timed calls of all files.
    fn traced_ns(&self, call: u32, sum: &Sum) -> u64 {
        let all = self.timed.get(&call).copied().unwrap_or_default();
        let (timed_calls, timed_ns) = match sum.timed_calls {
            0 => all,
            calls => (calls, sum.timed_ns),
        };
        let on_cpu_ns =
            u128::from(timed_ns) * u128::from(sum.calls) / u128::from(timed_calls.max(1));
        let on_cpu_ns = u64::try_from(on_cpu_ns).unwrap_or(u64::MAX);
        on_cpu_ns.saturating_add(sum.off_cpu_ns)
    }

    fn outcome(&mut self, name: &str, key: &SumKey, sum: &Sum) -> Outcome {
        if key.outcome & OUTCOME_ERROR != 0 {
            let error = names::error(key.outcome & ERROR_MASK);
            return error.map_or(Outcome::Other, Outcome::Error);
        }
        let Some(shape) = Shape::for_call(name) else {
            return Outcome::Other;
        };
        if shape.role == Role::Seek {
            let file = self.files.get(&key.files[0]);
            return file.map_or(Outcome::Other, |file| Outcome::Sought(*file));
        }
        let numbers = key.files.iter().take(shape.ends.len());
        let files: Vec<FileIndex> = numbers.map(|file| self.file(*file)).collect();
        if key
            .files
            .iter()
            .take(shape.ends.len())
            .any(|file| !self.files.contains_key(file))
        {
            self.calls_without_file += sum.calls;
        }
        Outcome::Moved {
            files,
            sizes: Sizes::of_bucket(sum.calls, sum.bytes, sum.least_bytes, sum.most_bytes),
            is_whole: key.outcome & OUTCOME_WHOLE != 0,
        }
    }

    fn file(&mut self, number: u32) -> FileIndex {
        self.files.get(&number).copied().unwrap_or_else(|| {
            self.tally.file(Descriptor {
                kind: Kind::Other,
                name: "files whose names are not known".into(),
            })
        })
    }
}
