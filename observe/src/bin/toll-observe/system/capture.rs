//! Captures packets on a network interface.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use toll_observe::dhcp::Packet;

/// Longest wait between two checks whether to stop capturing.
const NAP: Duration = Duration::from_millis(100);
/// Longest time to read packets that were still queued at the end. A limit is needed
/// because a busy interface always has more.
const REST: Duration = Duration::from_secs(1);
/// Length of the largest packet on any interface.
const PACKET_BYTES_MAX: usize = 1 << 18;
/// Link type of packets with an Ethernet header.
const LINK_ETHERNET: u16 = 1;
const LINK_RAW: u16 = 101;
/// Every protocol (`ETH_P_ALL`) in both directions, in network byte order.
const EVERY_PROTOCOL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A socket that sees all packets of an interface (packet(7)).
#[derive(Debug)]
pub struct Capture {
    socket: File,
    link: u16,
}

/// Limits at which a capture stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub time: Option<Duration>,
    pub packets: Option<u64>,
}

/// The reason why capturing on an interface failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deaf {
    NotPermitted(String),
    Failed(String),
}

/// Returns whether this network namespace has an interface of this name.
#[must_use]
pub fn is_interface(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && index(name).is_ok()
}

/// Returns an interface's number. Asks the kernel, because `/sys` may be that of
/// another network namespace.
fn index(name: &str) -> io::Result<u32> {
    let asked = socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(name_to_index(&asked, name)?)
}

/// Returns the interface's link type (linux/if_arp.h).
fn link_kind(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/type")).ok()?;
    text.trim().parse().ok()
}

impl Capture {
    /// Opens a packet socket on an interface.
    pub fn open(name: &str) -> Result<Self, Deaf> {
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Deaf::NotPermitted(format!(
                "cannot listen to {name}: {error}; run as root, or give toll the capability NET_RAW"
            )),
            _ => Deaf::Failed(format!("cannot listen to {name}: {error}")),
        };
        let index = index(name).map_err(|_| wrong(io::Error::from(io::ErrorKind::NotFound)))?;
        // Without a protocol the socket receives nothing until it is bound to the
        // interface.
        let socket = socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| wrong(error.into()))?;
        bind(&socket, index).map_err(wrong)?;
        // Packets of Ethernet and the loopback have an Ethernet header; packets of tunnels have
        // none. An interface without an entry in /sys counts as Ethernet.
        let link = match link_kind(name) {
            None | Some(1 | 772) => LINK_ETHERNET,
            Some(512 | 768 | 776 | 778 | 65534) => LINK_RAW,
            Some(other) => {
                return Err(Deaf::Failed(format!(
                    "cannot listen to {name}: its link type {other} is not supported; capture with \
                     tcpdump -w and read the file"
                )));
            }
        };
        Ok(Self {
            socket: File::from(socket),
            link,
        })
    }

    /// Passes packets to `on_packet` until a limit is reached or `is_over` returns
    /// true. `is_over` is called ten times a second. Packets that have arrived by then
    /// are passed as well.
    pub fn run(
        &mut self,
        limits: Limits,
        is_over: &mut dyn FnMut() -> bool,
        on_packet: &mut dyn FnMut(&Packet),
    ) -> io::Result<()> {
        let begin = Instant::now();
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut number = 0;
        let mut end: Option<Instant> = None;
        loop {
            let is_late = limits.time.is_some_and(|time| begin.elapsed() >= time);
            let is_full = limits.packets.is_some_and(|most| number >= most);
            if is_full || end.is_some_and(|end| end.elapsed() >= REST) {
                return Ok(());
            }
            if end.is_none() && (is_late || is_over()) {
                end = Some(Instant::now());
            }
            let nap = end.map_or(NAP, |_| Duration::ZERO);
            let nap = Timespec::try_from(nap).expect("short");
            let mut watched = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
            match poll(&mut watched, Some(&nap)) {
                Ok(0) if end.is_some() => return Ok(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let length = match self.socket.read(&mut bytes) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            number += 1;
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            on_packet(&Packet {
                number,
                time_ns: time
                    .ok()
                    .and_then(|time| u64::try_from(time.as_nanos()).ok()),
                link: self.link,
                bytes: &bytes[..length],
            });
        }
    }

    /// Returns the number of packets lost because they arrived faster than they were
    /// read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: both pointers lead to local variables, and the length is the size
        // of the value.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            statistics.tp_drops.into()
        } else {
            0
        }
    }
}

fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: EVERY_PROTOCOL,
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is a local variable, and the length is its size.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
