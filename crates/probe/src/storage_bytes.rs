//! Storage traffic of the probe, from `/proc/self/io`.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes fetched from and sent to storage on the probe's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageBytes {
    /// `read_bytes` of proc_pid_io(5).
    pub input: u64,
    /// `write_bytes` of proc_pid_io(5): bytes made dirty for storage, or
    /// written past the page cache.
    pub output: u64,
}

impl StorageBytes {
    /// The traffic since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
        }
    }
}

/// An open `/proc/self/io`, where the kernel has one.
pub struct StorageMeter(Option<File>);

impl StorageMeter {
    /// Opens the file once, since opening it around each region would cost more
    /// than reading it.
    pub fn open() -> Self {
        Self(File::open("/proc/self/io").ok())
    }

    /// Reads the traffic until now; `None` where the kernel does not account.
    pub fn read(&self) -> Option<StorageBytes> {
        let mut text = [0; 512];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

fn parse(text: &str) -> Option<StorageBytes> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|value| value.trim().parse().ok())
    };
    Some(StorageBytes {
        input: field("read_bytes")?,
        output: field("write_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_by_their_whole_name() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\n\
                    write_bytes: 8192\ncancelled_write_bytes: 7\n";
        let expected = StorageBytes {
            input: 4096,
            output: 8192,
        };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn malformed_text_yields_nothing() {
        for text in [
            "",
            "read_bytes",
            "read_bytes: x\nwrite_bytes: 1",
            "read_bytes: 1\n",
            ":::",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
