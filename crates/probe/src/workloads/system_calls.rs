//! A program of system calls, which is part of the request.
//!
//! The work around each call is the same for all kernels: its arguments are assembled, and its
//! result is compared with the expected one.

use std::fs::{create_dir, remove_dir_all};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use toll_wire::{
    Argument, Call, Failure, Item, Leaves, Program, Request, Sample, Statement, SystemCallsRequest,
    TrialData, Waits,
};

use crate::failure::{self, OrFail};
use crate::meter::{Meter, put};
use crate::trial::Trial;
use crate::usage::Scope;
use crate::workloads::boot::slab_bytes;

pub fn run(request: &Request, calls: &SystemCallsRequest) -> Result<TrialData, Failure> {
    let _directory = Directory::enter(calls)?;
    let mut machine = Machine::new(&calls.program);
    // The first round brings in code and pages, so that later rounds find them
    // in memory.
    machine.all(&calls.program.before)?;
    machine.all(&calls.program.timed)?;
    machine.all(&calls.program.after)?;
    let trial = Trial::new(request, Scope::Process);
    trial.repeat(|meter| sample(&mut machine, calls, meter))
}

fn sample(
    machine: &mut Machine,
    calls: &SystemCallsRequest,
    meter: &mut Meter,
) -> Result<Sample, Failure> {
    let program = &calls.program;
    machine.all(&program.before)?;
    let slab_before = slab_bytes();
    let (ran, measured) = meter.measure(|| {
        let mut rounds = 0..calls.times;
        rounds.try_for_each(|_| machine.all(&program.timed))
    })?;
    ran?;
    let slab = slab_bytes().zip(slab_before);
    machine.all(&program.after)?;
    let mut sample = measured.into_sample();
    if calls.waits == Waits::Device {
        sample.metrics.remove("duration_ns");
    }
    let each = program.timed.len() as u64;
    put(&mut sample, "calls", (each * calls.times) as f64);
    if let (Leaves::Object, Some((after, before))) = (calls.leaves, slab) {
        let grown = after.saturating_sub(before) as f64;
        put(
            &mut sample,
            "slab_per_object_bytes",
            grown / calls.times as f64,
        );
    }
    Ok(sample)
}

/// A new directory in which the program runs; it is removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn enter(calls: &SystemCallsRequest) -> Result<Self, Failure> {
        let name = format!(".toll-probe-{}.calls", std::process::id());
        let path = calls.directory.join(name);
        create_dir(&path).failed_with("make", &path)?;
        let directory = Self(path);
        std::env::set_current_dir(&directory.0).failed_with("enter", &directory.0)?;
        Ok(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What a program mounted there or made immutable stays until the guest
        // ends.
        let _ = remove_dir_all(&self.0);
    }
}

/// Results and buffers of a program. The buffers are atomics, because the kernel reads and writes
/// them.
struct Machine {
    values: Vec<u64>,
    buffers: Vec<Vec<AtomicU64>>,
}

impl Machine {
    fn new(program: &Program) -> Self {
        let words = |bytes: &Vec<u8>| {
            let chunks = bytes.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                AtomicU64::new(u64::from_ne_bytes(word))
            });
            // An empty record has an address, too.
            chunks.chain([AtomicU64::new(0)]).collect()
        };
        Self {
            values: vec![0; program.values],
            buffers: program.buffers.iter().map(words).collect(),
        }
    }

    fn all(&mut self, statements: &[Statement]) -> Result<(), Failure> {
        statements.iter().try_for_each(|one| self.one(one))
    }

    fn one(&mut self, statement: &Statement) -> Result<(), Failure> {
        let mut arguments = [0; 6];
        for (place, argument) in statement.arguments.iter().enumerate() {
            arguments[place] = self.argument(argument);
        }
        let (name, number) = match &statement.call {
            Call::System { name, number } => (name, *number),
            Call::Assert => return assert_equal(statement, arguments),
        };
        let result = call(number, arguments);
        if let (Ok(0), Some(child)) = (&result, &statement.child) {
            self.child(child);
        }
        match (result, statement.error) {
            (Ok(result), None) => {
                if let Some(value) = statement.result {
                    self.values[value] = result;
                }
                Ok(())
            }
            (Err(error), Some(expected)) if error.raw_os_error() == Some(expected) => Ok(()),
            (Err(error), _) => Err(refused(statement.line, name, &error)),
            (Ok(result), Some(_)) => Err(failure::failed(format!(
                "cannot call {name} in line {} of the program: it returned {result} instead of \
                 the expected error; correct the line",
                statement.line
            ))),
        }
    }

    /// Runs a child's statements and exits, with status 0 if all succeeded and otherwise 1.
    fn child(&mut self, statements: &[Statement]) -> ! {
        let done = self.all(statements);
        // SAFETY: _exit takes a number and has no preconditions.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    }

    fn argument(&self, argument: &Argument) -> u64 {
        match argument {
            Argument::Number(number) => *number,
            Argument::Value(value) => self.values[*value],
            Argument::Buffer(buffer) => self.address(*buffer),
            Argument::Word {
                buffer,
                place,
                bytes,
            } => self.word(*buffer, place * bytes, *bytes),
            Argument::Record { buffer, items } => {
                for item in items {
                    self.fill(*buffer, item);
                }
                self.address(*buffer)
            }
        }
    }

    fn address(&self, buffer: usize) -> u64 {
        self.buffers[buffer].as_ptr() as u64
    }

    /// Reads a word at an offset that is a multiple of its size. A word of 4
    /// bytes is signed.
    fn word(&self, buffer: usize, offset: usize, bytes: usize) -> u64 {
        let word = self.buffers[buffer][offset / 8].load(Ordering::Relaxed);
        match bytes {
            8 => word,
            _ => i64::from((word >> (offset % 8 * 8)) as i32).cast_unsigned(),
        }
    }

    fn fill(&self, buffer: usize, item: &Item) {
        let content = self.argument(&item.content).to_ne_bytes();
        for (place, byte) in content[..item.bytes].iter().enumerate() {
            let offset = item.offset + place;
            let (word, shift) = (&self.buffers[buffer][offset / 8], offset % 8 * 8);
            let others = word.load(Ordering::Relaxed) & !(0xff << shift);
            word.store(others | u64::from(*byte) << shift, Ordering::Relaxed);
        }
    }
}

fn assert_equal(statement: &Statement, arguments: [u64; 6]) -> Result<(), Failure> {
    let [found, expected, ..] = arguments;
    if found == expected {
        Ok(())
    } else {
        Err(failure::failed(format!(
            "cannot trust the program: line {} found {found} instead of {expected}; see the kernel \
             log",
            statement.line
        )))
    }
}

fn refused(line: usize, name: &str, error: &io::Error) -> Failure {
    let action = format!("call {name} in line {line} of the program");
    match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            failure::unsupported_by(&action, error, "choose a kernel that has it")
        }
        _ => failure::failed_to(&action, error),
    }
}

fn call(number: i64, arguments: [u64; 6]) -> io::Result<u64> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: buffers live as long as the program that names them, and the kernel writes only as
    // far as a line says. Whatever else a program does to this process ends the trial: there is
    // nothing else in it.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result.cast_unsigned()),
    }
}
