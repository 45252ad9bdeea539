//! A connected device, and the memory through which it moves bytes, made before
//! the timed region.

use rustix::io::Errno;
use toll_wire::SocketMode;

use super::mapping::{Access, Window};
use super::published::{Pages, Windows};
use super::setup::{Setup, Way};
use super::slots::Slots;
use super::{Device, Page};
use crate::buffer::Buffer;
use crate::mapping::Mapping;
use crate::published_loops::Form;
use crate::workloads::copy::mover::CallError;

pub(super) enum Memory {
    None,
    User(Buffer),
    Mapped {
        driver: Mapping,
        slots: Slots,
        window: Window,
    },
    Pages(Pages),
    Windows(Windows),
}

/// A connected device with all its memory. It sends in `send.rs` and receives in
/// `receive.rs`.
pub struct Connection {
    pub(super) device: Device,
    pub(super) mode: SocketMode,
    pub(super) memory: Memory,
}

impl Connection {
    /// Makes a connection that accesses its mapped file by `access`: it reads a file
    /// that it sends, or writes a file that it receives.
    pub fn new(device: Device, setup: &Setup, access: Access) -> Result<Self, CallError> {
        let buffer_bytes = setup.buffer_bytes as usize;
        let refused = |errno| CallError::new("mmap", errno);
        let memory = match (setup.way, access) {
            (Way::Foreign, _) => Memory::None,
            (Way::ReadWrite, _) => Memory::User(Buffer::aligned(buffer_bytes)),
            (Way::PublishedMmap, Access::Read) => {
                Memory::Pages(Pages::new(Form::Printed, buffer_bytes))
            }
            (Way::MendedMmap, Access::Read) => {
                Memory::Pages(Pages::new(Form::Mended, buffer_bytes))
            }
            (Way::PublishedMmap | Way::MendedMmap, Access::Write) => {
                Memory::Windows(Windows::new(buffer_bytes, setup.window_bytes))
            }
            (Way::Mmap, _) => Memory::Mapped {
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

    /// Returns the page-table entry of the file's page that was mapped last. If the page is no
    /// longer mapped, returns the entry that it had. `None` without such a page.
    pub fn page(&self) -> Result<Option<Page>, Errno> {
        match &self.memory {
            Memory::None | Memory::User(_) => Ok(None),
            Memory::Mapped { window, .. } => {
                let address = window.address();
                address.map(|address| self.device.page(address)).transpose()
            }
            Memory::Pages(pages) => Ok(pages.entry),
            Memory::Windows(windows) => Ok(windows.entry),
        }
    }

    pub fn release(&mut self) -> Result<(), Errno> {
        match &mut self.memory {
            Memory::Mapped { window, .. } => window.clear(),
            _ => Ok(()),
        }
    }
}
