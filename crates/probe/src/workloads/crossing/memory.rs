//! Crossings that map pages, and passes over memory to compare them with.

use std::hint::black_box;
use std::os::fd::AsFd;

use rustix::mm::MapFlags;
use toll_wire::{CrossingOperation, CrossingRequest, FAULT_AROUND_BYTES, Failure, HugePages};

use super::file::WarmFile;
use super::kind::{Crossing, check};
use crate::buffer::page_bytes;
use crate::failure::{self, OrFail};
use crate::mapping::{Mapping, READ_WRITE};
use crate::workloads::memory::{Backing, HUGE_PAGE_BYTES, Region, Residency};

/// Largest number of bytes that one iteration faults in.
const FAULT_BYTES_MAX: u64 = 1 << 30;

pub fn mmap_munmap(calls: u64) -> Result<(), Failure> {
    let page = page_bytes();
    for _ in 0..calls {
        let mapping = Mapping::anonymous(page, READ_WRITE, MapFlags::empty())
            .failed_to("measure a crossing by mmap")?;
        black_box(mapping.start());
    }
    Ok(())
}

/// First touches of huge pages or of a file's pages.
pub struct LargeFault {
    file: Option<WarmFile>,
    stride: usize,
    region: Option<Region>,
    sum: u64,
}

impl LargeFault {
    pub fn new(request: &CrossingRequest) -> Result<Self, Failure> {
        let is_of_file = request.operation == CrossingOperation::FilePageFault;
        let stride = if is_of_file {
            FAULT_AROUND_BYTES as usize
        } else {
            HUGE_PAGE_BYTES
        };
        let bytes = request.calls.saturating_mul(stride as u64);
        if bytes > FAULT_BYTES_MAX {
            return Err(failure::instrument(format!(
                "cannot fault in {bytes} bytes: an iteration takes at most {FAULT_BYTES_MAX}; \
                 choose fewer calls"
            )));
        }
        let file = || WarmFile::of_span(&request.directory, stride as u64, bytes);
        Ok(Self {
            file: is_of_file.then(file).transpose()?,
            stride,
            region: None,
            sum: 0,
        })
    }

    fn expected(&self, calls: u64) -> u64 {
        let byte = |call: u64| match &self.file {
            Some(file) => u64::from(file.content(call * self.stride as u64)[0]),
            None => 1,
        };
        (0..calls).map(byte).sum()
    }
}

impl Crossing for LargeFault {
    fn prepare(&mut self, calls: u64) -> Result<(), Failure> {
        let length = calls as usize * self.stride;
        let region = match &self.file {
            Some(warm) => {
                let backing = Backing::Private(warm.file.as_fd());
                Region::map(backing, length, HugePages::System, false)?
            }
            None => Region::map(Backing::Anonymous, length, HugePages::Madvise, false)?,
        };
        self.region = Some(region);
        Ok(())
    }

    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let region = self.region.as_ref().expect("the pages are prepared");
        let bytes = region.part(0, region.length());
        self.sum = 0;
        for call in 0..calls as usize {
            let place = call * self.stride;
            if self.file.is_none() {
                bytes.write(place, 1);
            }
            self.sum += u64::from(bytes.read(place));
        }
        Ok(())
    }

    fn settle(&mut self, calls: u64) -> Result<(), Failure> {
        let region = self.region.take().expect("the pages are prepared");
        check(self.sum == self.expected(calls), "a page holds wrong bytes")?;
        let wanted = calls * HUGE_PAGE_BYTES as u64;
        if self.file.is_none() && Residency::around(region.address())?.huge < wanted {
            return Err(failure::unsupported(
                "cannot fault in huge pages: the kernel gave smaller ones; free memory, or set \
                 /sys/kernel/mm/transparent_hugepage/enabled to madvise",
            ));
        }
        Ok(())
    }
}

/// Passes over buffers that were touched before.
pub struct MemoryPass {
    operation: CrossingOperation,
    source: Vec<u64>,
    target: Vec<u64>,
    sum: u64,
}

/// Value of each word of the source, and of the target before a pass.
const WORD: u64 = 0x0101_0101_0101_0101;
const WORD_BEFORE: u64 = 0x0202_0202_0202_0202;

impl MemoryPass {
    pub fn new(request: &CrossingRequest) -> Self {
        let words = (request.size_bytes as usize / size_of::<u64>()).max(1);
        let target_words = match request.operation {
            CrossingOperation::MemoryRead => 0,
            _ => words,
        };
        Self {
            operation: request.operation,
            source: vec![WORD; words],
            target: vec![WORD_BEFORE; target_words],
            sum: 0,
        }
    }
}

impl Crossing for MemoryPass {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            let source = black_box(self.source.as_slice());
            let target = black_box(self.target.as_mut_slice());
            match self.operation {
                CrossingOperation::MemoryRead => {
                    self.sum = source.iter().fold(0, |sum, word| sum.wrapping_add(*word));
                }
                CrossingOperation::MemoryFill => target.fill(WORD),
                _ => target.copy_from_slice(source),
            }
        }
        Ok(())
    }

    fn settle(&mut self, _calls: u64) -> Result<(), Failure> {
        let is_right = match self.operation {
            CrossingOperation::MemoryRead => {
                self.sum == WORD.wrapping_mul(self.source.len() as u64)
            }
            _ => self.target.iter().all(|word| *word == WORD),
        };
        if is_right {
            Ok(())
        } else {
            Err(failure::failed(
                "cannot trust the pass over memory: a buffer holds wrong values; memory is broken",
            ))
        }
    }
}
