//! The hot pages, which are used again and again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use toll_wire::{CacheState, Failure, HotMapping, HugePages};

use crate::buffer::page_bytes;
use crate::failure::{self, OrFail};
use crate::mapping::Mapping;
use crate::page_cache;
use crate::random::split_mix;
use crate::workloads::memory::{Backing, Filling, Region};

/// The order in which pages are used, and their content, both derived from a
/// seed.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pages: usize,
    start: usize,
    stride: usize,
    seed: u64,
}

impl Order {
    /// Makes an order of `pages` pages.
    pub fn new(pages: usize, seed: u64) -> Self {
        assert!(pages > 0, "a working set has at least one page");
        let mut state = seed;
        let start = (split_mix(&mut state) % pages as u64) as usize;
        let mut stride = (split_mix(&mut state) % pages as u64) as usize;
        // Steps that share no divisor with the number of pages visit every page
        // once.
        while common_divisor(stride, pages) != 1 {
            stride = stride % pages + 1;
        }
        Self {
            pages,
            start,
            stride,
            seed,
        }
    }

    fn indices(self) -> impl Iterator<Item = usize> {
        let mut at = self.start;
        (0..self.pages).map(move |_| {
            let page = at;
            at = (at + self.stride) % self.pages;
            page
        })
    }

    fn value(self, page: usize) -> u32 {
        let mut state = self.seed ^ page as u64;
        (split_mix(&mut state) >> 32) as u32
    }

    pub fn sum(self) -> u64 {
        let values = (0..self.pages).map(|page| u64::from(self.value(page)));
        values.sum()
    }
}

fn common_divisor(mut one: usize, mut other: usize) -> usize {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

pub struct Hot {
    order: Order,
    pages: Pages,
}

enum Pages {
    Data(Region),
    Code(Code),
}

impl Hot {
    /// Maps pages that hold nothing yet and have no backing file.
    pub fn anonymous(order: Order) -> Result<Self, Failure> {
        Self::data(order, Backing::Anonymous)
    }

    fn data(order: Order, backing: Backing<'_>) -> Result<Self, Failure> {
        let length = order.pages * page_bytes();
        let region = Region::map(backing, length, HugePages::None, false)?;
        let pages = Pages::Data(region);
        Ok(Self { order, pages })
    }

    /// Writes each page: first its value, then random words, which swap cannot compress.
    pub fn fill(&self) {
        let Pages::Data(region) = &self.pages else {
            panic!("code comes from its file");
        };
        Filling::new(self.order.seed).write(region);
        let part = region.part(0, region.length());
        for page in self.order.indices() {
            part.write_word(page * page_bytes(), u64::from(self.order.value(page)));
        }
    }

    /// Writes the pages to the start of a file, drops them from memory, and
    /// maps them.
    pub fn of_file(
        order: Order,
        file: &File,
        mapping: HotMapping,
        is_code: bool,
    ) -> Result<Self, Failure> {
        let length = order.pages * page_bytes();
        lay(order, file, is_code).failed_to("write the hot pages")?;
        page_cache::establish(file, length as u64, CacheState::Cold)?;
        match (is_code, mapping) {
            (true, _) => {
                let pages = Pages::Code(Code::map(file.as_fd(), length)?);
                Ok(Self { order, pages })
            }
            (false, HotMapping::FileShared) => Self::data(order, Backing::Shared(file.as_fd())),
            (false, _) => Self::data(order, Backing::Private(file.as_fd())),
        }
    }

    /// Uses every page once and returns the sum of their values.
    pub fn use_all(&self) -> u64 {
        let page = page_bytes();
        match &self.pages {
            Pages::Data(region) => {
                let part = region.part(0, region.length());
                let words = self.order.indices().map(|at| part.read_word(at * page));
                words.sum()
            }
            Pages::Code(code) => {
                let values = self.order.indices().map(|at| code.call(at * page));
                values.map(u64::from).sum()
            }
        }
    }

    pub fn pages(&self) -> usize {
        self.order.pages
    }
}

fn lay(order: Order, file: &File, is_code: bool) -> io::Result<()> {
    const PAGES_PER_WRITE: usize = 256;
    let page = page_bytes();
    let mut block = vec![0; PAGES_PER_WRITE * page];
    let mut file = file;
    for first in (0..order.pages).step_by(PAGES_PER_WRITE) {
        let count = PAGES_PER_WRITE.min(order.pages - first);
        for (index, content) in block.chunks_exact_mut(page).take(count).enumerate() {
            let value = order.value(first + index);
            if is_code {
                content[..Code::LENGTH].copy_from_slice(&Code::returning(value))
            } else {
                content[..8].copy_from_slice(&u64::from(value).to_ne_bytes())
            }
        }
        file.write_all(&block[..count * page])?;
    }
    file.sync_all()
}

/// Pages of code, each of which begins with a function that returns a number.
struct Code(Mapping);

impl Code {
    const LENGTH: usize = 6;

    /// Encodes `mov eax, value; ret` (Intel 64 and IA-32 Architectures Software
    /// Developer's Manual, volume 2).
    fn returning(value: u32) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = value.to_le_bytes();
        [0xb8, a, b, c, d, 0xc3]
    }

    fn map(file: BorrowedFd<'_>, length: usize) -> Result<Self, Failure> {
        let access = ProtFlags::READ | ProtFlags::EXEC;
        let mapped = Mapping::of_file(file, 0, length, access, MapFlags::PRIVATE);
        mapped.map(Self).map_err(cannot_map)
    }

    /// Calls the function at `offset`, a multiple of the page size.
    fn call(&self, offset: usize) -> u32 {
        let address = self.0.at(offset, Self::LENGTH);
        // SAFETY: `lay` put a whole function of this signature at the address,
        // in a mapping that may be executed.
        let function: extern "C" fn() -> u32 = unsafe { std::mem::transmute(address) };
        function()
    }
}

fn cannot_map(errno: Errno) -> Failure {
    let advice = match errno {
        Errno::PERM | Errno::ACCESS => "choose a file system that is mounted without noexec",
        _ => "choose another set",
    };
    failure::unsupported_by("map the hot pages as code", &errno.into(), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_comes_by_every_page_once() {
        for pages in [1, 2, 7, 12, 4096, 15_360] {
            for seed in 0..20 {
                let mut seen: Vec<usize> = Order::new(pages, seed).indices().collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..pages), "{pages} from {seed}");
            }
        }
    }

    #[test]
    fn pages_add_up_to_the_same_whatever_they_are() {
        let order = Order::new(700, 5);
        let anonymous = Hot::anonymous(order).unwrap();
        assert_eq!(anonymous.use_all(), 0);
        anonymous.fill();
        assert_eq!(anonymous.use_all(), order.sum());
        for (mapping, is_code) in [
            (HotMapping::FilePrivate, false),
            (HotMapping::FileShared, false),
            (HotMapping::FilePrivate, true),
        ] {
            let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let hot = Hot::of_file(order, &file, mapping, is_code).unwrap();
            assert_eq!(hot.use_all(), order.sum(), "{mapping:?} {is_code}");
        }
    }
}
