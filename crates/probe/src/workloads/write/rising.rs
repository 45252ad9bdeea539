//! The published order of passes: rising buffer sizes, over one file descriptor.

use std::iter::successors;
use std::os::fd::BorrowedFd;

use toll_wire::{Durability, Failure, RISING_BYTES_MIN, WriteRequest};

use super::pass::write_pass;
use super::pattern::{Pattern, SEED_BEFORE};
use crate::buffer::checked_length;
use crate::failure;
use crate::workloads::copy::mover::CallError;

/// The passes before the timed one.
pub struct Rising {
    /// Bytes that differ from those of the timed pass, so that reading back shows which pass wrote
    /// last.
    content: Pattern,
    input_bytes: u64,
    sizes: Vec<u64>,
}

impl Rising {
    pub fn new(write: &WriteRequest) -> Result<Self, Failure> {
        check(write)?;
        let length = checked_length(write.buffer_bytes)?;
        let doubled = successors(Some(RISING_BYTES_MIN), |bytes| Some(bytes * 2));
        Ok(Self {
            content: Pattern::new(length, write.input_bytes, SEED_BEFORE),
            input_bytes: write.input_bytes,
            sizes: doubled
                .take_while(|size| *size < write.buffer_bytes)
                .collect(),
        })
    }

    /// Writes the passes before the timed pass; the first of them allocates the file's blocks.
    pub fn write(&self, fd: BorrowedFd<'_>) -> Result<(), CallError> {
        for size in &self.sizes {
            write_pass(fd, self.input_bytes, |offset| {
                let left = (self.input_bytes - offset).min(size - offset % size);
                self.content.piece(offset, left)
            })?;
        }
        Ok(())
    }
}

fn check(write: &WriteRequest) -> Result<(), Failure> {
    let bytes = write.buffer_bytes;
    let obstacle = if !matches!(write.durability, Durability::None | Durability::OSync) {
        "as published, they are written with or without O_SYNC; choose o-sync or none".to_owned()
    } else if !bytes.is_power_of_two() || bytes < RISING_BYTES_MIN {
        format!(
            "buffers double from {RISING_BYTES_MIN} bytes and never have {bytes}; choose one of \
             these sizes"
        )
    } else {
        return Ok(());
    };
    Err(failure::unsupported(format!(
        "cannot write in rising passes: {obstacle}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rise_up_to_the_one_that_is_timed() {
        let sizes = |buffer_bytes| {
            let write = WriteRequest {
                buffer_bytes,
                ..WriteRequest::default()
            };
            Rising::new(&write).map(|rising| rising.sizes)
        };
        assert_eq!(sizes(256).unwrap(), [0; 0]);
        assert_eq!(sizes(2048).unwrap(), [256, 512, 1024]);
        for bytes in [128, 1000] {
            assert!(sizes(bytes).is_err(), "{bytes}");
        }
    }
}
