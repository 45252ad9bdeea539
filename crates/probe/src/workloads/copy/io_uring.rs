//! io_uring with registered buffers and several transfers in flight
//! (io_uring(7)).

use std::os::fd::{AsRawFd, RawFd};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use toll_wire::{Failure, Sink};

use super::mover::{CallError, Job, Moved, Mover, portion};
use crate::buffer::{Buffer, checked_length};
use crate::failure::OrFail;

/// Number of buffers, and so the largest number of transfers in flight.
const DEPTH: usize = 8;

const BUFFER_BYTES_DEFAULT: u64 = 128 << 10;

/// Offset that means "at the file's own position", for sinks without offsets.
const NO_OFFSET: u64 = u64::MAX;

pub fn ring(entries: u32) -> Result<IoUring, Failure> {
    let advice = "use a kernel with io_uring and set kernel.io_uring_disabled to 0";
    IoUring::new(entries).unsupported_by("set up io_uring", advice)
}

pub struct Uring {
    // Dropped before the memory that is registered with it.
    ring: IoUring,
    buffer: Buffer,
    chunk: usize,
    is_ordered: bool,
}

impl Uring {
    /// Sets up the ring and registers buffers of `buffer_bytes` each. A stream
    /// takes bytes only in order, so just one write to it is in flight while reads
    /// run ahead.
    pub fn new(buffer_bytes: Option<u64>, sink: Sink) -> Result<Self, Failure> {
        let chunk = checked_length(buffer_bytes.unwrap_or(BUFFER_BYTES_DEFAULT))?;
        let ring = ring(2 * DEPTH as u32)?;
        let mut buffer = Buffer::aligned(chunk * DEPTH);
        let base = buffer.bytes_mut().as_mut_ptr();
        let parts: [libc::iovec; DEPTH] = std::array::from_fn(|index| libc::iovec {
            iov_base: base.wrapping_add(index * chunk).cast(),
            iov_len: chunk,
        });
        // SAFETY: the memory belongs to `buffer`, which outlives the ring.
        let registered = unsafe { ring.submitter().register_buffers(&parts) };
        registered.unsupported_by(
            "register buffers with io_uring",
            "raise the limit on locked memory",
        )?;
        Ok(Self {
            ring,
            buffer,
            chunk,
            is_ordered: matches!(sink, Sink::Pipe | Sink::Socket),
        })
    }
}

impl Mover for Uring {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut transfer = Transfer {
            source: job.source.as_raw_fd(),
            sink: job.sink.as_raw_fd(),
            size_bytes: job.size_bytes,
            base: self.buffer.bytes_mut().as_mut_ptr(),
            chunk: self.chunk,
            is_ordered: self.is_ordered,
            slots: [Slot::default(); DEPTH],
            read_from: 0,
            write_from: 0,
            written: 0,
            in_flight: 0,
            completions: 0,
            enters: 0,
        };
        let result = transfer.run(&mut self.ring);
        // The kernel may still write to the buffers after a failure.
        if !transfer.settle(&mut self.ring) {
            // The kernel may write to that memory at any time, so it is leaked.
            std::mem::forget(std::mem::replace(&mut self.buffer, Buffer::aligned(0)));
        }
        result.map(|()| Moved {
            bytes: transfer.written,
            calls: transfer.enters,
        })
    }

    fn notes(&self) -> Vec<String> {
        let writes = if self.is_ordered {
            "one write"
        } else {
            "writes"
        };
        vec![
            format!(
                "{DEPTH} buffers of {} bytes, reads and {writes} in flight",
                self.chunk
            ),
            "calls are io_uring_enter; setting up the ring is not timed; performance counters \
             exclude the kernel's workers"
                .to_owned(),
        ]
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Reading,
    Full,
    Writing,
}

/// One buffer's chunk, and the progress of its current read or write.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    state: State,
    offset: u64,
    length: usize,
    done: usize,
}

struct Transfer {
    source: RawFd,
    sink: RawFd,
    size_bytes: u64,
    base: *mut u8,
    chunk: usize,
    is_ordered: bool,
    slots: [Slot; DEPTH],
    read_from: u64,
    write_from: u64,
    written: u64,
    in_flight: usize,
    completions: u64,
    enters: u64,
}

