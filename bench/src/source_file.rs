//! A warm file with known content.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use toll_probe::page_cache;
use toll_wire::CacheState;

use crate::content::Content;

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

    /// Brings the file wholly into the page cache and checks that it is there.
    ///
    /// # Errors
    /// If it does not stay there.
    pub(crate) fn warm(&self) -> Result<(), String> {
        let wrong = |why: &str| format!("cannot warm {}: {why}", self.path.display());
        let file = File::open(&self.path).map_err(|error| wrong(&error.to_string()))?;
        page_cache::establish(&file, self.size_bytes, CacheState::Warm)
            .map(|_| ())
            .map_err(|failure| wrong(&failure.message))
    }
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
