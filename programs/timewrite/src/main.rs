//! `timewrite`: measures the cost of a write with and without `O_SYNC`, for several
//! sizes of the buffer.
//!
//! The name, the arguments and the columns are those of the program in the timewrite
//! report. The measurement itself is the probe's `write` workload.

mod arguments;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::process::ExitCode;

use rustix::fs::OFlags;
use toll_probe::clock::now_ns;
use toll_probe::failure::{self, advice};
use toll_probe::program::{self, print};
use toll_probe::usage::{Scope, Usage};
use toll_probe::workloads::copy::mover::CallError;
use toll_probe::workloads::write::pass::write_pass;

use self::arguments::Target;

/// Buffer sizes of the report, in bytes. Each is twice the previous one.
const BUFFER_BYTES: [usize; 10] = [
    256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072,
];

fn main() -> ExitCode {
    let request = arguments::parse(std::env::args_os().skip(1));
    program::run("timewrite", request, |target| {
        measure(&target).map_err(|complaint| (1, complaint))
    })
}

fn measure(target: &Target) -> Result<(), String> {
    let cannot_read = |error: io::Error| {
        let advice = "redirect the input file with `<FILE`";
        failure::cannot("read standard input", &error, advice)
    };
    let input = open_input().map_err(cannot_read)?;
    refuse_same_file(&input, target)?;
    let content = read_whole(input).map_err(cannot_read)?;
    let file = open(target).map_err(|error| cannot("open", target, &error))?;
    for buffer_bytes in BUFFER_BYTES {
        let line = measure_pass(&file, &content, buffer_bytes)
            .map_err(|error| cannot(error.call, target, &error.into()))?;
        print(&line)?;
    }
    toll_streams::close(file).map_err(|error| cannot("close", target, &error))
}

/// Writes the content to the start of the file, `buffer_bytes` at a time. Returns the
/// line to print.
fn measure_pass(file: &File, content: &[u8], buffer_bytes: usize) -> Result<String, CallError> {
    let usage_before = Usage::now(Scope::Process);
    let started_ns = now_ns();
    let written = write_pass(file.as_fd(), content.len() as u64, |offset| {
        piece(content, buffer_bytes, offset)
    });
    let elapsed_ns = now_ns() - started_ns;
    let usage = Usage::now(Scope::Process).since(&usage_before);
    let writes = written?;
    let [user, system, elapsed] =
        [usage.user_ns, usage.system_ns, elapsed_ns].map(|time_ns| time_ns as f64 / 1e9);
    Ok(format!(
        "{buffer_bytes}\t{user:7.4}\t{system:7.4}\t{elapsed:7.4}\t{writes}\n"
    ))
}

/// Returns the part of the content from `offset` to the end of its buffer or of the
/// content.
fn piece(content: &[u8], buffer_bytes: usize, offset: u64) -> &[u8] {
    let start = offset as usize;
    let end = (start - start % buffer_bytes + buffer_bytes).min(content.len());
    &content[start..end]
}

fn open_input() -> io::Result<File> {
    toll_streams::check_stdin()?;
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Refuses a target that is the input under any name, such as a link or /dev/stdin.
fn refuse_same_file(input: &File, target: &Target) -> Result<(), String> {
    let input = input.metadata().ok().and_then(|input| identity(&input));
    // A target without readable metadata is refused when it is opened.
    let output = fs::metadata(&target.path).ok();
    if input.is_none() || output.and_then(|output| identity(&output)) != input {
        return Ok(());
    }
    Err(format!(
        "cannot write {}: it is the file that standard input reads; name another file",
        target.path.display()
    ))
}

/// Returns what identifies a file or a disk. `None` for other devices, such as
/// terminals and /dev/null, which may be both input and output.
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Some((metadata.dev(), metadata.ino()))
    } else if kind.is_block_device() {
        // Several device nodes may refer to one disk. Inode number 0 is not used by any
        // file.
        Some((metadata.rdev(), 0))
    } else {
        None
    }
}

/// Reads the input to its end, whether it is a file of any size or a pipe.
fn read_whole(mut input: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // A file reports its size, a pipe does not. Doubling the buffer of a large file
    // would copy gigabytes and need twice the memory.
    let size_bytes = input.metadata()?.len();
    let expected = usize::try_from(size_bytes).unwrap_or(usize::MAX);
    content
        .try_reserve_exact(expected)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    input.read_to_end(&mut content)?;
    Ok(content)
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
        Some(libc::ESPIPE) => "name a file that can be written several times from its start",
        _ => advice(error),
    };
    failure::cannot(
        &format!("{action} {}", target.path.display()),
        error,
        advice,
    )
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn a_short_write_goes_on_within_its_buffer() {
        let content = [0; 1000];
        for (buffer_bytes, offset, length) in [
            (256, 0, 256),
            (256, 100, 156),
            (256, 768, 232),
            (4096, 0, 1000),
        ] {
            assert_eq!(piece(&content, buffer_bytes, offset).len(), length);
        }
    }
}
