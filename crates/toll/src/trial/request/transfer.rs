//! Requests to transfer a file.

use std::path::Path;

use toll_wire::guest::PairSide;
use toll_wire::{Channel, TransferPart, TransferRequest, Workload};

use super::TrialRequest;
use crate::environment::{SourceContent, SourceSpec, WorkspaceRequest};
use crate::spec::WorkloadKind;
use crate::spec::quantity::parse_size;
use crate::trial::files::{Files, LAID_FOR_GUESTS};
use crate::trial::guests::has_partner;

/// Bytes of a transfer that names none: the report's largest but one.
const DEFAULT_BYTES: u64 = 1_502_860;
/// Buffer of a transfer that names none, in bytes.
const DEFAULT_BUFFER_BYTES: u64 = 64 << 10;

impl TrialRequest<'_> {
    /// Why a transfer cannot be had, where the treatment alone tells.
    pub fn transfer_obstacle(&self) -> Option<String> {
        if self.experiment.workload.kind != WorkloadKind::Transfer {
            return None;
        }
        let request = self.transfer_parameters().ok()?;
        if request.channel == Channel::Device && !self.is_in_guest() {
            return Some(
                "the device needs a guest: the modules are never inserted into this machine".into(),
            );
        }
        request.contradiction().map(str::to_owned)
    }

    /// What a transfer needs of the disk: its source is on the work directory's
    /// own file system, wherever it goes.
    pub(super) fn add_transfer_files(&self, request: &mut WorkspaceRequest) -> Result<(), String> {
        let source = self.transfer_source()?;
        request.add_source(LAID_FOR_GUESTS, source);
        request.scratch_bytes = request.scratch_bytes.max(source.size_bytes);
        if !request
            .file_systems
            .iter()
            .any(|name| name == LAID_FOR_GUESTS)
        {
            request.file_systems.push(LAID_FOR_GUESTS.to_owned());
        }
        Ok(())
    }

    fn transfer_source(&self) -> Result<SourceSpec, String> {
        Ok(SourceSpec {
            size_bytes: self.bytes("size", DEFAULT_BYTES)?,
            content: match self.level("content").map(|level| level.text.as_str()) {
                Some("lines") => SourceContent::Lines,
                _ => SourceContent::Random,
            },
        })
    }

    /// The request for one trial.
    ///
    /// # Errors
    /// If a parameter cannot be read, the channel cannot be had or the source
    /// was not laid out.
    pub(super) fn transfer(&self, files: Files<'_>, directory: &Path) -> Result<Workload, String> {
        if let Some(obstacle) = self.transfer_obstacle() {
            return Err(obstacle);
        }
        let source = files.source(LAID_FOR_GUESTS, self.transfer_source()?)?;
        Ok(Workload::Transfer(TransferRequest {
            source: source.path,
            xxh3: source.xxh3,
            directory: directory.to_owned(),
            ..self.transfer_parameters()?
        }))
    }

    /// What the treatment says of a transfer; its files are to be filled in.
    fn transfer_parameters(&self) -> Result<TransferRequest, String> {
        let buffer_bytes = self.bytes("buffer", DEFAULT_BUFFER_BYTES)?;
        let of_receiver = self.level("receiver_buffer");
        Ok(TransferRequest {
            channel: self.word("channel", "tcp")?,
            sender: self.word("sender", "read-write")?,
            receiver: self.word("receiver", "read-write")?,
            mode: self.word("mode", "sync")?,
            buffer_bytes,
            receiver_buffer_bytes: match of_receiver.map(|level| level.text.as_str()) {
                None | Some("same") => buffer_bytes,
                Some(size) => parse_size(size)?,
            },
            source: Path::new("").to_owned(),
            size_bytes: self.transfer_source()?.size_bytes,
            xxh3: 0,
            directory: Path::new("").to_owned(),
            part: self.transfer_part(),
        })
    }

    /// Which of the ends the guest is that is asked; its partner is the other.
    fn transfer_part(&self) -> TransferPart {
        match self.treatment.boot().as_ref().is_some_and(has_partner) {
            true => TransferPart::Sender {
                listen: PairSide::Main.ipv4().into(),
            },
            false => TransferPart::Both,
        }
    }
}
