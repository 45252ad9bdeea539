//! Defects of the published master's loop, which a trial reports where they show. They are part of
//! the loop, so a treatment that has such a defect is skipped with the reason.

use rustix::io::Errno;
use toll_wire::{Failure, SendMethod, TransferRequest};

use crate::buffer::page_bytes;
use crate::failure;
use crate::workloads::copy::mover::CallError;

/// Explains wrong content, if the loop copies a page's beginning again and again.
pub fn of_content(transfer: &TransferRequest) -> Option<Failure> {
    let has_defect =
        transfer.sender == SendMethod::PublishedMmap && transfer.buffer_bytes < page_bytes() as u64;
    has_defect.then(|| {
        failure::unsupported(format!(
            "cannot send by the published loop with a buffer of {} bytes: different content \
             arrived, because the loop copies from the page's beginning for each buffer; use a \
             buffer of one page, or `sender = \"mended-mmap\"`",
            transfer.buffer_bytes
        ))
    })
}

/// Explains too many mappings, if the loop removes none of the device's.
pub fn of_mappings(transfer: &TransferRequest, error: &CallError) -> Option<Failure> {
    let has_defect = transfer.sender == SendMethod::PublishedMmap
        && (error.call, error.errno) == ("mmap", Some(Errno::NOMEM));
    has_defect.then(|| {
        failure::unsupported(format!(
            "cannot send by the published loop: it never unmaps the device, and {} pages need more \
             mappings than a process may have; send less, use `sender = \"mended-mmap\"`, or raise \
             vm.max_map_count",
            transfer.size_bytes.div_ceil(page_bytes() as u64)
        ))
    })
}
