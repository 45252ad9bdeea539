//! The defects of the published master's loop, which a trial meets where they show.
//! They are what the loop is, so a treatment that has one is left out with the reason.

use rustix::io::Errno;
use toll_wire::{Failure, SendMethod, TransferRequest};

use crate::buffer::page_bytes;
use crate::copy::mover::CallError;
use crate::failure;

/// That the wrong content arrived, of a loop that copies a page's beginning again and
/// again.
pub fn of_content(transfer: &TransferRequest) -> Option<Failure> {
    let has_defect =
        transfer.sender == SendMethod::PublishedMmap && transfer.buffer_bytes < page_bytes() as u64;
    has_defect.then(|| {
        failure::unsupported(format!(
            "cannot send by the published loop with a buffer of {} bytes: another content arrived, \
             since it copies from the page's beginning for each; use a buffer of a page, or sender \
             = mended-mmap",
            transfer.buffer_bytes
        ))
    })
}

/// That there are too many mappings, of a loop that removes none of the device's.
pub fn of_mappings(transfer: &TransferRequest, error: &CallError) -> Option<Failure> {
    let has_defect = transfer.sender == SendMethod::PublishedMmap
        && (error.call, error.errno) == ("mmap", Some(Errno::NOMEM));
    has_defect.then(|| {
        failure::unsupported(format!(
            "cannot send by the published loop: it never unmaps the device, and the mappings of {} \
             pages are more than a process may have; send less, use sender = mended-mmap, or raise \
             vm.max_map_count",
            transfer.size_bytes.div_ceil(page_bytes() as u64)
        ))
    })
}
