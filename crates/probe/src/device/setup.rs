//! How a device moves bytes: the way, the mode and the sizes.

use toll_wire::SocketMode;

use super::abi::{BUFFER_BYTES_MAX, QUEUE_MAX};
use crate::buffer::page_bytes;

/// Bytes in flight that keep the driver's worker busy. It would be done with fewer bytes before
/// this process has copied and queued more.
const UNDER_WAY_BYTES: u32 = 512 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `read` and `write` through a buffer (the report's "fcntl").
    ReadWrite,
    /// The file is mapped, and copied from or into the driver's mapped buffer, which is sent or
    /// filled by ioctl. A file to be received is extended first.
    Mmap,
    /// The report's "mmap": `toll_wire::SendMethod::PublishedMmap` and
    /// `toll_wire::ReceiveMethod::PublishedMmap`.
    PublishedMmap,
    /// Like [`Self::PublishedMmap`], but sending by `toll_wire::SendMethod::MendedMmap`.
    MendedMmap,
    /// A method that is not the device's own, such as splice.
    Foreign,
}

impl Way {
    /// Whether the file is mapped.
    pub fn maps_file(self) -> bool {
        matches!(self, Self::Mmap | Self::PublishedMmap | Self::MendedMmap)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub mode: SocketMode,
    pub way: Way,
    pub buffer_bytes: u32,
    /// How many bytes of a received file [`Way::PublishedMmap`] maps at a time.
    pub window_bytes: usize,
}

impl Setup {
    pub(super) fn slots(&self) -> u32 {
        match self.mode {
            SocketMode::Sync | SocketMode::Fasync => 1,
            SocketMode::Async => slots_of(self.buffer_bytes),
        }
    }

    /// Bytes of one transfer. This is the buffer of a call, unless several transfers are queued and
    /// the driver's buffer does not hold two of that size.
    pub(super) fn slot_bytes(&self) -> u32 {
        self.buffer_bytes.min(BUFFER_BYTES_MAX / self.slots())
    }

    pub(crate) fn describe_mapped(&self) -> String {
        let window_bytes = (self.buffer_bytes as usize).next_multiple_of(page_bytes());
        let (slots, slot_bytes) = (self.slots(), self.slot_bytes());
        match self.mode {
            SocketMode::Sync | SocketMode::Fasync => format!(
                "windows of {window_bytes} bytes, and {slot_bytes} bytes of the driver's buffer"
            ),
            SocketMode::Async => format!(
                "windows of {window_bytes} bytes, and {slots} slots of {slot_bytes} bytes in the \
                 driver's buffer"
            ),
        }
    }

    /// Size of the driver's buffer in bytes; the published driver's was one page.
    pub(super) fn driver_bytes(&self) -> u32 {
        match self.way {
            Way::PublishedMmap | Way::MendedMmap => page_bytes() as u32,
            Way::ReadWrite | Way::Mmap | Way::Foreign => self.slots() * self.slot_bytes(),
        }
    }
}

/// Returns the number of slots of a size into which the driver's buffer is divided.
fn slots_of(slot_bytes: u32) -> u32 {
    let fitting = BUFFER_BYTES_MAX / slot_bytes;
    (UNDER_WAY_BYTES / slot_bytes)
        .clamp(4, QUEUE_MAX as u32)
        .min(fitting)
        .max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_s_buffer_holds_a_call_or_in_asynchronous_mode_several() {
        let setup = |mode, buffer_bytes| Setup {
            mode,
            way: Way::Mmap,
            buffer_bytes,
            window_bytes: 0,
        };
        let sync = setup(SocketMode::Sync, BUFFER_BYTES_MAX);
        assert_eq!((sync.slots(), sync.driver_bytes()), (1, BUFFER_BYTES_MAX));
        for buffer_bytes in [512, 5000, 65536, BUFFER_BYTES_MAX - 1, BUFFER_BYTES_MAX] {
            let queued = setup(SocketMode::Async, buffer_bytes);
            assert!(queued.slots() >= 2 && queued.slots() as usize <= QUEUE_MAX);
            assert!(queued.driver_bytes() <= BUFFER_BYTES_MAX);
            assert!(queued.slot_bytes() <= buffer_bytes);
        }
        assert_eq!(setup(SocketMode::Async, 65536).slot_bytes(), 65536);
    }

    #[test]
    fn there_are_two_slots_at_least_and_never_more_than_the_queue_takes() {
        for (slot_bytes, expected) in [(512, 64), (64 << 10, 8), (1 << 20, 4), (16 << 20, 2)] {
            assert_eq!(slots_of(slot_bytes), expected, "{slot_bytes}");
        }
    }
}
