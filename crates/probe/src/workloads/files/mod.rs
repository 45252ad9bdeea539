//! The files workload: opens, reads, writes, makes, stats and removes files by
//! name, as programs do on any file system.
//!
//! Each iteration has its own files, under names that were never used before. If the file system
//! under test shows the files of another file system, files are made and checked there, "below". So
//! the file system under test knows only what this iteration has requested of it, whatever it
//! caches. It cannot vouch for its own work.

mod calls;
mod large;
mod memory;
mod operation;
mod set;
mod small;
mod tree;

use toll_wire::{CacheState, Failure, FilesRequest, Request, Sample, TrialData};

use self::large::Large;
use self::operation::Operation;
use self::set::{Place, Set};
use self::small::Small;
use crate::failure;
use crate::meter::{Meter, add_rates, put};
use crate::trial::Trial;
use crate::usage::Scope;

pub fn run(request: &Request, files: &FilesRequest) -> Result<TrialData, Failure> {
    check(files)?;
    let mut place = Place::create(files)?;
    let mut operation: Box<dyn Operation + '_> = if files.operation.is_of_tree() {
        Box::new(Small::new(files)?)
    } else {
        Box::new(Large::new(files)?)
    };
    let mut note = None;
    let trial = Trial::new(request, Scope::Thread);
    let mut data = trial.repeat(|meter| {
        let set = place.next()?;
        let sample = sample(operation.as_mut(), &set, files.cache, meter, &mut note);
        set.remove();
        sample
    })?;
    data.notes.extend(note);
    Ok(data)
}

fn check(files: &FilesRequest) -> Result<(), Failure> {
    if files.operation.is_random() && files.size_bytes < files.buffer_bytes {
        return Err(failure::instrument(format!(
            "cannot work on files: a file of {} bytes has no room for a buffer of {} at a random \
             offset; choose a larger size or a smaller buffer",
            files.size_bytes, files.buffer_bytes
        )));
    }
    Ok(())
}

fn sample(
    operation: &mut dyn Operation,
    set: &Set,
    cache: CacheState,
    meter: &mut Meter,
    note: &mut Option<String>,
) -> Result<Sample, Failure> {
    operation.lay(set)?;
    match cache {
        CacheState::Cold => *note = operation.cool(set)?,
        CacheState::Warm => operation.warm(set)?,
    }
    let (done, measured) = meter.measure(|| operation.run(set))?;
    let done = done?;
    operation.check(set)?;
    let duration_ns = measured.duration_ns;
    let mut sample = measured.into_sample();
    for (name, bytes) in [
        ("bytes_read", done.bytes_read),
        ("bytes_written", done.bytes_written),
    ] {
        if bytes > 0 {
            add_rates(&mut sample, name, bytes, duration_ns);
        }
    }
    let operations = done.operations as f64;
    put(&mut sample, "operations", operations);
    let each = duration_ns as f64 / operations;
    put(&mut sample, "duration_per_operation_ns", each);
    if done.calls > 0 {
        put(&mut sample, "calls", done.calls as f64);
    }
    Ok(sample)
}
