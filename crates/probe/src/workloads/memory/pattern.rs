//! The published access function, and a prediction of its effects.

use std::hint::black_box;

use toll_wire::{AccessOrder, Addressing, LINE_BYTES, MemoryRequest, WORKING_SET_LINES};

use super::region::Region;
use crate::buffer::page_bytes;
use crate::random::split_mix;

pub const PASSES: usize = 16;
/// One line in this many is written; the others are read.
const LINES_PER_WRITE: usize = 8;

const LINE: usize = LINE_BYTES as usize;
const LINES: usize = WORKING_SET_LINES as usize;
/// Bytes from the first byte accessed in a working set to the last, both
/// included.
const SPAN: usize = (LINES - 1) * LINE + 1;

/// Which lines are accessed, and in which order.
///
/// A *place* is the unit that the addressing distinguishes: a line in corrected addressing, a byte
/// in published addressing.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    addressing: Addressing,
    order: AccessOrder,
    lines: u64,
    steps: u64,
    seed: u64,
}

impl Pattern {
    pub fn new(request: &MemoryRequest) -> Self {
        let lines = request.buffer_bytes / LINE_BYTES;
        assert!(lines > WORKING_SET_LINES, "a buffer of {lines} lines");
        Self {
            addressing: request.addressing,
            order: request.order,
            lines,
            steps: request.steps,
            seed: request.seed,
        }
    }

    pub fn accesses(&self) -> u64 {
        self.steps * (PASSES * LINES) as u64
    }

    pub fn places(&self) -> usize {
        let bases = (self.lines - WORKING_SET_LINES) as usize;
        bases + (LINES - 1) * self.places_per_line()
    }

    pub fn place_bytes(&self) -> usize {
        LINE / self.places_per_line()
    }

    pub fn reachable_pages(&self) -> usize {
        (self.places() * self.place_bytes()).div_ceil(page_bytes())
    }

    fn places_per_line(&self) -> usize {
        match self.addressing {
            Addressing::Published => LINE,
            Addressing::Corrected => 1,
        }
    }

    fn bases(&self) -> Bases {
        Bases {
            order: self.order,
            limit: self.lines - WORKING_SET_LINES,
            next: 0,
            state: self.seed,
        }
    }
}

/// Draws the base of each step's working set. Both orders draw the random
/// number, so that both pay for it.
struct Bases {
    order: AccessOrder,
    limit: u64,
    next: u64,
    state: u64,
}

impl Bases {
    #[inline(always)]
    fn draw(&mut self) -> usize {
        let drawn = black_box(split_mix(&mut self.state) % self.limit);
        let base = match self.order {
            AccessOrder::Random => drawn,
            AccessOrder::Sequential => self.next,
        };
        self.next = base + WORKING_SET_LINES;
        if self.next >= self.limit {
            self.next = 0;
        }
        base as usize
    }
}

/// Does the timed work and returns the sum of all bytes read. Summing costs one
/// addition per read, the same in both orders, and allows the reads to be
/// checked.
///
/// Remains a separate function so that its machine code can be found and
/// inspected: eight lines are one store and seven loads.
#[inline(never)]
pub fn access(region: &Region, pattern: &Pattern) -> u64 {
    let mut bases = pattern.bases();
    let mut sum = 0;
    for _ in 0..pattern.steps {
        let set = region.part(bases.draw() * pattern.place_bytes(), SPAN);
        for _ in 0..PASSES {
            for group in 0..LINES / LINES_PER_WRITE {
                let first = group * LINES_PER_WRITE * LINE;
                set.write(first, 1);
                for line in 1..LINES_PER_WRITE {
                    sum += u64::from(set.read(first + line * LINE));
                }
            }
        }
    }
    sum
}

/// The bytes that a buffer is filled with. Word `n` depends only on the seed
/// and `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    seed: u64,
}

impl Filling {
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    pub fn word(self, offset: usize) -> u64 {
        let mut state = self.seed ^ (offset as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        split_mix(&mut state)
    }

    fn byte(self, offset: usize) -> u8 {
        self.word(offset).to_ne_bytes()[offset % 8]
    }

    pub fn write(self, region: &Region) {
        let part = region.part(0, region.length());
        for offset in (0..part.length()).step_by(8) {
            part.write_word(offset, self.word(offset));
        }
    }
}

/// The content of each place: 1 once it was written, otherwise its previous
/// content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    written: Vec<u64>,
    /// The previous content; `None` for zeros.
    filling: Option<Filling>,
    place_bytes: usize,
}

impl Places {
    /// Starts with no place written.
    pub fn new(pattern: &Pattern, filling: Option<Filling>) -> Self {
        Self {
            written: vec![0; pattern.places().div_ceil(64)],
            filling,
            place_bytes: pattern.place_bytes(),
        }
    }

