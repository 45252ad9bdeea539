//! The system's `cat`, measured from outside.
#![expect(
    clippy::disallowed_methods,
    reason = "programs are what this workload measures"
)]

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use toll_wire::{CopyRequest, Failure, FailureKind, Request, Sample, Source, TrialData};

use super::ends::{check, notes_of_ends, open_sink};
use super::reader::Purpose;
use super::sink::OpenSink;
use super::source::OpenSource;
use crate::counters::{Counters, Inherit};
use crate::idle::IdleTime;
use crate::meter::{add_rates, put};
use crate::verify::check_length;
use crate::workloads::command::child::{self, Ended};
use crate::{clock, failure, trial};

/// Runs of `cat` on an empty input, whose median is its start-up time.
const STARTUP_RUNS: usize = 5;

pub fn run(
    request: &Request,
    copy: &CopyRequest,
    source: &OpenSource,
) -> Result<TrialData, Failure> {
    check_source(copy, source)?;
    let missing = Counters::open(&request.counters, Inherit::OnExec)
        .missing()
        .clone();
    let startup_ns = startup_ns()?;
    let mut warmups = request.warmup_iterations;
    if source.verifies_first(copy) {
        verify(copy, source)?;
        warmups = warmups.saturating_sub(1);
    }
    let mut data = trial::repeat(warmups, request.iterations, || {
        sample(copy, source, startup_ns, &request.counters)
    })?;
    if !source.verifies_first(copy) {
        verify(copy, source)?;
    }
    data.counters_missing = missing;
    data.notes = notes_of_ends(copy);
    data.notes.extend(source.note());
    data.notes.push(format!(
        "start-up of {startup_ns} ns on an empty input is deducted"
    ));
    Ok(data)
}

fn check_source(copy: &CopyRequest, source: &OpenSource) -> Result<(), Failure> {
    let length = match copy.source {
        Source::Zero => {
            return Err(failure::unsupported(
                "cannot copy /dev/zero by cat: it would never end; choose a file",
            ));
        }
        Source::File { .. } => source
            .file()
            .metadata()
            .map_or(0, |metadata| metadata.len()),
    };
    if length == copy.size_bytes {
        return Ok(());
    }
    Err(failure::unsupported(format!(
        "cannot copy {} bytes of {} by cat: it copies all {length}; choose a file of that size",
        copy.size_bytes,
        source.name()
    )))
}

/// One run of `cat`, from before its start to the arrival of the last byte.
struct CatRun {
    duration_ns: u64,
    ended: Ended,
}

fn run_cat(argument: &std::path::Path, sink: &mut OpenSink) -> Result<CatRun, Failure> {
    let stdout = sink
        .writer()
        .try_clone_to_owned()
        .map_err(|error| cannot_run(&error))?;
    let null = File::open("/dev/null").map_err(|error| cannot_run(&error))?;
    let mut command = Command::new("cat");
    command
        .arg("--")
        .arg(argument)
        .stdin(Stdio::from(null))
        .stdout(stdout);
    let idle_before = IdleTime::now()?;
    let start_ns = clock::now_ns();
    let child = command.spawn().map_err(|error| cannot_run(&error))?;
    // The command holds the sink's writing end, too, and a reader waits until all writing ends are
    // closed.
    drop(command);
    let ended = child::wait(&child).map_err(|error| cannot_run(&error))?;
    let waited_ns = clock::now_ns();
    let passed_ns = sink.finish().unwrap_or(waited_ns) - start_ns;
    let duration_ns = passed_ns.saturating_sub(IdleTime::now()?.since(idle_before)?);
    if ended.exit_status() == 0 {
        return Ok(CatRun { duration_ns, ended });
    }
    Err(failure::failed(format!(
        "cannot copy {} by cat: {}; run it by hand to see why",
        argument.display(),
        ended.describe()
    )))
}

fn cannot_run(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => FailureKind::Unsupported,
        _ => FailureKind::Instrument,
    };
    Failure {
        kind,
        message: format!(
            "cannot run the system's cat: {}; put it on PATH",
            failure::reason(error)
        ),
    }
}

fn startup_ns() -> Result<u64, Failure> {
    let null = std::path::Path::new("/dev/null");
    let mut durations = [0; STARTUP_RUNS];
    for duration in &mut durations {
        let mut sink = OpenSink::open(toll_wire::Sink::Null, null, Purpose::Count)?;
        *duration = run_cat(null, &mut sink)?.duration_ns;
    }
    durations.sort_unstable();
    Ok(durations[STARTUP_RUNS / 2])
}

fn sample(
    copy: &CopyRequest,
    source: &OpenSource,
    startup_ns: u64,
    counters: &[String],
) -> Result<Sample, Failure> {
    let _page_state = source.ready()?;
    let mut sink = open_sink(copy, Purpose::Count)?;
    let mut counters = Counters::open(counters, Inherit::OnExec);
    counters.start()?;
    let run = run_cat(source.path(), &mut sink);
    let counters = counters.stop()?;
    let run = run?;
    let (arrived, _) = sink.arrived(copy.size_bytes, Purpose::Count)?;
    check_length(arrived.bytes, copy.size_bytes)?;
    if run.duration_ns <= startup_ns {
        return Err(failure::instrument(format!(
            "cannot time cat: its copy of {} bytes took no longer than its start-up; \
             choose a larger file",
            copy.size_bytes
        )));
    }
    let duration_ns = run.duration_ns - startup_ns;
    let mut sample = run.ended.sample(counters);
    put(&mut sample, "startup_ns", startup_ns as f64);
    add_rates(&mut sample, "bytes_copied", copy.size_bytes, duration_ns);
    Ok(sample)
}

fn verify(copy: &CopyRequest, source: &OpenSource) -> Result<(), Failure> {
    let _page_state = source.ready()?;
    let mut sink = open_sink(copy, Purpose::Hash)?;
    run_cat(source.path(), &mut sink)?;
    let (arrived, _) = sink.arrived(copy.size_bytes, Purpose::Hash)?;
    check(&arrived, copy)
}
