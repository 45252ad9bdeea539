//! Stand-in for counting in the kernel, for builds without the feature `bpf`.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use toll_calls::tally::Tally;

/// This type is never constructed.
pub struct Counter(());

#[derive(Clone, Copy)]
pub struct Marker(());

const NONE_IS_MADE: &str = "without bpf no counter is ever made";

pub enum Scope<'a> {
    Marked,
    MarkedRegions,
    Cgroup(BorrowedFd<'a>),
}

pub struct Counted {
    pub tally: Tally,
    pub notes: Vec<String>,
    pub overhead_ns: Option<f64>,
}

impl Counter {
    pub fn new(_counts_all: bool, _scope: Scope<'_>) -> Result<Self, String> {
        Err("this toll was built without bpf; build it with --features bpf".into())
    }

    pub fn marker(&self) -> Marker {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn mark(&mut self, _process: BorrowedFd<'_>, _program: &str) -> io::Result<()> {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn alive(&self) -> u64 {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn has_counted(&self) -> bool {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn wait(&mut self, _until: Option<BorrowedFd<'_>>, _nap: Duration) -> io::Result<()> {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn so_far(&mut self) -> &Tally {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn finish(self) -> Result<Counted, String> {
        unreachable!("{NONE_IS_MADE}")
    }
}

impl Marker {
    pub fn mark_self(&self) -> io::Result<()> {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn mark_process(&self, _id: u32) -> io::Result<()> {
        unreachable!("{NONE_IS_MADE}")
    }

    pub fn mark_programs_of(&self, _id: u32) -> io::Result<()> {
        unreachable!("{NONE_IS_MADE}")
    }
}
