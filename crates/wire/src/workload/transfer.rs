//! Parameters of the transfer of a file from one process to another.

use core::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::levels::{from_levels, size, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};

/// Smallest and largest buffer of either end in bytes: the limits of the device's buffer.
pub const TRANSFER_BUFFER_BYTES_MIN: u64 = 512;
pub const TRANSFER_BUFFER_BYTES_MAX: u64 = 16 << 20;

/// Bytes of the file, and of the device, that the published master maps at a time.
const PAGE_BYTES: u64 = 4096;
/// Largest window of the published slave, in bytes.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransferRequest {
    pub channel: Channel,
    pub sender: SendMethod,
    pub receiver: ReceiveMethod,
    /// How the kernel's sockets are used; only for [`Channel::Device`].
    pub mode: SocketMode,
    /// Size of the sender's buffer in bytes: the most that one call moves.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Size of the receiver's buffer in bytes: the most that one call moves.
    #[serde(rename = "receiver_buffer", deserialize_with = "buffer_size")]
    pub receiver_buffer_bytes: u64,
    /// How many bytes of its file the receiver maps at a time, in whole pages; only for
    /// [`ReceiveMethod::PublishedMmap`].
    #[serde(rename = "window", deserialize_with = "window_size")]
    pub window_bytes: u64,
    /// Whether the device logs the page-table entries that the published ends look up.
    pub page_log: PageLog,
    /// The file to send; all of its pages are warm.
    #[serde(rename = "@source")]
    pub source: PathBuf,
    /// Bytes to send, from the beginning of the file.
    #[serde(rename = "size", deserialize_with = "size")]
    pub size_bytes: u64,
    /// XXH3-64 hash of the bytes to send, to check what arrived.
    #[serde(rename = "@xxh3")]
    pub xxh3: u64,
    /// Directory in which the receiver creates its file.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    #[serde(rename = "@part")]
    pub part: TransferPart,
}

sizes! {
    buffer_size: TRANSFER_BUFFER_BYTES_MIN..=TRANSFER_BUFFER_BYTES_MAX,
        "512 bytes to 16 MiB, the limits of the driver";
    window_size: PAGE_BYTES..=WINDOW_BYTES_MAX, "4 KiB to 1 GiB";
}

impl Default for TransferRequest {
    fn default() -> Self {
        Self {
            channel: Channel::Tcp,
            sender: SendMethod::ReadWrite,
            receiver: ReceiveMethod::ReadWrite,
            mode: SocketMode::Sync,
            buffer_bytes: 64 << 10,
            receiver_buffer_bytes: 0,
            window_bytes: PAGE_BYTES,
            page_log: PageLog::Off,
            source: PathBuf::new(),
            // The second largest file of the report.
            size_bytes: 1_502_860,
            xxh3: 0,
            directory: PathBuf::new(),
            part: TransferPart::Both,
        }
    }
}

impl TransferRequest {
    /// Returns why no machine can do this transfer, if the request alone shows it.
    pub fn contradiction(&self) -> Option<&'static str> {
        let is_device = self.channel == Channel::Device;
        if self.sender == SendMethod::Zerocopy && self.channel != Channel::Tcp {
            return Some(
                "cannot send with MSG_ZEROCOPY over this channel: only TCP supports it; use \
                 `channel = \"tcp\"`",
            );
        }
        if self.mode != SocketMode::Sync && !is_device {
            return Some(
                "cannot choose the mode of this channel: only the device uses sockets in the \
                 kernel; use `channel = \"device\"`",
            );
        }
        if self.page_log == PageLog::On && !is_device {
            return Some(
                "cannot log page-table entries over this channel: only the device logs them; use \
                 `channel = \"device\"`",
            );
        }
        // With another buffer, the published loop copies past the end of its mapping.
        if self.sender == SendMethod::PublishedMmap && !PAGE_BYTES.is_multiple_of(self.buffer_bytes)
        {
            return Some(
                "cannot send by the published loop with this buffer: the loop changes pages only \
                 at the end of a buffer; use a buffer that divides 4 KiB, or \
                 `sender = \"mended-mmap\"`",
            );
        }
        let is_local = matches!(self.channel, Channel::Unix | Channel::Pipe);
        if is_local && self.part != TransferPart::Both {
            return Some(
                "cannot join two hosts by a pipe or a Unix socket; use `channel = \"tcp\"` or \
                 `channel = \"device\"`",
            );
        }
        None
    }
}

