//! What either end moves bytes through, made before the timed region.

use rustix::io::Errno;

use super::mapping::{Access, Mapping, Window};
use super::slots::Slots;
use super::{Device, Page, Setup};
use crate::buffer::Buffer;
use crate::copy::mover::CallError;

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

impl Memory {
    /// The memory of an end that does `access` to its mapped file.
    pub fn new(
        device: &Device,
        setup: &Setup,
        way: Way,
        access: Access,
    ) -> Result<Self, CallError> {
        let buffer_bytes = setup.buffer_bytes as usize;
        let refused = |errno| CallError::of("mmap", errno);
        Ok(match way {
            Way::Foreign => Self::None,
            Way::ReadWrite => Self::User(Buffer::aligned(buffer_bytes)),
            Way::Mmap => Self::Mapped {
                driver: device.buffer(setup).map_err(refused)?,
                slots: Slots::new(setup.slot_bytes() as usize, setup.slots() as usize),
                window: Window::new(buffer_bytes, access).map_err(refused)?,
            },
        })
    }

    /// What the page table says of the file's page that was last mapped; `None`
    /// if none is.
    pub fn page(&self, device: &Device) -> Result<Option<Page>, Errno> {
        match self {
            Self::None | Self::User(_) => Ok(None),
            Self::Mapped { window, .. } => window
                .address()
                .map(|address| device.page(address))
                .transpose(),
        }
    }

    pub fn release(&mut self) -> Result<(), Errno> {
        match self {
            Self::None | Self::User(_) => Ok(()),
            Self::Mapped { window, .. } => window.clear(),
        }
    }
}
