//! Copies by a single method of the probe, so that the method can be observed and timed
//! as a program.

use rustix::io::pread;
use toll_probe::workloads::copy::mover;
use toll_probe::workloads::copy::mover::Job;
use toll_wire::{CopyMethod, Sink};

use crate::ends::{End, Kind};

/// Copies the rest of a source by one method. Returns a description for people.
pub fn copy(
    method: CopyMethod,
    name: &str,
    source: &End<'_>,
    sink: &End<'_>,
) -> Result<String, String> {
    let size_bytes = size_for(method, name, source)?;
    let sink_kind = match (method, sink.kind.into()) {
        // Concurrent writes need explicit offsets, which in a file are known only for the
        // first operand. Writes in order go to the file's current offset.
        (CopyMethod::IoUring, Sink::File) => Sink::Pipe,
        (_, kind) => kind,
    };
    let mut mover = mover(method, None, source.fd, sink_kind).map_err(|failure| failure.message)?;
    let job = Job {
        source: source.fd,
        sink: sink.fd,
        sink_kind,
        size_bytes,
    };
    mover.prepare(&job).map_err(|failure| failure.message)?;
    let moved = mover.run(&job);
    let moved = moved.map_err(|error| error.into_failure(name, "standard output").message)?;
    let notes = mover.notes().join(", ");
    let calls = if moved.calls == 1 { "call" } else { "calls" };
    Ok(format!(
        "{} bytes in {} {calls}, {notes}",
        moved.bytes, moved.calls
    ))
}

/// Returns how many bytes to copy: the rest of a file, or `u64::MAX` for all that
/// arrives.
fn size_for(method: CopyMethod, name: &str, source: &End<'_>) -> Result<u64, String> {
    let is_from_start = matches!(method, CopyMethod::Mmap | CopyMethod::IoUring);
    let is_of_known_length = is_from_start || method == CopyMethod::Vmsplice;
    let left = source.left();
    let why = match left {
        // A file that the kernel generates claims to be empty.
        _ if is_of_known_length && source.kind == Kind::EmptyFile => {
            match pread(source.fd, &mut [0; 1], 0) {
                Ok(0) => return Ok(0),
                _ => "its length is not known",
            }
        }
        None if is_of_known_length => "its length is not known",
        Some((position, _)) if is_from_start && position > 0 => "part of it was already read",
        Some((_, bytes)) if source.kind != Kind::EmptyFile => return Ok(bytes),
        _ => return Ok(u64::MAX),
    };
    Err(format!(
        "cannot copy {name} by this method: {why}; choose another method"
    ))
}