/// What joins the two ends of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The devices of the modules `master` and `slave`, joined by a TCP
    /// connection inside the kernel (Virtual Device); guests only.
    Device,
    /// A TCP connection between the two programs.
    Tcp,
    /// A pair of Unix stream sockets.
    Unix,
    Pipe,
}

/// How a sender moves its file into the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendMethod {
    /// `read` into a buffer and `write` from it (the report's "fcntl").
    ReadWrite,
    /// Maps the file, one buffer at a time. A socket or pipe is written from the mapping. For the
    /// device, the mapping is copied into the driver's mapped buffer, which an ioctl sends.
    Mmap,
    /// The published master, as it was printed. It maps a page of the file and a page of the
    /// device. For each buffer it copies from the beginning of the file's page to the beginning of
    /// the device's page, and sends from there. It never unmaps the device. So it sends the right
    /// bytes only if a buffer is a page, and it runs out of mappings. In channels other than the
    /// device, memory replaces the device's page.
    PublishedMmap,
    /// The loop of `PublishedMmap` without its defects: it copies the bytes that come next, and
    /// unmaps the device's page. It looks up the page-table entry of the file's page while that
    /// page is mapped.
    MendedMmap,
    Sendfile,
    /// `splice`, through a pipe unless the channel is one.
    Splice,
    /// `read` into a buffer and `send` with `MSG_ZEROCOPY`; TCP only.
    Zerocopy,
    IoUring,
}

/// How a receiver moves what arrives into its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMethod {
    /// `read` into a buffer and `write` from it (the report's "fcntl").
    ReadWrite,
    /// Extends and maps the file, and fills it from the channel: by `read` into the mapping, or
    /// for the device from the driver's mapped buffer.
    Mmap,
    /// The published slave: `read` into a buffer, from which it copies into a mapping of the file.
    /// Whenever the mapped window is full, it unmaps the window, extends the file by another window
    /// and maps that. Finally it truncates the file to its length.
    PublishedMmap,
    /// `splice`, through a pipe unless the channel is one.
    Splice,
}

/// Whether the device logs page-table entries. The published driver wrote to the kernel log each
/// entry that a program looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageLog {
    Off,
    /// One line for each page sent, and two for each window received.
    On,
}

/// How the device uses its sockets in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketMode {
    Sync,
    /// Like `Sync`, with `FASYNC` in the socket's flags, as in the published asynchronous version.
    /// Nothing reads that flag there.
    Fasync,
    /// Calls are queued, and a worker sends and receives without waiting.
    Async,
}

/// Which ends of a transfer the probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransferPart {
    Both,
    /// The sender, whose partner is on another host and connects to it.
    Sender {
        /// Address on which the sender waits for its partner.
        listen: IpAddr,
    },
    /// The receiver, whose partner is on another host.
    Receiver {
        connect: IpAddr,
    },
}

impl WorkRequest for TransferRequest {
    const SURROUNDINGS: &'static [&'static str] = &["content", "fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        let all = levels.iter().copied();
        let sizes = all.filter(|level| *level != ("receiver_buffer", "same"));
        let mut transfer: Self = from_levels(sizes)?;
        if transfer.receiver_buffer_bytes == 0 {
            transfer.receiver_buffer_bytes = transfer.buffer_bytes;
        }
        Ok(transfer)
    }

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds {
            source_bytes: Some(self.size_bytes),
            scratch_bytes: self.size_bytes,
            ..DiskNeeds::default()
        }
    }

    fn place(&mut self, directory: &Path, _seed: u64) {
        self.directory = directory.to_owned();
    }
}
