//! A message to another process and back.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use toll_wire::{CrossingCpus, CrossingOperation, Failure};

use super::kind::Crossing;
use crate::failure::{self, OrFail};
use crate::fork::Child;

pub struct PingPong {
    to: OwnedFd,
    from: OwnedFd,
    /// Bytes of a message: 8 for an eventfd, otherwise 1.
    length: usize,
    _other: Child,
    _cpus: Cpus,
}

/// A message: the 8-byte number 1 for an eventfd, or its first byte.
const MESSAGE: [u8; 8] = 1_u64.to_ne_bytes();

impl PingPong {
    /// Starts the other process, and binds both to their CPUs.
    pub fn new(operation: CrossingOperation, cpus: CrossingCpus) -> Result<Self, Failure> {
        let cpus = Cpus::choose(cpus)?;
        let length = match operation {
            CrossingOperation::EventfdPingPong => MESSAGE.len(),
            _ => 1,
        };
        let [(to, from), (pong, ping)] = ends(operation)?;
        let other = Child::start(|| return_messages(&ping, &pong, length, cpus.others))
            .failed_to("measure a crossing by fork")?;
        cpus.bind_own()?;
        Ok(Self {
            to,
            from,
            length,
            _other: other,
            _cpus: cpus,
        })
    }
}

/// Opens the channel: for each process, the descriptors that it writes to and reads
/// from.
fn ends(operation: CrossingOperation) -> Result<[(OwnedFd, OwnedFd); 2], Failure> {
    let sockets = |(one, other): (OwnedFd, OwnedFd)| {
        let (near, far) = (one.try_clone()?, other.try_clone()?);
        Ok([(near, one), (far, other)])
    };
    let ends = || match operation {
        CrossingOperation::UnixPingPong => {
            let (one, other) = UnixStream::pair()?;
            sockets((one.into(), other.into()))
        }
        CrossingOperation::TcpPingPong => sockets(connected()?),
        CrossingOperation::EventfdPingPong => {
            let one = eventfd(0, EventfdFlags::CLOEXEC)?;
            let other = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok([(one.try_clone()?, other.try_clone()?), (other, one)])
        }
        _ => {
            let (ping, to) = pipe_with(PipeFlags::CLOEXEC)?;
            let (from, pong) = pipe_with(PipeFlags::CLOEXEC)?;
            Ok::<_, io::Error>([(to, from), (pong, ping)])
        }
    };
    ends().failed_to("measure a crossing by a channel")
}

/// Opens a TCP connection over loopback that sends each byte at once (TCP_NODELAY).
fn connected() -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    Ok((one.into(), other.into()))
}

impl Crossing for PingPong {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let mut answer = MESSAGE;
        for _ in 0..calls {
            write(&self.to, &MESSAGE[..self.length]).failed_to("measure a crossing by write")?;
            let arrived = read(&self.from, &mut answer[..self.length])
                .failed_to("measure a crossing by read")?;
            if arrived != self.length || answer != MESSAGE {
                return Err(failure::failed(
                    "cannot measure a crossing to another process: it has ended or sent a wrong \
                     message; see the kernel log",
                ));
            }
            answer = [0; MESSAGE.len()];
            answer[self.length..].copy_from_slice(&MESSAGE[self.length..]);
        }
        Ok(())
    }
}

/// The CPUs of the two ends. Dropping this value restores the probe's CPUs: in a
/// guest other trials may follow in this process.
pub struct Cpus {
    before: CpuSet,
    own: usize,
    pub others: usize,
}

impl Cpus {
    pub fn choose(cpus: CrossingCpus) -> Result<Self, Failure> {
        let before =
            sched_getaffinity(None).failed_to("measure a crossing by sched_getaffinity")?;
        let (own, others) = choose(&before, cpus)?;
        Ok(Self {
            before,
            own,
            others,
        })
    }

    pub fn bind_own(&self) -> Result<(), Failure> {
        bind(self.own).failed_to("measure a crossing by sched_setaffinity")
    }
}

impl Drop for Cpus {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

fn choose(allowed: &CpuSet, cpus: CrossingCpus) -> Result<(usize, usize), Failure> {
    let mut set = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = set.next().unwrap_or(0);
    match (cpus, set.next()) {
        (CrossingCpus::One, _) => Ok((first, first)),
        (CrossingCpus::Two, Some(second)) => Ok((first, second)),
        (CrossingCpus::Two, None) => Err(failure::unsupported(
            "cannot use two CPUs: the probe may use only one; allow the probe more",
        )),
    }
}

pub fn bind(cpu: usize) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// Runs the other process: returns messages until it is ended. It only makes system
/// calls.
fn return_messages(ping: &OwnedFd, pong: &OwnedFd, length: usize, cpu: usize) {
    let mut message = MESSAGE;
    let message = &mut message[..length];
    if bind(cpu).is_ok() {
        while read(ping, &mut *message) == Ok(length) && write(pong, message) == Ok(length) {}
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
