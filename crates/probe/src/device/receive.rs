//! Ways to receive from a device into a file.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;
use rustix::fs::ftruncate;
use rustix::io::Errno;
use toll_wire::SocketMode;

use super::mapping::{Access, Mapping, Window, copy, read_into};
use super::send::piece;
use super::slots::{Slots, until_done};
use super::{Device, Page, Setup};
use crate::buffer::Buffer;
use crate::copy::mover::{self, CallError, Moved, portion, wait_for};

/// How bytes get from the device into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveWay {
    /// `read` into a buffer and `write` from it (the report's "fcntl").
    ReadWrite,
    /// The file is grown and mapped; the driver's mapped buffer is filled by ioctl
    /// and copied into it.
    Mmap,
    /// The file is grown and mapped, and `read` fills the mapping, without the
    /// driver's buffer in between.
    MmapRead,
    /// By somebody who takes the device as any descriptor.
    Foreign,
}

/// A connected device that receives, with all its memory made beforehand.
pub struct Receiver {
    device: Device,
    mode: SocketMode,
    memory: Memory,
}

enum Memory {
    None,
    User(Buffer),
    Mapped {
        driver: Mapping,
        slots: Slots,
        window: Window,
    },
    Window(Window),
}

impl Receiver {
    /// A receiver on a device with this setup.
    ///
    /// # Errors
    /// If the driver's buffer cannot be mapped.
    pub fn new(device: Device, setup: &Setup, way: ReceiveWay) -> Result<Self, CallError> {
        let buffer_bytes = setup.buffer_bytes as usize;
        let window = || {
            Window::new(buffer_bytes, Access::Write).map_err(|errno| CallError::of("mmap", errno))
        };
        let memory = match way {
            ReceiveWay::Foreign => Memory::None,
            ReceiveWay::ReadWrite => Memory::User(Buffer::aligned(buffer_bytes)),
            ReceiveWay::MmapRead => Memory::Window(window()?),
            ReceiveWay::Mmap => Memory::Mapped {
                driver: device
                    .buffer(setup)
                    .map_err(|errno| CallError::of("mmap", errno))?,
                slots: Slots::new(setup.slot_bytes() as usize, setup.slots() as usize),
                window: window()?,
            },
        };
        Ok(Self {
            device,
            mode: setup.mode,
            memory,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Receives `bytes`, which come before a file's.
    ///
    /// # Errors
    /// If the device fails or the partner ends before.
    pub fn receive_first(&mut self, bytes: &mut [u8]) -> Result<(), CallError> {
        let device = &self.device;
        match &mut self.memory {
            // A connection whose `read` receives ahead has nothing for RECEIVE.
            Memory::Mapped { driver, slots, .. } if self.mode == SocketMode::Async => {
                for part in bytes.chunks_mut(slots.slot_bytes()) {
                    let start = slots.next(part.len()).start;
                    until_done(device, "receive", || device.receive(start, part.len()))?;
                    slots.queue(part.len());
                    let slot = slots.reap(device, "receive")?;
                    driver.take(slot.start, part);
                }
                Ok(())
            }
            _ => read_full(device, bytes),
        }
    }

    /// Receives so many bytes into an empty file. `on_arrival` is called when the
    /// first are there.
    ///
    /// # Errors
    /// The first call that failed; one of `receive` that moved nothing if the
    /// partner sends less.
    pub fn receive_all(
        &mut self,
        file: BorrowedFd<'_>,
        size_bytes: u64,
        on_arrival: &mut dyn FnMut(),
    ) -> Result<Moved, CallError> {
        let Self {
            device,
            mode,
            memory,
        } = self;
        let mut target = Target {
            file,
            size_bytes,
            on_arrival,
            calls: 0,
        };
        match memory {
            Memory::None => unreachable!("somebody else moves the bytes"),
            Memory::User(buffer) => receive_by_read(device, &mut target, buffer.bytes_mut())?,
            Memory::Window(window) => read_mapped(device, &mut target, window)?,
            Memory::Mapped {
                driver,
                slots,
                window,
            } => match mode {
                SocketMode::Sync | SocketMode::Fasync => {
                    let driver = (driver, slots.slot_bytes());
                    receive_mapped(device, &mut target, driver, window)?;
                }
                SocketMode::Async => {
                    receive_queued(device, &mut target, (driver, slots), window)?;
                }
            },
        }
        Ok(Moved {
            bytes: size_bytes,
            calls: target.calls,
        })
    }

    /// What the page table says of the file's page that was last mapped; `None`
    /// if none is.
    ///
    /// # Errors
    /// The kernel's.
    pub fn page(&self) -> Result<Option<Page>, Errno> {
        match &self.memory {
            Memory::None | Memory::User(_) => Ok(None),
            Memory::Mapped { window, .. } | Memory::Window(window) => window
                .address()
                .map(|address| self.device.page(address))
                .transpose(),
        }
    }

    /// Lets go of the file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn release(&mut self) -> Result<(), Errno> {
        match &mut self.memory {
            Memory::None | Memory::User(_) => Ok(()),
            Memory::Mapped { window, .. } | Memory::Window(window) => window.clear(),
        }
    }
}

/// Where bytes go.
struct Target<'a> {
    file: BorrowedFd<'a>,
    size_bytes: u64,
    on_arrival: &'a mut dyn FnMut(),
    calls: u64,
}

impl Target<'_> {
    /// Counts a call that brought bytes.
    fn arrived(&mut self) {
        if self.calls == 0 {
            (self.on_arrival)();
        }
        self.calls += 1;
    }

