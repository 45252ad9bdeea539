//! Source files, which trials copy or map.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub use toll_wire::SourceContent;
use xxhash_rust::xxh3::Xxh3;

/// Describes a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceSpec {
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Content of the file.
    pub content: SourceContent,
}

impl SourceSpec {
    /// A file of pseudo-random bytes.
    pub fn random(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            content: SourceContent::Random,
        }
    }

    /// Name of the file in a work directory.
    pub fn name(&self) -> String {
        match self.content {
            SourceContent::Random => format!("source-{}", self.size_bytes),
            SourceContent::Lines => format!("source-lines-{}", self.size_bytes),
        }
    }
}

/// The lines of a file of [`SourceContent::Lines`].
const LINES: &[u8] = b"meow!\nCats are so cute!\n";

/// A source file, with the hash of a correct copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path of the file.
    pub path: PathBuf,
    /// XXH3-64 of the file's content.
    pub xxh3: u64,
}

const CHUNK_BYTES: usize = 1 << 20;

impl SourceFile {
    /// Creates a file and writes it back to the device.
    pub fn create(path: &Path, spec: SourceSpec) -> io::Result<Self> {
        let mut file = File::create_new(path)?;
        let mut hash = Xxh3::new();
        let mut rng = toll_stats::Rng::new(spec.size_bytes);
        let mut chunk = match spec.content {
            SourceContent::Random => vec![0_u8; CHUNK_BYTES],
            // A chunk has whole lines, so that the next one continues where it ended.
            SourceContent::Lines => LINES.repeat(CHUNK_BYTES / LINES.len()),
        };
        let mut left = spec.size_bytes;
        while left > 0 {
            if spec.content == SourceContent::Random {
                for word in chunk.as_chunks_mut::<8>().0 {
                    *word = rng.next_u64().to_le_bytes();
                }
            }
            let length = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
            let part = &chunk[..length];
            file.write_all(part)?;
            hash.update(part);
            left -= length as u64;
        }
        file.sync_all()?;
        Ok(Self {
            path: path.to_owned(),
            xxh3: hash.digest(),
        })
    }
}

/// Creates a file of zeros, and writes it back to the device. All of its blocks are allocated.
pub fn lay_zeros(path: &Path, size_bytes: u64) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    io::copy(&mut io::repeat(0).take(size_bytes), &mut file)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_its_size_and_hash() {
        let directory = tempfile::tempdir().unwrap();
        for content in [SourceContent::Random, SourceContent::Lines] {
            for size_bytes in [0, 1, 12_345, CHUNK_BYTES as u64 + 1] {
                let spec = SourceSpec {
                    size_bytes,
                    content,
                };
                let source = SourceFile::create(&directory.path().join(spec.name()), spec).unwrap();
                let content = std::fs::read(&source.path).unwrap();
                assert_eq!(content.len() as u64, size_bytes);
                assert_eq!(xxhash_rust::xxh3::xxh3_64(&content), source.xxh3);
            }
        }
    }

    #[test]
    fn lines_go_on_from_one_chunk_to_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let spec = SourceSpec {
            size_bytes: 3 * CHUNK_BYTES as u64,
            content: SourceContent::Lines,
        };
        let source = SourceFile::create(&directory.path().join("s"), spec).unwrap();
        let content = std::fs::read_to_string(source.path).unwrap();
        let mut lines = content.lines();
        let last = lines.next_back().unwrap();
        assert!("Cats are so cute!".starts_with(last), "{last}");
        for (number, line) in lines.enumerate() {
            let expected = ["meow!", "Cats are so cute!"][number % 2];
            assert_eq!(line, expected, "{number}");
        }
    }
}
