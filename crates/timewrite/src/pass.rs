//! One pass and its line.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use toll_probe::clock::now_ns;
use toll_probe::usage::{Scope, Usage};
use toll_probe::write::pass::{PassError, write_pass};

#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    buffer_bytes: usize,
    user_ns: u64,
    system_ns: u64,
    elapsed_ns: u64,
    writes: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\t{:7.4}\t{:7.4}\t{:7.4}\t{}",
            self.buffer_bytes,
            seconds(self.user_ns),
            seconds(self.system_ns),
            seconds(self.elapsed_ns),
            self.writes
        )
    }
}

fn seconds(duration_ns: u64) -> f64 {
    duration_ns as f64 / 1e9
}

/// Writes the content to the file's start, `buffer_bytes` at a time.
pub fn run(
    file: &File,
    content: &[u8],
    buffer_bytes: usize,
) -> Result<Line, (&'static str, io::Error)> {
    let usage_before = Usage::now(Scope::Process);
    let started_ns = now_ns();
    let written = write_pass(file.as_fd(), content.len() as u64, |offset| {
        piece(content, buffer_bytes, offset)
    });
    let elapsed_ns = now_ns() - started_ns;
    let usage = Usage::now(Scope::Process).since(&usage_before);
    let writes = written.map_err(|error| match error {
        PassError::Seek(errno) => ("seek in", errno.into()),
        PassError::Write { errno, .. } => ("write", errno.into()),
        PassError::NoProgress => ("write", io::ErrorKind::WriteZero.into()),
    })?;
    Ok(Line {
        buffer_bytes,
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        elapsed_ns,
        writes,
    })
}

/// The bytes from `offset` to the end of its buffer, or of the content.
fn piece(content: &[u8], buffer_bytes: usize, offset: u64) -> &[u8] {
    let start = offset as usize;
    let end = (start - start % buffer_bytes + buffer_bytes).min(content.len());
    &content[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_columns_of_the_report() {
        let line = Line {
            buffer_bytes: 256,
            user_ns: 1_234_560_000,
            system_ns: 50_000,
            elapsed_ns: 123_456_000_000_000,
            writes: 512,
        };
        assert_eq!(
            line.to_string(),
            "256\t 1.2346\t 0.0001\t123456.0000\t512\n"
        );
    }

    #[test]
    fn a_short_write_goes_on_within_its_buffer() {
        let content = [0; 1000];
        assert_eq!(piece(&content, 256, 0).len(), 256);
        assert_eq!(piece(&content, 256, 100).len(), 156);
        assert_eq!(piece(&content, 256, 768).len(), 232);
        assert_eq!(piece(&content, 4096, 0).len(), 1000);
    }
}
