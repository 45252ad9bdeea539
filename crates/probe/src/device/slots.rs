//! The slots of the driver's buffer: one is filled while others are in flight.

use std::ops::Range;

use rustix::io::Errno;

use super::Device;
use super::abi::QUEUE_MAX;
use crate::workloads::copy::mover::CallError;

/// Slots in order of use, which is also the order in which their transfers end:
/// there is one worker and one stream.
pub struct Slots {
    slot_bytes: usize,
    count: usize,
    queued: u64,
    ended: u64,
    /// Bytes that each slot in flight is to move.
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

    /// Returns the range of the buffer for the next slot to be queued.
    pub fn next(&self, length: usize) -> Range<usize> {
        self.range(self.queued, length)
    }

    fn range(&self, number: u64, length: usize) -> Range<usize> {
        let start = (number % self.count as u64) as usize * self.slot_bytes;
        start..start + length
    }

    pub fn queue(&mut self, length: usize) {
        assert!(!self.is_full(), "a slot in flight was queued again");
        self.lengths[(self.queued % self.count as u64) as usize] = length;
        self.queued += 1;
    }

    /// Waits for the oldest slot, and returns its range of the buffer.
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

/// Retries a call that signals interrupt, as [`Device::retry_after`] decides.
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
                .map_err(|errno| CallError::new(call, errno))?,
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
}
