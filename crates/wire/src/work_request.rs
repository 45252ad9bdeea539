//! What each workload declares about its request.

use std::path::Path;

/// The request of one workload. Its fields are the parameters of experiment files; `toll` fills in
/// those whose names in messages begin with `@`.
pub(crate) trait WorkRequest: Sized {
    /// Parameters that `toll` handles instead of the probe.
    const SURROUNDINGS: &'static [&'static str] = &[];
    /// Parameters of another workload's request into which this request may be turned.
    const FURTHER_PARAMETERS: &'static [&'static str] = &[];
    /// Whether the workload starts programs that are installed on the machine.
    const STARTS_PROGRAMS: bool = false;
    /// The metric that a list of prices shows, unless the experiment file names one.
    const PRICE_METRIC: Option<&'static str> = None;

    /// Reads the request from the levels of its own parameters.
    fn read(levels: &[(&str, &str)]) -> Result<Self, String>;

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds::default()
    }

    /// Whether iterations begin with files that must not be in memory.
    fn begins_cold(&self) -> bool {
        false
    }

    /// Bytes of memory that a trial needs and that no file holds; `None` if it needs little.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Sets the directory for the trial's files and the seed of its random numbers.
    fn place(&mut self, _directory: &Path, _seed: u64) {}
}

/// Returns the levels whose names satisfy `is_chosen`.
pub(crate) fn chosen<'a>(
    levels: &[(&'a str, &'a str)],
    is_chosen: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    levels
        .iter()
        .copied()
        .filter(move |(name, _)| is_chosen(name))
}

/// Disk space that a trial needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskNeeds {
    /// Size in bytes of the file that the trial reads.
    pub source_bytes: Option<u64>,
    /// Size in bytes of the file of zeros that the trial maps or reads.
    pub zeros_bytes: Option<u64>,
    /// Largest number of bytes that the trial has on the file system at a time, without these two
    /// files.
    pub scratch_bytes: u64,
}
