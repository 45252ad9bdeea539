//! A warm file with known content.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::content::Content;

/// Bytes read at a time to bring a file into the page cache.
const READ_BYTES: usize = 1 << 20;
/// Times that a file is read again before it counts as not to be kept warm.
const ATTEMPTS_MAX: u32 = 4;

/// A file whose bytes are the first of a [`Content`].
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) seed: u64,
}

impl SourceFile {
    /// Writes the file and its data to the device: dirty pages would have to
    /// be written by the first program that shares its blocks.
    ///
    /// # Errors
    /// With the reason of the operating system.
    pub(crate) fn create(path: &Path, size_bytes: u64, seed: u64) -> std::io::Result<SourceFile> {
        let mut file = File::create(path)?;
        let mut content = Content::new(seed);
        let mut left = size_bytes;
        while left > 0 {
            let piece = content.take(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(piece)?;
            left -= piece.len() as u64;
        }
        file.sync_all()?;
        Ok(SourceFile {
            path: path.to_owned(),
            size_bytes,
            seed,
        })
    }

    /// Brings the file wholly into the page cache and checks that it is there,
    /// where the kernel tells (cachestat(2), since Linux 6.5).
    ///
    /// # Errors
    /// If it does not stay there.
    pub(crate) fn warm(&self) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("cannot read {}: {error}", self.path.display());
        let mut file = File::open(&self.path).map_err(wrong)?;
        let pages = self.size_bytes.div_ceil(rustix::param::page_size() as u64);
        for _ in 0..ATTEMPTS_MAX {
            if resident_pages(&file, self.size_bytes) == Some(pages) {
                return Ok(());
            }
            read_through(&mut file).map_err(wrong)?;
        }
        match resident_pages(&file, self.size_bytes) {
            None => Ok(()),
            Some(resident) if resident == pages => Ok(()),
            Some(resident) => Err(format!(
                "cannot keep {} in the page cache: {resident} of {pages} pages are there; free \
                 memory or choose a smaller --size",
                self.path.display()
            )),
        }
    }
}

fn read_through(file: &mut File) -> std::io::Result<()> {
    std::io::Seek::rewind(file)?;
    let mut buffer = vec![0; READ_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Pages of the first `size_bytes` that are in the page cache; `None` where
/// the kernel does not tell.
fn resident_pages(file: &File, size_bytes: u64) -> Option<u64> {
    /// x86-64 and the generic table agree on the number.
    const SYS_CACHESTAT: libc::c_long = 451;
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Statistics {
        cache: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range {
        offset: 0,
        length: size_bytes,
    };
    let mut statistics = Statistics::default();
    // SAFETY: both structures have the kernel's layout (uapi/linux/mman.h) and
    // outlive the call.
    let status = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut statistics,
            0u32,
        )
    };
    (status == 0).then_some(statistics.cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Verifier;

    #[test]
    fn a_source_has_its_content_and_is_warm() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("source");
        let source = SourceFile::create(&path, 100_001, 3).expect("a file can be written");
        source.warm().expect("a small file stays");
        let mut verifier = Verifier::new(3);
        verifier.accept(&std::fs::read(&path).expect("the file is there"));
        verifier.finish(100_001).expect("the content is the seed's");
    }
}
