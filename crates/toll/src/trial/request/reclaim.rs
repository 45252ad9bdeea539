//! Requests of the reclaim workload.

use std::path::Path;

use toll_wire::{Competitor, CompetitorUses, HotMapping, ReclaimRequest, WorkingSet, Workload};

use super::TrialRequest;
use crate::environment::{WorkspaceRequest, memory_limit_obstacle, memory_obstacle};
use crate::spec::quantity::parse_size;
use crate::trial::files::Files;

/// Hot pages of a set that names none, in bytes, and the stream beside them: in
/// a guest of 256 MiB the hot pages fit with ease and both together do not.
const DEFAULT_HOT_BYTES: u64 = 60 << 20;
const DEFAULT_STREAM_BYTES: u64 = 240 << 20;
/// Processes of a set that names none.
const DEFAULT_PROCESSES: u64 = 3;
/// Passes of a set that names none.
const DEFAULT_PASSES: u64 = 1;

/// The set that is the published access function.
const PUBLISHED: &str = "published";

impl TrialRequest<'_> {
    /// Whether the reclaim workload is the published access function, which is
    /// the memory workload's.
    pub(super) fn is_published_set(&self) -> bool {
        self.set() == PUBLISHED
    }

    fn set(&self) -> &str {
        self.level("set").map_or("private-hot", |level| &level.text)
    }

    /// Whether the treatment runs in a guest, whose memory is its limit.
    pub(super) fn is_in_guest(&self) -> bool {
        self.treatment.boot().is_some()
    }

    /// The competitor of a treatment under pressure. It wants as much memory as
    /// there is, as published.
    pub(super) fn competitor(&self) -> Option<Competitor> {
        let uses = self.competitor_uses()?;
        let guest_bytes = || parse_size(self.treatment.boot()?.get("memory")?).ok();
        let bytes = self.memory_limit().or_else(guest_bytes)?;
        Some(Competitor { bytes, uses })
    }

    /// How a process competes with the accesses for memory, if one does.
    fn competitor_uses(&self) -> Option<CompetitorUses> {
        match self.level("pressure")?.text.as_str() {
            "competing" => Some(CompetitorUses::Random),
            "sweeping" => Some(CompetitorUses::Sweep),
            _ => None,
        }
    }

    /// Whether a process competes with the accesses for memory.
    pub(super) fn is_competing(&self) -> bool {
        self.competitor_uses().is_some()
    }

    /// Whether the pages of a set are its own, which are written to swap and
    /// not back to a file.
    fn anonymous_bytes(&self) -> Result<u64, String> {
        let set: WorkingSet = self.word("set", "private-hot")?;
        let stream = match set.streams_file() {
            true => 0,
            false => self.bytes("stream", DEFAULT_STREAM_BYTES)?,
        };
        let hot = match self.hot_mapping(set)? {
            HotMapping::Anonymous => self.bytes("hot", DEFAULT_HOT_BYTES)?,
            HotMapping::FilePrivate | HotMapping::FileShared => 0,
        };
        Ok(stream + hot)
    }

    fn hot_mapping(&self, set: WorkingSet) -> Result<HotMapping, String> {
        let default = match set {
            WorkingSet::PrivateHot | WorkingSet::SharedHot => "anonymous",
            WorkingSet::Executable => "file-private",
            WorkingSet::FileHot => "file-shared",
        };
        self.word("mapping", default)
    }

    /// Why this machine has not the memory for a set, if it has not.
    pub(super) fn reclaim_obstacle(&self) -> Option<String> {
        match self.memory_limit() {
            // All of it may be in use at once, and what is beyond is swapped.
            Some(limit) => memory_limit_obstacle().or_else(|| memory_obstacle(limit, "none")),
            None => memory_obstacle(self.anonymous_bytes().ok()?, "none"),
        }
    }

    /// What a set needs of the disk.
    pub(super) fn add_reclaim_files(&self, request: &mut WorkspaceRequest) -> Result<(), String> {
        let set: WorkingSet = self.word("set", "private-hot")?;
        let hot_bytes = self.bytes("hot", DEFAULT_HOT_BYTES)?;
        request.scratch_bytes = request.scratch_bytes.max(hot_bytes);
        let stream_bytes = self.bytes("stream", DEFAULT_STREAM_BYTES)?;
        if set.streams_file() && !request.zeros_sizes.contains(&stream_bytes) {
            request.zeros_sizes.push(stream_bytes);
        }
        Ok(())
    }

    pub(super) fn reclaim(
        &self,
        files: Files<'_>,
        directory: &Path,
        seed: u64,
    ) -> Result<Workload, String> {
        let set: WorkingSet = self.word("set", "private-hot")?;
        let stream_bytes = self.bytes("stream", DEFAULT_STREAM_BYTES)?;
        let stream_file = match set.streams_file() {
            true => Some(files.zeros(&self.file_system(), stream_bytes)?),
            false => None,
        };
        let small = |name: &str, default| {
            let count = self.count(name, default)?;
            u32::try_from(count)
                .map_err(|_| format!("cannot set {name} to {count}: it is too many"))
        };
        Ok(Workload::Reclaim(ReclaimRequest {
            set,
            mapping: self.hot_mapping(set)?,
            hot_bytes: self.bytes("hot", DEFAULT_HOT_BYTES)?,
            stream_bytes,
            processes: small("processes", DEFAULT_PROCESSES)?,
            passes: small("passes", DEFAULT_PASSES)?,
            stream_file,
            directory: directory.to_owned(),
            seed,
        }))
    }
}
