//! Ways to receive from a device into a file.

use std::os::fd::{AsFd, BorrowedFd};

use toll_wire::SocketMode;

use super::Device;
use super::mapping::Window;
use super::memory::{Connection, Memory};
use super::send::piece;
use super::slots::{Slots, until_done};
use super::target::Target;
use crate::mapping::{Mapping, copy, take};
use crate::workloads::copy::mover::{self, CallError, Moved, portion};

impl Connection {
    /// Receives `bytes`, which the sender sends before the bytes of a file.
    pub fn receive_first(&mut self, bytes: &mut [u8]) -> Result<(), CallError> {
        let device = &self.device;
        match &mut self.memory {
            // Asynchronous `read` would receive ahead and leave nothing for RECEIVE.
            Memory::Mapped { driver, slots, .. } if self.mode == SocketMode::Async => {
                for part in bytes.chunks_mut(slots.slot_bytes()) {
                    let start = slots.next(part.len()).start;
                    until_done(device, "receive", || device.receive(start, part.len()))?;
                    slots.queue(part.len());
                    let slot = slots.reap(device, "receive")?;
                    take(driver, slot.start, part);
                }
                Ok(())
            }
            _ => read_full(device, bytes),
        }
    }

    /// Receives `size_bytes` into an empty file. Calls `on_arrival` when the first
    /// bytes have arrived.
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
            Memory::None => unreachable!("a foreign method moves the bytes"),
            Memory::Pages(_) => unreachable!("this memory is for sending"),
            Memory::Windows(windows) => windows.receive(device, &mut target)?,
            Memory::User(buffer) => receive_by_read(device, &mut target, buffer.bytes_mut())?,
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
        let (place, begin) = window.show(file, received, size_bytes)?;
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
        let (place, begin) = window.show(file, received, size_bytes)?;
        copy((driver, slot.start), (place, begin), slot.len());
        received += slot.len() as u64;
    }
    Ok(())
}
