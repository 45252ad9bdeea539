//! Ways to send a file through a device.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use toll_wire::SocketMode;

use super::Device;
use super::mapping::Window;
use super::memory::{Connection, Memory};
use super::slots::{Slots, until_done};
use crate::mapping::{Mapping, copy};
use crate::workloads::copy::mover::{CallError, Moved, portion};

impl Connection {
    /// Sends the first `size_bytes` of a file, whose position must be its beginning,
    /// until the kernel's socket has all of them. Then lets the receiver read to the
    /// end.
    pub fn send_all(&mut self, file: BorrowedFd<'_>, size_bytes: u64) -> Result<Moved, CallError> {
        let mut calls = 0;
        self.send_bytes(file, size_bytes, &mut calls)?;
        self.finish()?;
        Ok(Moved {
            bytes: size_bytes,
            calls,
        })
    }

    /// Lets the receiver read to the end. As with a close, the socket then has all
    /// queued bytes, and TCP sends those that it holds back for more to come (Nagle's
    /// algorithm).
    pub fn finish(&mut self) -> Result<(), CallError> {
        until_done(&self.device, "finish", || self.device.finish())
    }

    fn send_bytes(
        &mut self,
        file: BorrowedFd<'_>,
        size_bytes: u64,
        calls: &mut u64,
    ) -> Result<(), CallError> {
        let Self {
            device,
            mode,
            memory,
        } = self;
        match memory {
            Memory::None => unreachable!("a foreign method moves the bytes"),
            Memory::Windows(_) => unreachable!("this memory is for receiving"),
            Memory::Pages(pages) => pages.send(device, (file, size_bytes), calls),
            Memory::User(buffer) => {
                send_by_write(device, file, size_bytes, buffer.bytes_mut(), calls)
            }
            Memory::Mapped {
                driver,
                slots,
                window,
            } => match mode {
                SocketMode::Sync | SocketMode::Fasync => {
                    let slot_bytes = slots.slot_bytes();
                    let driver = (driver, slot_bytes);
                    send_mapped(device, file, size_bytes, driver, window, calls)
                }
                SocketMode::Async => {
                    let driver = (driver, slots);
                    queue_mapped(device, file, size_bytes, driver, window, calls)
                }
            },
        }
    }
}

fn send_by_write(
    device: &Device,
    file: BorrowedFd<'_>,
    size_bytes: u64,
    buffer: &mut [u8],
    calls: &mut u64,
) -> Result<(), CallError> {
    let mut sent = 0;
    while sent < size_bytes {
        let wanted = portion(size_bytes - sent, buffer.len());
        let length = match rustix::io::read(file, &mut buffer[..wanted]) {
            Ok(0) => return Err(CallError::no_progress("read")),
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(CallError::new("read", errno)),
        };
        write_all(device, &buffer[..length], calls)?;
        sent += length as u64;
    }
    Ok(())
}

/// Writes all bytes to a device, and adds the number of calls to `calls`.
pub fn write_all(device: &Device, mut bytes: &[u8], calls: &mut u64) -> Result<(), CallError> {
    while !bytes.is_empty() {
        match until_done(device, "write", || rustix::io::write(device.as_fd(), bytes))? {
            0 => return Err(CallError::no_progress("write")),
            length => {
                bytes = &bytes[length..];
                *calls += 1;
            }
        }
    }
    Ok(())
}

/// Returns the bytes from `position` that one transfer takes: at most a slot, and
/// within one window.
pub(super) fn piece(position: u64, size_bytes: u64, window: &Window, slot_bytes: usize) -> usize {
    let inside = (position % window.length() as u64) as usize;
    portion(
        size_bytes - position,
        slot_bytes.min(window.length() - inside),
    )
}

fn send_mapped(
    device: &Device,
    file: BorrowedFd<'_>,
    size_bytes: u64,
    (driver, slot_bytes): (&mut Mapping, usize),
    window: &mut Window,
    calls: &mut u64,
) -> Result<(), CallError> {
    let mut sent = 0;
    while sent < size_bytes {
        let length = piece(sent, size_bytes, window, slot_bytes);
        let (source, begin) = window.show(file, sent, size_bytes)?;
        copy((source, begin), (driver, 0), length);
        let mut offset = 0;
        while offset < length {
            match until_done(device, "send", || device.send(offset, length - offset))? {
                0 => return Err(CallError::no_progress("send")),
                done => {
                    offset += done as usize;
                    *calls += 1;
                }
            }
        }
        sent += length as u64;
    }
    Ok(())
}

fn queue_mapped(
    device: &Device,
    file: BorrowedFd<'_>,
    size_bytes: u64,
    (driver, slots): (&mut Mapping, &mut Slots),
    window: &mut Window,
    calls: &mut u64,
) -> Result<(), CallError> {
    let mut sent = 0;
    while sent < size_bytes {
        if slots.is_full() {
            slots.reap(device, "send")?;
        }
        let length = piece(sent, size_bytes, window, slots.slot_bytes());
        let slot = slots.next(length);
        let (source, begin) = window.show(file, sent, size_bytes)?;
        copy((source, begin), (driver, slot.start), length);
        until_done(device, "send", || device.send(slot.start, length))?;
        slots.queue(length);
        *calls += 1;
        sent += length as u64;
    }
    while !slots.is_idle() {
        slots.reap(device, "send")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Access;

    #[test]
    fn pieces_cover_a_file_of_any_size_and_stay_within_windows() {
        let page = crate::buffer::page_bytes();
        for (slot_bytes, size_bytes) in [
            (512, 9695),
            (5000, 100_000),
            (page, 1),
            (3 * page, (1 << 32) + 5),
        ] {
            let window = Window::new(slot_bytes, Access::Read).unwrap();
            // Only the part near the end of the large file is tried.
            let window_bytes = window.length() as u64;
            let mut position = (size_bytes / window_bytes).saturating_sub(20) * window_bytes;
            while position < size_bytes {
                let length = piece(position, size_bytes, &window, slot_bytes);
                assert!((1..=slot_bytes).contains(&length));
                let inside = position as usize % window.length();
                assert!(inside + length <= window.length());
                position += length as u64;
            }
            assert_eq!(position, size_bytes);
        }
    }
}
