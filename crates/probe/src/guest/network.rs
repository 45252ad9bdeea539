//! Brings up the network interfaces of a guest.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, socket};
use toll_wire::guest::{PAIR_PREFIX_V4, PAIR_PREFIX_V6, PAIR_VARIABLE, PairSide};

use super::setup::wait_for;

const INTERFACES: &str = "/sys/class/net";

/// `struct ifreq` of netdevice(7) in bytes: the requested value is at the
/// beginning of a union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

impl InterfaceRequest {
    fn for_interface(interface: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        // The name needs a terminating zero byte.
        if interface.len() >= name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        name[..interface.len()].copy_from_slice(interface.as_bytes());
        let value = [0; 24];
        Ok(Self { name, value })
    }

    fn with_address(interface: &str, address: Ipv4Addr) -> io::Result<Self> {
        let mut request = Self::for_interface(interface)?;
        let family = libc::AF_INET as libc::sa_family_t;
        request.value[..2].copy_from_slice(&family.to_ne_bytes());
        request.value[4..8].copy_from_slice(&address.octets());
        Ok(request)
    }

    fn ask(&mut self, control: &OwnedFd, code: libc::Ioctl) -> io::Result<()> {
        // SAFETY: the codes used here read and write one `struct ifreq`, which
        // has this size and lives until the call returns.
        match unsafe { libc::ioctl(control.as_raw_fd(), code, std::ptr::from_mut(self)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Brings up the loopback interface, which then has its addresses 127.0.0.1
/// and ::1.
pub fn loopback() -> Result<(), String> {
    up("lo").map_err(|error| {
        format!("cannot bring the loopback interface up: {error}; use a kernel with CONFIG_INET")
    })
}

/// Brings up the card that connects the guest to its partner, if there is such a card.
pub fn card() -> Result<(), String> {
    let Some(word) = std::env::var_os(PAIR_VARIABLE) else {
        return Ok(());
    };
    let side = word.to_str().and_then(PairSide::from_word);
    let side = side.ok_or_else(|| {
        format!(
            "cannot set up the network card: a pair of guests has no side {}",
            word.display()
        )
    })?;
    let card = wait_for(|| interface_of(side)).ok_or_else(|| {
        "cannot reach the partner: no driver exposes the network card; use a kernel with virtio_net"
            .to_owned()
    })?;
    configure(&card, side).map_err(|error| {
        format!("cannot set up the network card {card}: {error}; use a kernel with CONFIG_IPV6")
    })
}

fn interface_of(side: PairSide) -> Option<String> {
    let mut entries = fs::read_dir(INTERFACES).ok()?.flatten();
    let card = entries.find(|entry| {
        let address = fs::read_to_string(entry.path().join("address"));
        address.is_ok_and(|address| address.trim() == side.hardware_address())
    });
    card?.file_name().into_string().ok()
}

fn configure(card: &str, side: PairSide) -> io::Result<()> {
    // Without duplicate address detection both addresses can be used at once.
    // There is no router to ask for, and the kernel's own packets would arrive
    // between the trials'.
    for (name, value) in [("accept_dad", "0"), ("accept_ra", "0"), ("autoconf", "0")] {
        fs::write(format!("/proc/sys/net/ipv6/conf/{card}/{name}"), value)?;
    }
    let control = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mask = Ipv4Addr::from_bits(u32::MAX << (u32::BITS - PAIR_PREFIX_V4));
    InterfaceRequest::with_address(card, side.ipv4())?.ask(&control, libc::SIOCSIFADDR)?;
    InterfaceRequest::with_address(card, mask)?.ask(&control, libc::SIOCSIFNETMASK)?;
    up(card)?;
    add_ipv6(card, side.ipv6())?;
    // The address stays tentative until a kernel thread has processed it.
    wait_for(|| UdpSocket::bind((side.ipv6(), 0)).ok())
        .map(drop)
        .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn add_ipv6(interface: &str, address: Ipv6Addr) -> io::Result<()> {
    let index = fs::read_to_string(format!("{INTERFACES}/{interface}/ifindex"))?;
    let index = index.trim().parse().map_err(io::Error::other)?;
    let request = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr {
            s6_addr: address.octets(),
        },
        ifr6_prefixlen: PAIR_PREFIX_V6,
        ifr6_ifindex: index,
    };
    let control = socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
    let code = libc::SIOCSIFADDR;
    // SAFETY: on a socket of this family the call reads one `in6_ifreq`, which
    // lives until the call returns.
    match unsafe { libc::ioctl(control.as_raw_fd(), code, std::ptr::from_ref(&request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn up(interface: &str) -> io::Result<()> {
    let control = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = InterfaceRequest::for_interface(interface)?;
    request.ask(&control, libc::SIOCGIFFLAGS)?;
    let [low, high, ..] = request.value;
    let flags = i32::from(u16::from_ne_bytes([low, high])) | libc::IFF_UP;
    request.value[..4].copy_from_slice(&flags.to_ne_bytes());
    request.ask(&control, libc::SIOCSIFFLAGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_interfaces_is_refused() {
        assert!(up("no-such-card").is_err());
        assert!(up("longer-than-any-name").is_err());
        assert_eq!(interface_of(PairSide::Main), None);
    }
}
