//! The parts that the driver's buffer is cut into, so that one is filled while
//! others are under way.

use std::ops::Range;

use rustix::io::Errno;

use super::Device;
use super::abi::{BUFFER_BYTES_MAX, QUEUE_MAX};
use crate::copy::mover::CallError;

/// Bytes under way that a worker never runs dry with: what a system call and a
/// copy of as many bytes take is then little beside a round through the queue.
const UNDER_WAY_BYTES: u32 = 512 << 10;

pub fn count(slot_bytes: u32) -> u32 {
    let fitting = BUFFER_BYTES_MAX / slot_bytes;
    (UNDER_WAY_BYTES / slot_bytes)
        .clamp(4, QUEUE_MAX as u32)
        .min(fitting)
        .max(2)
}

/// Slots in the order of their use, which is the order in which their transfers
/// end: there is one worker and one stream.
pub struct Slots {
    slot_bytes: usize,
    count: usize,
    queued: u64,
    ended: u64,
    /// Bytes that each of those under way is to move.
    lengths: Vec<usize>,
}

impl Slots {
    pub fn new(slot_bytes: usize, count: usize) -> Self {
        assert!((1..=QUEUE_MAX).contains(&count), "{count} slots");
        Self {
            slot_bytes,
            count,
            queued: 0,
            ended: 0,
            lengths: vec![0; count],
        }
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub fn is_idle(&self) -> bool {
        self.queued == self.ended
    }

    pub fn is_full(&self) -> bool {
        self.queued - self.ended == self.count as u64
    }

    /// Where the next slot to be queued lies in the buffer.
    pub fn next(&self, length: usize) -> Range<usize> {
        self.range(self.queued, length)
    }

    fn range(&self, number: u64, length: usize) -> Range<usize> {
        let start = (number % self.count as u64) as usize * self.slot_bytes;
        start..start + length
    }

    pub fn queue(&mut self, length: usize) {
        assert!(!self.is_full(), "a slot under way was queued again");
        self.lengths[(self.queued % self.count as u64) as usize] = length;
        self.queued += 1;
    }

    /// Waits for the oldest slot; yields what it holds.
    pub fn reap(&mut self, device: &Device, call: &'static str) -> Result<Range<usize>, CallError> {
        let moved = until_done(device, call, || device.reap())?;
        let length = self.lengths[(self.ended % self.count as u64) as usize];
        if moved != length as u64 {
            return Err(CallError::no_progress(call));
        }
        let range = self.range(self.ended, length);
        self.ended += 1;
        Ok(range)
    }
}

/// Makes a call until no signal interrupts it.
#[inline]
pub fn until_done<T>(
    device: &Device,
    call: &'static str,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, CallError> {
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(errno) => device
                .retry_after(errno)
                .map_err(|errno| CallError::of(call, errno))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_each_other_and_come_round() {
        let mut slots = Slots::new(100, 3);
        for number in 0..7 {
            assert_eq!(slots.next(60).start, number % 3 * 100);
            assert_eq!(slots.next(60).len(), 60);
            slots.queue(60);
            slots.ended += 1;
        }
        assert!(slots.is_idle());
        for _ in 0..3 {
            assert!(!slots.is_full());
            slots.queue(1);
        }
        assert!(slots.is_full());
    }

    #[test]
    fn there_are_two_slots_at_least_and_never_more_than_the_queue_takes() {
        for (slot_bytes, expected) in [(512, 64), (64 << 10, 8), (1 << 20, 4), (16 << 20, 2)] {
            assert_eq!(count(slot_bytes), expected, "{slot_bytes}");
        }
    }
}
