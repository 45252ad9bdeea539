//! `timewrite`: what a write costs with and without `O_SYNC`, by the size of
//! the buffer.
//!
//! The name, the arguments and the columns are those of the timewrite report's
//! program. The pass itself is the one of the probe's `write` workload.

mod arguments;
mod input;
mod pass;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use rustix::fs::OFlags;
use toll_probe::failure::{advice, reason};
use toll_probe::program::{complain, print};

use self::arguments::{Request, Target};

/// Buffer sizes of the report, in bytes: 256 and its doubles.
const BUFFER_BYTES: [usize; 10] = [
    256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072,
];

const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let result = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Request::Print(text)) => print(&text),
        Ok(Request::Measure(target)) => measure(&target),
        Err(complaint) => {
            complain("timewrite", &complaint);
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            complain("timewrite", &complaint);
            ExitCode::FAILURE
        }
    }
}

/// All passes, a line each as soon as it is measured.
fn measure(target: &Target) -> Result<(), String> {
    let content = input::read_all().map_err(|error| {
        format!(
            "cannot read standard input: {}; give the file to be written as `<FILE`",
            reason(&error)
        )
    })?;
    let file = open(target).map_err(|error| cannot("open", target, &error))?;
    for buffer_bytes in BUFFER_BYTES {
        let line = pass::run(&file, &content, buffer_bytes)
            .map_err(|(action, error)| cannot(action, target, &error))?;
        print(&line.to_string())?;
    }
    Ok(())
}

fn open(target: &Target) -> io::Result<File> {
    let flags = if target.is_synchronous {
        OFlags::SYNC
    } else {
        OFlags::empty()
    };
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(flags.bits().cast_signed())
        .open(&target.path)
}

fn cannot(action: &str, target: &Target, error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::ESPIPE) => "name a file that can be written from its start again",
        _ => advice(error),
    };
    format!(
        "cannot {action} {}: {}; {advice}",
        target.path.display(),
        reason(error)
    )
}
