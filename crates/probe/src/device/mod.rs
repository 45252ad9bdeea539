//! The devices `/dev/master_device` and `/dev/slave_device` of the modules
//! `master` and `slave` (Virtual Device): two ends of a TCP connection that the
//! kernel makes, through which a file is sent.
//!
//! `abi.rs` has the layouts of `kernel/uapi/toll_device.h`, and this file the requests. `setup.rs`
//! has their sizes, `mapping.rs` mapped memory, and `send.rs` and `receive.rs` the ways to move a
//! file. `published.rs` has the report's ways that map memory.

mod abi;
mod mapping;
mod memory;
mod published;
mod receive;
mod send;
mod setup;
mod slots;
mod target;

use std::cell::Cell;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::ioctl::Opcode;
use rustix::mm::MapFlags;
use toll_wire::SocketMode;

pub use self::abi::{BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, Page, Statistics};
use self::abi::{Completion, Endpoint, Settings, Transfer};
pub use self::mapping::Access;
use self::mapping::last_errno;
pub use self::memory::Connection;
pub use self::receive::read_full;
pub use self::send::write_all;
pub use self::setup::{Setup, Way};
use crate::buffer::page_bytes;
use crate::driver;
use crate::mapping::{Mapping, READ_WRITE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Master,
    Slave,
}

impl End {
    pub(crate) fn module(self) -> &'static CStr {
        match self {
            Self::Master => driver::MASTER,
            Self::Slave => driver::SLAVE,
        }
    }

    pub fn module_name(self) -> &'static str {
        self.module().to_str().expect("the names are ASCII")
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::Master => "/dev/master_device",
            Self::Slave => "/dev/slave_device",
        }
    }
}

/// An open device with its own connection.
pub struct Device {
    file: File,
    /// Bytes that had been moved when a wait was last interrupted.
    moved_before: Cell<Option<u64>>,
}

