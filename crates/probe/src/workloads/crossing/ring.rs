//! Operations through an io_uring, one or several at a time.

use std::os::fd::AsRawFd;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use toll_wire::{CrossingOperation, CrossingRequest, Failure};

use super::file::{WarmFile, next_offset};
use super::kind::{Crossing, check};
use crate::buffer::Buffer;
use crate::failure::{self, OrFail};

pub struct Ring {
    // Dropped before the buffer that the kernel writes to.
    ring: IoUring,
    batch: u64,
    read: Option<Reads>,
}

struct Reads {
    warm: WarmFile,
    buffer: Buffer,
    length: u32,
    /// Offset of the last read.
    offset: u64,
}

impl Ring {
    pub fn new(request: &CrossingRequest) -> Result<Self, Failure> {
        let entries = u32::try_from(request.batch.next_power_of_two()).expect("a batch is limited");
        let reads = || {
            Ok::<_, Failure>(Reads {
                warm: WarmFile::new(&request.directory, request.size_bytes)?,
                buffer: Buffer::aligned(request.size_bytes as usize),
                length: u32::try_from(request.size_bytes).expect("sizes are limited"),
                offset: 0,
            })
        };
        let is_read = request.operation == CrossingOperation::IoUringRead;
        Ok(Self {
            ring: crate::workloads::copy::io_uring::ring(entries)?,
            batch: request.batch,
            read: is_read.then(reads).transpose()?,
        })
    }

    /// Builds the next entry. All reads of a batch share one buffer, as successive
    /// calls of `pread` would. Their order is undefined, so the content is checked
    /// only after a batch of one.
    fn entry(&mut self) -> Entry {
        let Some(read) = &mut self.read else {
            return opcode::Nop::new().build();
        };
        read.offset = next_offset(read.offset, u64::from(read.length), read.warm.span_bytes);
        let file = types::Fd(read.warm.file.as_raw_fd());
        let memory = read.buffer.bytes_mut().as_mut_ptr();
        opcode::Read::new(file, memory, read.length)
            .offset(read.offset)
            .build()
    }

    fn submit(&mut self, count: u64) -> Result<(), Failure> {
        for _ in 0..count {
            let entry = self.entry();
            // SAFETY: file and buffer live until the batch has completed, below.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("the queue has room for a batch");
        }
        self.ring
            .submit_and_wait(count as usize)
            .failed_to("measure a crossing by io_uring_enter")?;
        let expected = self.read.as_ref().map_or(0, |read| read.length);
        let mut completed = 0;
        for entry in self.ring.completion() {
            completed += 1;
            if u32::try_from(entry.result()) != Ok(expected) {
                return Err(failure::failed(format!(
                    "cannot measure a crossing by io_uring: an operation returned {}; see the \
                     kernel log",
                    entry.result()
                )));
            }
        }
        if completed == count {
            Ok(())
        } else {
            Err(failure::failed(format!(
                "cannot measure a crossing by io_uring: {completed} of {count} operations \
                 completed; see the kernel log"
            )))
        }
    }
}

impl Crossing for Ring {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let mut left = calls;
        while left > 0 {
            let count = left.min(self.batch);
            self.submit(count)?;
            left -= count;
        }
        Ok(())
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        if self.read.is_none() {
            return Ok(());
        }
        self.submit(1)?;
        let read = self.read.as_ref().expect("checked above");
        let is_right = read.buffer.bytes() == read.warm.content(read.offset);
        check(is_right, "a read returned wrong bytes")
    }
}
