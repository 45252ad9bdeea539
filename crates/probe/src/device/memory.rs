//! A connected device, and what it moves bytes through, made before the timed
//! region.

use rustix::io::Errno;
use toll_wire::SocketMode;

use super::mapping::{Access, Window};
use super::slots::Slots;
use super::{Device, Page, Setup};
use crate::buffer::Buffer;
use crate::copy::mover::CallError;
use crate::mapping::Mapping;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `read` and `write` through a buffer (the report's "fcntl").
    ReadWrite,
    /// The file is mapped, and copied from or into the driver's mapped buffer,
    /// which is sent or filled by ioctl. A file that is received is grown before.
    Mmap,
    Foreign,
}

pub(super) enum Memory {
    None,
    User(Buffer),
    Mapped {
        driver: Mapping,
        slots: Slots,
        window: Window,
    },
}

/// A device that is connected, with all its memory. How it sends is in `send.rs`,
/// how it receives in `receive.rs`.
pub struct Connection {
    pub(super) device: Device,
    pub(super) mode: SocketMode,
    pub(super) memory: Memory,
}

impl Connection {
    /// A connection that does `access` to its mapped file: reads what it sends, or
    /// writes what it receives.
    pub fn new(device: Device, setup: &Setup, way: Way, access: Access) -> Result<Self, CallError> {
        let buffer_bytes = setup.buffer_bytes as usize;
        let refused = |errno| CallError::of("mmap", errno);
        let memory = match way {
            Way::Foreign => Memory::None,
            Way::ReadWrite => Memory::User(Buffer::aligned(buffer_bytes)),
            Way::Mmap => Memory::Mapped {
                driver: device.buffer(setup).map_err(refused)?,
                slots: Slots::new(setup.slot_bytes() as usize, setup.slots() as usize),
                window: Window::new(buffer_bytes, access).map_err(refused)?,
            },
        };
        Ok(Self {
            device,
            mode: setup.mode,
            memory,
        })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the page table says of the file's page that was last mapped; `None`
    /// if none is.
    pub fn page(&self) -> Result<Option<Page>, Errno> {
        let Memory::Mapped { window, .. } = &self.memory else {
            return Ok(None);
        };
        let address = window.address();
        address.map(|address| self.device.page(address)).transpose()
    }

    pub fn release(&mut self) -> Result<(), Errno> {
        match &mut self.memory {
            Memory::Mapped { window, .. } => window.clear(),
            _ => Ok(()),
        }
    }
}