impl Device {
    /// Opens a device; ENOENT if its module is not inserted.
    pub fn open(end: End) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(end.path())?;
        Ok(Self {
            file,
            moved_before: Cell::new(None),
        })
    }

    /// Configures the device; call it before there is a connection. The module's
    /// setting of TCP_NODELAY is kept.
    pub fn configure(&self, setup: &Setup) -> Result<(), Errno> {
        let mut settings = Settings::default();
        self.ask(abi::GET_SETTINGS, &mut settings)?;
        settings.buffer_bytes = setup.driver_bytes();
        settings.mode = match setup.mode {
            SocketMode::Sync => abi::SYNC,
            SocketMode::Fasync => abi::FASYNC,
            SocketMode::Async => abi::ASYNC,
        };
        self.ask(abi::SET_SETTINGS, &mut settings)
    }

    /// Makes a master listen on an address. Returns the address, with the port that was chosen if
    /// the address had none.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr, Errno> {
        let mut endpoint = endpoint(address, None);
        self.ask(abi::LISTEN, &mut endpoint)?;
        Ok(SocketAddr::new(address.ip(), endpoint.port))
    }

    /// Makes a master wait for its slave; ETIMEDOUT if none connects within the limit.
    pub fn accept(&self, limit: Option<Duration>) -> Result<(), Errno> {
        let mut endpoint = Endpoint {
            timeout_ms: milliseconds(limit),
            ..Endpoint::default()
        };
        self.ask(abi::ACCEPT, &mut endpoint)
    }

    pub fn connect(&self, address: SocketAddr, limit: Option<Duration>) -> Result<(), Errno> {
        self.ask(abi::CONNECT, &mut endpoint(address, limit))
    }

    /// Sends a part of the driver's buffer and returns the bytes sent. In asynchronous
    /// mode queues the part and returns 0.
    #[inline]
    pub fn send(&self, offset: usize, length: usize) -> Result<u64, Errno> {
        self.transfer(abi::SEND, offset, length)
    }

    /// Fills a part of the driver's buffer and returns the bytes received. In
    /// asynchronous mode queues the part and returns 0.
    #[inline]
    pub fn receive(&self, offset: usize, length: usize) -> Result<u64, Errno> {
        self.transfer(abi::RECEIVE, offset, length)
    }

    /// Sends bytes by the published request and returns how many were sent. The bytes start at the
    /// beginning of a page of the driver's buffer: the page in which the bytes sent so far end.
    #[inline]
    pub fn send_published(&self, length: usize) -> Result<usize, Errno> {
        self.ask_published(abi::PUBLISHED_TRANSFER, length as u64)
    }

    /// Makes the driver look up the page-table entry of an address by the published request, and
    /// log it if logging is on.
    #[inline]
    pub fn log_page(&self, address: u64) -> Result<(), Errno> {
        self.ask_published(abi::PUBLISHED_PAGE, address).map(drop)
    }

    fn ask_published(&self, request: Opcode, argument: u64) -> Result<usize, Errno> {
        // SAFETY: the driver takes the argument as a number, and reads and writes only its
        // own buffer.
        let status = unsafe { libc::ioctl(self.file.as_raw_fd(), request.into(), argument) };
        usize::try_from(status).map_err(|_| last_errno())
    }

    fn transfer(&self, request: Opcode, offset: usize, length: usize) -> Result<u64, Errno> {
        let mut transfer = Transfer {
            offset: offset as u64,
            length: length as u64,
            ..Transfer::default()
        };
        self.ask(request, &mut transfer)?;
        Ok(transfer.done)
    }

    /// Waits for a queued transfer, and returns the bytes that it moved.
    #[inline]
    pub fn reap(&self) -> Result<u64, Errno> {
        let mut completion = Completion::default();
        self.ask(abi::REAP, &mut completion)?;
        u64::try_from(completion.result).map_err(|_| {
            let number = i32::try_from(-completion.result).unwrap_or(libc::EIO);
            Errno::from_raw_os_error(number)
        })
    }

    pub fn finish(&self) -> Result<(), Errno> {
        // The request has no argument.
        self.ask(abi::FINISH, &mut ())
    }

    /// Returns the page-table entry of an address of this process.
    pub fn page(&self, address: u64) -> Result<Page, Errno> {
        let mut page = Page {
            address,
            ..Page::default()
        };
        self.ask(abi::PAGE, &mut page).map(|()| page)
    }

    pub fn statistics(&self) -> Result<Statistics, Errno> {
        let mut statistics = Statistics::default();
        self.ask(abi::STATISTICS, &mut statistics)
            .map(|()| statistics)
    }

    fn buffer(&self, setup: &Setup) -> Result<Mapping, Errno> {
        let bytes = (setup.driver_bytes() as usize).next_multiple_of(page_bytes());
        Mapping::of_file(&self.file, 0, bytes, READ_WRITE, MapFlags::SHARED)
    }

    /// Decides whether to retry a call that failed; returns `Ok` to retry. A signal interrupts a
    /// waiting call only to check the call's progress. The first signal notes the bytes moved so
    /// far. A later signal gives up if no more were moved. Fails with ETIMEDOUT to give up, or with
    /// the call's own error.
    pub fn retry_after(&self, errno: Errno) -> Result<(), Errno> {
        if errno != Errno::INTR {
            return Err(errno);
        }
        let statistics = self.statistics()?;
        let moved = statistics.bytes_sent + statistics.bytes_received;
        match self.moved_before.replace(Some(moved)) {
            Some(before) if before == moved => Err(Errno::TIMEDOUT),
            _ => Ok(()),
        }
    }

    /// Makes a request, which reads and writes only its argument.
    #[inline]
    fn ask<T>(&self, request: Opcode, argument: &mut T) -> Result<(), Errno> {
        assert_eq!(abi::argument_bytes(request), size_of::<T>());
        // SAFETY: the driver reads and writes `argument`, whose size the request's
        // number encodes, and its own buffer, to which there is no reference. Any
        // bytes are valid values of the argument's integers.
        let status =
            unsafe { libc::ioctl(self.file.as_raw_fd(), request.into(), &raw mut *argument) };
        match status {
            0 => Ok(()),
            _ => Err(last_errno()),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn endpoint(address: SocketAddr, limit: Option<Duration>) -> Endpoint {
    let mut bytes = [0; 16];
    let (family, scope_id) = match address {
        SocketAddr::V4(v4) => {
            bytes[..4].copy_from_slice(&v4.ip().octets());
            (libc::AF_INET, 0)
        }
        SocketAddr::V6(v6) => {
            bytes = v6.ip().octets();
            (libc::AF_INET6, v6.scope_id())
        }
    };
    Endpoint {
        family: family as u16,
        port: address.port(),
        scope_id,
        address: bytes,
        timeout_ms: milliseconds(limit),
        reserved: 0,
    }
}

/// Returns a limit as the driver takes it, where 0 means no limit.
fn milliseconds(limit: Option<Duration>) -> u32 {
    limit.map_or(0, |limit| {
        u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_its_address_as_the_driver_reads_it() {
        let v4 = endpoint("10.0.77.1:2325".parse().unwrap(), None);
        assert_eq!((v4.family, v4.port), (2, 2325));
        assert_eq!(v4.address[..5], [10, 0, 77, 1, 0]);
        assert_eq!(v4.timeout_ms, 0);
        let limit = Duration::from_nanos(1);
        let v6 = endpoint("[fe80::1%3]:9".parse().unwrap(), Some(limit));
        assert_eq!((v6.family, v6.scope_id, v6.timeout_ms), (10, 3, 1));
        assert_eq!((v6.address[0], v6.address[15]), (0xfe, 1));
        assert_eq!(milliseconds(Some(Duration::MAX)), u32::MAX);
    }
}