    pub fn byte(&self, place: usize) -> u8 {
        match self.written[place / 64] >> (place % 64) & 1 {
            0 => self
                .filling
                .map_or(0, |filling| filling.byte(place * self.place_bytes)),
            _ => 1,
        }
    }

    pub fn set(&mut self, place: usize) {
        self.written[place / 64] |= 1 << (place % 64);
    }
}

/// Returns what [`access`] returns if the buffer holds `places` before, and
/// updates `places` to the buffer's content afterwards. Writes and reads of one
/// step never hit the same place, so all of its passes read the same.
pub fn predict(pattern: &Pattern, places: &mut Places) -> u64 {
    let mut bases = pattern.bases();
    let mut sum = 0;
    for _ in 0..pattern.steps {
        let base = bases.draw();
        let mut read = 0;
        for line in 0..LINES {
            let place = base + line * pattern.places_per_line();
            if line.is_multiple_of(LINES_PER_WRITE) {
                places.set(place);
            } else {
                read += u64::from(places.byte(place));
            }
        }
        sum += read * PASSES as u64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use toll_wire::HugePages;

    use super::*;
    use crate::workloads::memory::region::Backing;

    fn pattern(addressing: Addressing, order: AccessOrder, steps: u64) -> Pattern {
        Pattern::new(&MemoryRequest {
            addressing,
            order,
            buffer_bytes: 1 << 20,
            steps,
            seed: 42,
            ..MemoryRequest::default()
        })
    }

    /// Returns the offsets written, computed as in the published C code.
    fn offsets_written(pattern: &Pattern) -> std::collections::BTreeSet<usize> {
        let mut bases = pattern.bases();
        let mut written = std::collections::BTreeSet::new();
        for _ in 0..pattern.steps {
            let ws_base = bases.draw();
            for i in (0..512).step_by(8) {
                written.insert(match pattern.addressing {
                    Addressing::Published => ws_base + i * 64,
                    Addressing::Corrected => (ws_base + i) * 64,
                });
            }
        }
        written
    }

    #[test]
    fn the_prediction_is_what_the_accesses_do() {
        for addressing in [Addressing::Published, Addressing::Corrected] {
            for order in [AccessOrder::Sequential, AccessOrder::Random] {
                let pattern = pattern(addressing, order, 100);
                let region =
                    Region::map(Backing::Anonymous, 1 << 20, HugePages::None, false).unwrap();
                let mut places = Places::new(&pattern, None);
                let expected = predict(&pattern, &mut places);
                assert_eq!(access(&region, &pattern), expected);
                let written = offsets_written(&pattern);
                for offset in 0..1 << 20 {
                    let is_written = written.contains(&offset);
                    assert_eq!(region.byte(offset) == 1, is_written, "{pattern:?} {offset}");
                    if offset % pattern.place_bytes() == 0
                        && offset / pattern.place_bytes() < pattern.places()
                    {
                        let place = offset / pattern.place_bytes();
                        assert_eq!(places.byte(place) == 1, is_written, "{pattern:?} {offset}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_prediction_knows_what_the_buffer_was_filled_with() {
        for addressing in [Addressing::Published, Addressing::Corrected] {
            let pattern = pattern(addressing, AccessOrder::Random, 100);
            let region = Region::map(Backing::Anonymous, 1 << 20, HugePages::None, false).unwrap();
            let filling = Filling::new(7);
            filling.write(&region);
            let mut places = Places::new(&pattern, Some(filling));
            let expected = predict(&pattern, &mut places);
            assert_eq!(access(&region, &pattern), expected);
            for place in 0..pattern.places() {
                let byte = region.byte(place * pattern.place_bytes());
                assert_eq!(byte, places.byte(place), "{pattern:?} {place}");
            }
        }
    }

    #[test]
    fn the_published_addressing_stays_in_a_64th_and_one_working_set() {
        let published = pattern(Addressing::Published, AccessOrder::Random, 1_000);
        let last = *offsets_written(&published).last().unwrap();
        assert!(last < (1 << 20) / 64 + SPAN, "{last}");
        let corrected = pattern(Addressing::Corrected, AccessOrder::Random, 1_000);
        assert!(*offsets_written(&corrected).last().unwrap() > 900_000);
    }

    #[test]
    fn the_sequential_order_moves_by_a_working_set_and_begins_again() {
        let pattern = pattern(Addressing::Corrected, AccessOrder::Sequential, 0);
        let mut bases = pattern.bases();
        let drawn: Vec<usize> = (0..33).map(|_| bases.draw()).collect();
        // Of 16,384 lines those below 15,872 can be bases: 31 sets.
        assert_eq!((drawn[0], drawn[1], drawn[30]), (0, 512, 15_360));
        assert_eq!((drawn[31], drawn[32]), (0, 512));
    }
}
