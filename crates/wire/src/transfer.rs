//! Parameters of a transfer of a file from one process to another.

use core::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::levels::{size, sizes};

/// Least and most bytes of either end's buffer: those of the device's.
pub const TRANSFER_BUFFER_BYTES_MIN: u64 = 512;
pub const TRANSFER_BUFFER_BYTES_MAX: u64 = 16 << 20;

/// What the published master maps at a time, of the file and of the device.
const PAGE_BYTES: u64 = 4096;
/// Largest window of the published slave.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransferRequest {
    pub channel: Channel,
    pub sender: SendMethod,
    pub receiver: ReceiveMethod,
    /// How the kernel's sockets are used; of [`Channel::Device`] alone.
    pub mode: SocketMode,
    /// Bytes of one call, in the sender's buffer.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: u64,
    /// Bytes of one call, in the receiver's buffer.
    #[serde(rename = "receiver_buffer", deserialize_with = "buffer_size")]
    pub receiver_buffer_bytes: u64,
    /// Bytes of its file that the receiver maps at a time, in whole pages; of
    /// [`ReceiveMethod::PublishedMmap`] alone.
    #[serde(rename = "window", deserialize_with = "window_size")]
    pub window_bytes: u64,
    /// Whether the device logs the page-table entries that the published ends look up.
    pub page_log: PageLog,
    /// The file to be sent, all of whose pages are warm.
    #[serde(rename = "@source")]
    pub source: PathBuf,
    /// Its bytes that are sent, from its beginning.
    #[serde(rename = "size", deserialize_with = "size")]
    pub size_bytes: u64,
    /// XXH3-64 of them, against which what arrived is checked.
    #[serde(rename = "@xxh3")]
    pub xxh3: u64,
    /// Directory in which the receiver makes its file.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
    #[serde(rename = "@part")]
    pub part: TransferPart,
}

sizes! {
    buffer_size: TRANSFER_BUFFER_BYTES_MIN..=TRANSFER_BUFFER_BYTES_MAX,
        "512 bytes to 16 MiB, as much as the driver has";
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
            // The report's largest file but one.
            size_bytes: 1_502_860,
            xxh3: 0,
            directory: PathBuf::new(),
            part: TransferPart::Both,
        }
    }
}

impl TransferRequest {
    /// Why no machine can do it, where the request alone tells.
    pub fn contradiction(&self) -> Option<&'static str> {
        let is_device = self.channel == Channel::Device;
        if self.sender == SendMethod::Zerocopy && self.channel != Channel::Tcp {
            return Some(
                "cannot send with MSG_ZEROCOPY over this channel: only TCP has it among them; use \
                 channel = tcp",
            );
        }
        if self.mode != SocketMode::Sync && !is_device {
            return Some(
                "cannot choose the mode of this channel: only the device's sockets are the \
                 kernel's; use channel = device",
            );
        }
        if self.page_log == PageLog::On && !is_device {
            return Some(
                "cannot log page-table entries over this channel: the device logs them; use \
                 channel = device",
            );
        }
        // Otherwise its loop copies past the end of what it has mapped.
        if self.sender == SendMethod::PublishedMmap && !PAGE_BYTES.is_multiple_of(self.buffer_bytes)
        {
            return Some(
                "cannot send by the published loop with this buffer: it ends pages only where \
                 buffers end; use a buffer that divides 4 KiB, or sender = mended-mmap",
            );
        }
        let is_local = matches!(self.channel, Channel::Unix | Channel::Pipe);
        if is_local && self.part != TransferPart::Both {
            return Some(
                "cannot join two hosts by a pipe or a Unix socket; use channel = tcp or device",
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
    /// A TCP connection of the two programs.
    Tcp,
    /// A pair of stream sockets of the Unix domain.
    Unix,
    Pipe,
}

/// How a sender gives its file to the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendMethod {
    /// `read` into a buffer and `write` from it (the report's "fcntl").
    ReadWrite,
    /// The file is mapped, a buffer's bytes at a time. Into a socket or pipe it is
    /// written from there; for the device it is copied into the driver's mapped
    /// buffer and sent by ioctl.
    Mmap,
    /// The published master, as it was printed. It maps a page of the file and one of
    /// the device, and for each buffer copies from the beginning of the one to the
    /// beginning of the other and sends from there. It never unmaps the device. So it
    /// sends the right bytes only if a buffer is a page, and its mappings run out.
    /// Elsewhere than through the device, memory stands in for the device's page.
    PublishedMmap,
    /// The same without its defects: it copies what follows, unmaps the device's page,
    /// and looks up the entry of the file's page while that is mapped.
    MendedMmap,
    Sendfile,
    /// `splice`, through a pipe where the channel is none.
    Splice,
    /// `read` into a buffer and `send` with `MSG_ZEROCOPY`; TCP only.
    Zerocopy,
    IoUring,
}

/// How a receiver takes what comes into its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMethod {
    /// `read` into a buffer and `write` from it (the report's "fcntl").
    ReadWrite,
    /// The file is grown and mapped, and filled from the channel: by `read` into
    /// the mapping, or for the device from the driver's mapped buffer.
    Mmap,
    /// The published slave: `read` into a buffer, from which it copies into a mapping
    /// of the file. Whenever the mapped window is full it unmaps it, grows the file by
    /// another and maps that; in the end it cuts the file to its length.
    PublishedMmap,
    /// `splice`, through a pipe where the channel is none.
    Splice,
}

/// Whether the device logs page-table entries: the published driver wrote each entry that
/// a program looked up to the kernel log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageLog {
    Off,
    /// A line for each page that is sent, and two for each window that is received.
    On,
}

/// How the kernel's sockets of the device are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketMode {
    Sync,
    /// The same with `FASYNC` in the socket's flags, which nothing reads there:
    /// the published asynchronous version.
    Fasync,
    /// Calls are queued, and a worker sends and receives without waiting.
    Async,
}

/// Which ends of a transfer a probe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransferPart {
    Both,
    /// The sender, whose partner is on another host and connects to it.
    Sender {
        /// Where the sender waits for it.
        listen: IpAddr,
    },
    /// The receiver, whose partner is on another host.
    Receiver {
        connect: IpAddr,
    },
}
