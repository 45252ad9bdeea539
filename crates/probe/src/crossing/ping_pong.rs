//! A byte to another process and back.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use toll_wire::{CrossingCpus, Failure};

use super::{Crossing, crossing_failed};
use crate::failure;
use crate::fork::Child;

pub struct PingPong {
    to: OwnedFd,
    from: OwnedFd,
    affinity_before: CpuSet,
    _other: Child,
}

impl PingPong {
    /// Starts the other process, and binds both to their CPUs.
    pub fn new(cpus: CrossingCpus) -> Result<Self, Failure> {
        let affinity_before = sched_getaffinity(None)
            .map_err(|errno| crossing_failed("sched_getaffinity", &errno.into()))?;
        let (own, others) = choose(&affinity_before, cpus)?;
        let pipe = || {
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| crossing_failed("pipe", &errno.into()))
        };
        let (ping, to) = pipe()?;
        let (from, pong) = pipe()?;
        let other = Child::start(|| return_bytes(&ping, &pong, others))
            .map_err(|error| crossing_failed("fork", &error))?;
        // From here on it is ended whatever happens.
        let pair = Self {
            to,
            from,
            affinity_before,
            _other: other,
        };
        bind(own).map_err(|errno| crossing_failed("sched_setaffinity", &errno.into()))?;
        Ok(pair)
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        // In a guest other trials may follow in this process.
        let _ = sched_setaffinity(None, &self.affinity_before);
    }
}

impl Crossing for PingPong {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let mut byte = [0];
        for _ in 0..calls {
            write(&self.to, &byte).map_err(|errno| crossing_failed("write", &errno.into()))?;
            let arrived = read(&self.from, &mut byte)
                .map_err(|errno| crossing_failed("read", &errno.into()))?;
            if arrived == 0 {
                return Err(failure::failed(
                    "cannot cross to another process: it has ended; see the kernel log",
                ));
            }
        }
        Ok(())
    }
}

fn choose(allowed: &CpuSet, cpus: CrossingCpus) -> Result<(usize, usize), Failure> {
    let mut set = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = set.next().unwrap_or(0);
    match (cpus, set.next()) {
        (CrossingCpus::One, _) => Ok((first, first)),
        (CrossingCpus::Two, Some(second)) => Ok((first, second)),
        (CrossingCpus::Two, None) => Err(failure::unsupported(
            "cannot use two CPUs: the probe may use one; allow it more",
        )),
    }
}

fn bind(cpu: usize) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// What the other process does, until it is ended. It makes system calls alone.
fn return_bytes(ping: &OwnedFd, pong: &OwnedFd, cpu: usize) {
    let mut byte = [0];
    if bind(cpu).is_ok() {
        while read(ping.as_fd(), &mut byte) == Ok(1) && write(pong.as_fd(), &byte) == Ok(1) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_are_two_of_those_that_are_allowed() {
        let mut allowed = CpuSet::new();
        allowed.set(3);
        assert_eq!(choose(&allowed, CrossingCpus::One).unwrap(), (3, 3));
        assert!(choose(&allowed, CrossingCpus::Two).is_err());
        allowed.set(5);
        assert_eq!(choose(&allowed, CrossingCpus::Two).unwrap(), (3, 5));
    }
}
