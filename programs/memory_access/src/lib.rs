//! The programs `memory_access` and `compete_for_memory` of CS380L lab 2: the published
//! accesses with their statistics, and the process that competes for memory.
//!
//! The programs are thin: both are built from the parts of the probe's `memory` workload.

mod options;
mod statistics;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::process::ExitCode;

use os_display::Quotable;
use rustix::fs::{Mode, OFlags, openat};
use toll_probe::failure;
use toll_probe::program::{self, complain, print};
use toll_probe::workloads::memory::Backing;
use toll_probe::workloads::memory::published::{Accesses, machine_bytes, measure};

use self::options::{Mapping, Options};

pub fn access() -> ExitCode {
    let request = options::parse(std::env::args_os().skip(1));
    let request = request.map_err(|complaint| format!("{complaint}; see memory_access --help"));
    program::run("memory_access", request, |options| {
        access_by(&options).map_err(|complaint| (1, complaint))
    })
}

pub fn compete() -> ExitCode {
    let request = options::parse_competitor(std::env::args_os().skip(1));
    let request =
        request.map_err(|complaint| format!("{complaint}; see compete_for_memory --help"));
    program::run("compete_for_memory", request, |bytes| {
        compete_for(bytes).map_err(|complaint| (1, complaint))
    })
}

fn access_by(options: &Options) -> Result<(), String> {
    let file = match options.mapping {
        Mapping::Anonymous => None,
        Mapping::FilePrivate | Mapping::FileShared => Some(file(options)?),
    };
    let backing = match (options.mapping, &file) {
        (Mapping::FilePrivate, Some(file)) => Backing::Private(file.as_fd()),
        (Mapping::FileShared, Some(file)) => Backing::Shared(file.as_fd()),
        _ => Backing::Anonymous,
    };
    let competitor = if options.competes {
        Some((announced(options.memory_bytes)?, options.wait))
    } else {
        None
    };
    let accesses = Accesses {
        order: options.order,
        backing,
        populates: options.populates,
        clears: options.clears,
        buffer_bytes: options.buffer_bytes,
        steps: options.steps,
        competitor,
    };
    let statistics = measure(&accesses).map_err(|failure| failure.message)?;
    // Usually all of them are missing for the same reason.
    if let Some(why) = statistics.missing.values().next() {
        complain("memory_access", why);
    }
    print(&statistics::lines(&statistics))
}

fn compete_for(bytes: Option<u64>) -> Result<(), String> {
    let bytes = announced(bytes)?;
    match toll_probe::workloads::memory::compete(bytes) {
        Err(failure) => Err(failure.message),
        Ok(never) => match never {},
    }
}

/// Prints how much memory the competitor uses, and returns that number of bytes.
fn announced(bytes: Option<u64>) -> Result<u64, String> {
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => machine_bytes().map_err(|failure| failure.message)?,
    };
    let gigabytes = bytes as f64 / f64::from(1 << 30);
    print(&format!("Total memsize is {gigabytes:3.2} GBs\n"))?;
    Ok(bytes)
}

/// Opens the file to map: the given file, or else a sparse file without a name in the
/// current directory.
fn file(options: &Options) -> Result<File, String> {
    let Some(path) = &options.file else {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let cannot = |error: std::io::Error| {
            let advice = "name a file with --file";
            failure::cannot("create a file in the current directory", &error, advice)
        };
        let file = openat(rustix::fs::CWD, ".", flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|errno| cannot(errno.into()))?;
        file.set_len(options.buffer_bytes).map_err(cannot)?;
        return Ok(file);
    };
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let checked = opened.and_then(|file| Ok((file.metadata()?, file)));
    let shown = path.maybe_quote();
    let (metadata, file) = checked.map_err(|error| {
        let advice = "name a file that can be read and written";
        failure::cannot(&format!("map {shown}"), &error, advice)
    })?;
    // An access past the end would cause a SIGBUS.
    if !metadata.is_file() || metadata.len() < options.buffer_bytes {
        return Err(format!(
            "cannot map {shown}: it is not a regular file of at least {} bytes; name another one",
            options.buffer_bytes
        ));
    }
    Ok(file)
}