    /// The same for a mapped file. As published, it grows when there is something
    /// to put into it. Done while the sender has not begun, it would cost nothing.
    fn arrived_for_mapping(&mut self) -> Result<(), CallError> {
        let is_first = self.calls == 0;
        self.arrived();
        if is_first {
            ftruncate(self.file, self.size_bytes)
                .map_err(|errno| CallError::of("ftruncate", errno))?;
        }
        Ok(())
    }
}

fn receive_by_read(
    device: &Device,
    target: &mut Target<'_>,
    buffer: &mut [u8],
) -> Result<(), CallError> {
    let mut received = 0;
    while received < target.size_bytes {
        let wanted = portion(target.size_bytes - received, buffer.len());
        let length = until_done(device, "receive", || {
            rustix::io::read(device.as_fd(), &mut buffer[..wanted])
        })?;
        if length == 0 {
            return Err(CallError::no_progress("receive"));
        }
        target.arrived();
        mover::write_all(target.file, &buffer[..length], &mut target.calls)?;
        received += length as u64;
    }
    Ok(())
}

/// Reads from a device until `bytes` is full.
///
/// # Errors
/// If a read fails or the partner ends before.
pub fn read_full(device: &Device, mut bytes: &mut [u8]) -> Result<(), CallError> {
    while !bytes.is_empty() {
        match until_done(device, "receive", || {
            rustix::io::read(device.as_fd(), &mut *bytes)
        })? {
            0 => return Err(CallError::no_progress("receive")),
            length => bytes = &mut bytes[length..],
        }
    }
    Ok(())
}

fn read_mapped(
    device: &Device,
    target: &mut Target<'_>,
    window: &mut Window,
) -> Result<(), CallError> {
    let (file, size_bytes) = (target.file, target.size_bytes);
    let mut received = 0;
    while received < size_bytes {
        if target.calls == 0 {
            wait_for(device.as_fd(), PollFlags::IN);
            target.arrived_for_mapping()?;
        }
        let length = piece(received, size_bytes, window, window.length());
        let (place, begin) = window.show(file, received)?;
        match until_done(device, "receive", || {
            read_into(device, (&mut *place, begin), length)
        })? {
            0 => return Err(CallError::no_progress("receive")),
            count => received += count as u64,
        }
        target.arrived();
    }
    Ok(())
}

fn receive_mapped(
    device: &Device,
    target: &mut Target<'_>,
    (driver, slot_bytes): (&mut Mapping, usize),
    window: &mut Window,
) -> Result<(), CallError> {
    let (file, size_bytes) = (target.file, target.size_bytes);
    let mut received = 0;
    while received < size_bytes {
        let length = piece(received, size_bytes, window, slot_bytes);
        let mut offset = 0;
        while offset < length {
            match until_done(device, "receive", || {
                device.receive(offset, length - offset)
            })? {
                0 => return Err(CallError::no_progress("receive")),
                done => offset += done as usize,
            }
            target.arrived_for_mapping()?;
        }
        let (place, begin) = window.show(file, received)?;
        copy((driver, 0), (place, begin), length);
        received += length as u64;
    }
    Ok(())
}

fn receive_queued(
    device: &Device,
    target: &mut Target<'_>,
    (driver, slots): (&mut Mapping, &mut Slots),
    window: &mut Window,
) -> Result<(), CallError> {
    let (file, size_bytes) = (target.file, target.size_bytes);
    let (mut queued, mut received) = (0, 0);
    while received < size_bytes {
        while queued < size_bytes && !slots.is_full() {
            let length = piece(queued, size_bytes, window, slots.slot_bytes());
            let start = slots.next(length).start;
            until_done(device, "receive", || device.receive(start, length))?;
            slots.queue(length);
            queued += length as u64;
        }
        let slot = slots.reap(device, "receive")?;
        target.arrived_for_mapping()?;
        let (place, begin) = window.show(file, received)?;
        copy((driver, slot.start), (place, begin), slot.len());
        received += slot.len() as u64;
    }
    Ok(())
}
