//! The chase workload: loads that each wait for the previous one.
//!
//! Every cache line of a buffer holds the address of another, in one random
//! cycle over all of them. A load cannot begin before its address has arrived,
//! so the time per load is the latency of the place that holds the lines: a
//! level of cache, or memory. Beyond the reach of the TLB the page-table walk
//! adds to it. The random order defeats the prefetchers.
//!
//! The method is that of `lat_mem_rd` (McVoy and Staelin, "lmbench: portable
//! tools for performance analysis", USENIX 1996), with a random cycle in place
//! of a stride.

use toll_wire::{
    ChaseRequest, ChaseStride, Failure, HugePages, LINE_BYTES, MEMORY_BYTES_MAX, Request, Sample,
    TrialData,
};

use crate::failure;
use crate::meter::{Meter, put};
use crate::random::shuffle;
use crate::trial::Trial;
use crate::usage::Scope;
use crate::workloads::memory::{Backing, HUGE_PAGE_BYTES, Region, Residency, restrict_huge_pages};

const LINE: usize = LINE_BYTES as usize;
const PAGE_LINES: u32 = 64;

/// Builds the cycle once; each iteration continues where the last one stopped.
pub fn run(request: &Request, chase: &ChaseRequest) -> Result<TrialData, Failure> {
    restrict_huge_pages(chase.huge_pages)?;
    let mut cycle = Cycle::new(chase)?;
    let trial = Trial::new(request, Scope::Thread);
    // Building the cycle leaves the caches in an arbitrary state.
    cycle.follow(chase.accesses.min(cycle.lines() as u64));
    trial.repeat(|meter| cycle.sample(chase.accesses, meter))
}

/// A buffer whose lines form one cycle, and the current position in it.
struct Cycle {
    region: Region,
    length: usize,
    /// Offsets of the lines, in units of lines and in the order of the cycle.
    order: Vec<u32>,
    /// Loads made since the cycle was built.
    position: u64,
    /// Byte offset of the next line.
    offset: u64,
}

impl Cycle {
    fn new(request: &ChaseRequest) -> Result<Self, Failure> {
        let length = checked_length(request)?;
        // The kernel uses a huge page only where a whole one fits.
        let mapped = match request.huge_pages {
            HugePages::Madvise => length.next_multiple_of(HUGE_PAGE_BYTES),
            _ => length,
        };
        let region = Region::map(Backing::Anonymous, mapped, request.huge_pages, false)?;
        let lines = u32::try_from(length / LINE).expect("the length is limited");
        let mut order: Vec<u32> = match request.stride {
            ChaseStride::Line => (0..lines).collect(),
            ChaseStride::Page => (0..lines / PAGE_LINES)
                .map(|page| page * PAGE_LINES + page % PAGE_LINES)
                .collect(),
        };
        shuffle(&mut order, request.seed);
        let all = region.part(0, length);
        for (place, line) in order.iter().enumerate() {
            let next = order[(place + 1) % order.len()];
            all.write_word(*line as usize * LINE, u64::from(next) * LINE_BYTES);
        }
        let offset = u64::from(order[0]) * LINE_BYTES;
        Ok(Self {
            region,
            length,
            order,
            position: 0,
            offset,
        })
    }

    fn lines(&self) -> usize {
        self.order.len()
    }

    #[inline(never)]
    fn follow(&mut self, accesses: u64) {
        let all = self.region.part(0, self.region.length());
        let mut offset = self.offset;
        for _ in 0..accesses {
            // SAFETY: `new` made every word of the cycle the offset of another,
            // and nothing else uses this memory.
            offset = unsafe { all.read_word_unchecked(offset as usize) };
        }
        self.offset = offset;
        self.position += accesses;
    }

    fn sample(&mut self, accesses: u64, meter: &mut Meter) -> Result<Sample, Failure> {
        let ((), measured) = meter.measure(|| self.follow(accesses))?;
        self.check()?;
        let residency = Residency::around(self.region.address())?;
        let latency = measured.duration_ns as f64 / accesses as f64;
        let mut sample = measured.into_sample();
        for (name, value) in [
            ("accesses", accesses as f64),
            ("buffer_bytes", self.length as f64),
            ("huge_page_bytes", residency.huge as f64),
            ("latency_ns", latency),
        ] {
            put(&mut sample, name, value);
        }
        Ok(sample)
    }

    /// Checks that the chase is at the line to which `position` loads lead.
    fn check(&self) -> Result<(), Failure> {
        let place = (self.position % self.order.len() as u64) as usize;
        let expected = u64::from(self.order[place]) * LINE_BYTES;
        if self.offset == expected {
            return Ok(());
        }
        Err(failure::failed(format!(
            "cannot trust the chase: it ended at byte {} instead of {expected}; memory is broken",
            self.offset
        )))
    }
}

fn checked_length(request: &ChaseRequest) -> Result<usize, Failure> {
    let least = match request.stride {
        ChaseStride::Line => 2 * LINE_BYTES,
        ChaseStride::Page => 2 * u64::from(PAGE_LINES) * LINE_BYTES,
    };
    let fits = (least..=MEMORY_BYTES_MAX).contains(&request.size_bytes)
        && request.size_bytes.is_multiple_of(LINE_BYTES)
        && request.accesses > 0;
    match usize::try_from(request.size_bytes) {
        Ok(length) if fits => Ok(length),
        _ => Err(failure::instrument(format!(
            "cannot chase {} times through {} bytes: it needs at least one access, and {} to \
             {MEMORY_BYTES_MAX} bytes in whole lines of {LINE_BYTES}; choose another size",
            request.accesses, request.size_bytes, least
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chase(size_bytes: u64) -> ChaseRequest {
        ChaseRequest {
            size_bytes,
            accesses: 1,
            seed: 7,
            ..ChaseRequest::default()
        }
    }

    #[test]
    fn the_cycle_leads_through_every_line_once_or_through_one_of_each_page() {
        let of_pages = |pages| ChaseRequest {
            stride: ChaseStride::Page,
            ..chase(pages * 4096)
        };
        let by_lines = [2, 3, 64, 1_000].map(|lines| (lines, chase(lines * 64)));
        let by_pages = [2, 65, 300].map(|pages| (pages, of_pages(pages)));
        for (lines, request) in by_lines.into_iter().chain(by_pages) {
            let mut cycle = Cycle::new(&request).unwrap();
            let start = cycle.offset;
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..lines {
                assert!(seen.insert(cycle.offset), "a line was visited twice");
                cycle.follow(1);
                cycle.check().unwrap();
            }
            assert_eq!((cycle.offset, seen.len() as u64), (start, lines));
        }
    }

    #[test]
    fn a_chase_that_ends_elsewhere_is_noticed() {
        let mut cycle = Cycle::new(&chase(640)).unwrap();
        cycle.follow(3);
        cycle.position += 1;
        assert!(cycle.check().is_err());
    }

    #[test]
    fn what_is_no_cycle_is_refused() {
        let page = ChaseRequest {
            stride: ChaseStride::Page,
            ..chase(4096)
        };
        assert!(Cycle::new(&page).is_err());
        for size_bytes in [0, 64, 100, MEMORY_BYTES_MAX + 64] {
            assert!(Cycle::new(&chase(size_bytes)).is_err(), "{size_bytes}");
        }
        let none = ChaseRequest {
            accesses: 0,
            ..chase(128)
        };
        assert!(Cycle::new(&none).is_err());
    }
}