impl Transfer {
    fn run(&mut self, ring: &mut IoUring) -> Result<(), CallError> {
        while self.written < self.size_bytes {
            self.start_reads(ring);
            self.start_writes(ring);
            self.enter(ring)?;
            loop {
                // Borrows the queue for one entry only, because completing an entry may push
                // another.
                let next = ring.completion().next();
                let Some(entry) = next else {
                    break;
                };
                self.complete(ring, entry.user_data() as usize, entry.result())?;
            }
        }
        Ok(())
    }

    fn start_reads(&mut self, ring: &mut IoUring) {
        for index in 0..DEPTH {
            if self.slots[index].state == State::Idle && self.read_from < self.size_bytes {
                let length = portion(self.size_bytes - self.read_from, self.chunk);
                self.slots[index] = Slot {
                    state: State::Reading,
                    offset: self.read_from,
                    length,
                    done: 0,
                };
                self.read_from += length as u64;
                self.push(ring, index);
            }
        }
    }

    fn start_writes(&mut self, ring: &mut IoUring) {
        for index in 0..DEPTH {
            let slot = self.slots[index];
            // `write_from` advances only when the previous write has ended.
            let is_due = !self.is_ordered || slot.offset == self.write_from;
            if slot.state == State::Full && is_due {
                self.slots[index].state = State::Writing;
                self.push(ring, index);
            }
        }
    }

    /// Queues the rest of a slot's read or write.
    fn push(&mut self, ring: &mut IoUring, index: usize) {
        let slot = self.slots[index];
        let memory = self.base.wrapping_add(index * self.chunk + slot.done);
        let length = u32::try_from(slot.length - slot.done).expect("a buffer is under 4 GiB");
        let offset = slot.offset + slot.done as u64;
        let part = index as u16;
        let entry: squeue::Entry = if slot.state == State::Reading {
            opcode::ReadFixed::new(types::Fd(self.source), memory, length, part)
                .offset(offset)
                .build()
        } else {
            let offset = if self.is_ordered { NO_OFFSET } else { offset };
            opcode::WriteFixed::new(types::Fd(self.sink), memory, length, part)
                .offset(offset)
                .build()
        };
        // SAFETY: both descriptors and the slot's registered memory stay valid
        // until `settle` has seen the completion, and no reference to that memory
        // is made meanwhile.
        let pushed = unsafe { ring.submission().push(&entry.user_data(index as u64)) };
        pushed.expect("the queue has room for every slot");
        self.in_flight += 1;
    }

    fn enter(&mut self, ring: &mut IoUring) -> Result<(), CallError> {
        loop {
            self.enters += 1;
            match ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => {}
                    errno => {
                        return Err(CallError::new("io_uring_enter", errno.unwrap_or(Errno::IO)));
                    }
                },
            }
        }
    }

    fn complete(&mut self, ring: &mut IoUring, index: usize, result: i32) -> Result<(), CallError> {
        self.in_flight -= 1;
        let completed = self.completions;
        let is_reading = self.slots[index].state == State::Reading;
        let call = if is_reading {
            "read by io_uring"
        } else {
            "write by io_uring"
        };
        let moved = match usize::try_from(result) {
            Ok(0) => return Err(CallError::no_progress(call)),
            Ok(moved) => moved,
            Err(_) => match Errno::from_raw_os_error(-result) {
                Errno::INTR | Errno::AGAIN => 0,
                errno => return Err(CallError::characteristic(call, errno, completed)),
            },
        };
        if moved > 0 {
            self.completions += 1;
        }
        let slot = &mut self.slots[index];
        slot.done += moved;
        if slot.done < slot.length {
            self.push(ring, index);
        } else if is_reading {
            slot.state = State::Full;
            slot.done = 0;
        } else {
            slot.state = State::Idle;
            self.written += slot.length as u64;
            self.write_from = slot.offset + slot.length as u64;
        }
        Ok(())
    }

    /// Waits for the transfers in flight, whatever their results, and returns whether all
    /// have ended.
    fn settle(&mut self, ring: &mut IoUring) -> bool {
        while self.in_flight > 0 {
            if self.enter(ring).is_err() {
                return false;
            }
            self.in_flight -= ring.completion().count();
        }
        true
    }
}
