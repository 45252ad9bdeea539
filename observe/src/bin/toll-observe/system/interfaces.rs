//! Reads addresses of this machine's network interfaces from getifaddrs(3), and their
//! gateways from `/proc/net`.
//!
//! Both belong to this process's network namespace, whatever `/sys` shows.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use toll_observe::interfaces::{Address, Interface, Report, State, default_routes, prefix_length};

/// Lists all interfaces with their addresses and default routes.
pub fn interfaces() -> io::Result<Report> {
    let mut interfaces: Vec<Interface> = Vec::new();
    // Querying a number or an MTU takes a socket of any kind.
    let asked = socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for entry in Entries::read()?.iter() {
        // An IPv4 address may have its own label, such as `eth0:1`.
        let name = entry.name.split(':').next().unwrap_or_default();
        let known = interfaces.iter().position(|known| known.name == name);
        let at = known.unwrap_or_else(|| {
            interfaces.push(Interface {
                name: name.to_owned(),
                index: name_to_index(&asked, name).unwrap_or_default(),
                state: state(entry.flags),
                link_address: None,
                mtu_bytes: mtu_bytes(&asked, name),
                addresses: Vec::new(),
                default_routes: Vec::new(),
            });
            interfaces.len() - 1
        });
        let interface = &mut interfaces[at];
        interface.addresses.extend(address(&entry));
        interface.link_address = interface
            .link_address
            .take()
            .or_else(|| link_address(&entry));
    }
    interfaces.sort_by_key(|interface| interface.index);
    let mut notes = Vec::new();
    let routes = default_routes(
        &table("/proc/net/route", &mut notes),
        &table("/proc/net/ipv6_route", &mut notes),
    );
    for (name, route) in routes {
        let through = interfaces
            .iter_mut()
            .find(|interface| interface.name == name);
        if let Some(interface) = through {
            interface.default_routes.push(route);
        }
    }
    Ok(Report {
        version: 1,
        interfaces,
        notes,
    })
}

/// Reads a routing table. Without the protocol, the kernel has no table, which is not
/// an error.
fn table(path: &str, notes: &mut Vec<String>) -> String {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                notes.push(format!("gateways are missing: cannot read {path}: {error}"));
            }
            String::new()
        }
    }
}

fn state(flags: i32) -> State {
    match flags {
        flags if flags & libc::IFF_UP == 0 => State::Down,
        flags if flags & libc::IFF_RUNNING == 0 => State::NoCarrier,
        _ => State::Up,
    }
}

fn address(entry: &Entry) -> Option<Address> {
    let address = ip(entry.address)?;
    let netmask = ip(entry.netmask);
    let prefix_length = netmask.and_then(prefix_length);
    // getifaddrs(3) has one member for the broadcast address and the peer. The member
    // holds the address itself if neither was set. If the network has one host, it holds
    // a peer on any kind of link.
    let other = ip(entry.other).filter(|other| *other != address);
    let (broadcast, peer) = if entry.flags & libc::IFF_POINTOPOINT != 0 {
        (None, other)
    } else if entry.flags & libc::IFF_BROADCAST == 0 {
        (None, None)
    } else if prefix_length == Some(32) {
        (None, other)
    } else {
        (other, None)
    };
    Some(Address {
        address,
        prefix_length,
        netmask,
        broadcast,
        peer,
    })
}

fn ip(address: Option<EntryAddress>) -> Option<IpAddr> {
    match address {
        Some(EntryAddress::Ip(address)) => Some(address),
        _ => None,
    }
}

/// Returns the Ethernet address. Tunnels store other data in its place, and the
/// loopback zeros.
fn link_address(entry: &Entry) -> Option<String> {
    let Some(EntryAddress::Link(bytes)) = entry.address else {
        return None;
    };
    let digits = bytes.map(|byte| format!("{byte:02x}"));
    (bytes != [0; 6]).then(|| digits.join(":"))
}

/// An entry of the list: one address of an interface.
struct Entry {
    name: String,
    flags: i32,
    address: Option<EntryAddress>,
    netmask: Option<EntryAddress>,
    /// The broadcast address or the peer's address, depending on the flags.
    other: Option<EntryAddress>,
}

#[derive(Clone, Copy)]
enum EntryAddress {
    Ip(IpAddr),
    Link([u8; 6]),
}

/// A list that getifaddrs(3) returned, freed on drop.
struct Entries(*mut libc::ifaddrs);

impl Entries {
    fn read() -> io::Result<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: the call writes one pointer, into a local variable.
        match unsafe { libc::getifaddrs(&raw mut first) } {
            0 => Ok(Self(first)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let mut next = self.0;
        std::iter::from_fn(move || {
            // SAFETY: the list ends with a null pointer, and lives as long as `self`.
            let entry = unsafe { next.as_ref() }?;
            next = entry.ifa_next;
            // SAFETY: every entry has a name, which ends with a zero.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            Some(Entry {
                name: name.to_string_lossy().into_owned(),
                flags: entry.ifa_flags.cast_signed(),
                address: entry_address(entry.ifa_addr),
                netmask: entry_address(entry.ifa_netmask),
                other: entry_address(entry.ifa_ifu),
            })
        })
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: getifaddrs made the list, and no reference into it is kept.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// Reads an address from a list that [`Entries`] holds; `None` if it is missing or has
/// another family.
fn entry_address(address: *const libc::sockaddr) -> Option<EntryAddress> {
    // SAFETY: it is null, or an address that begins with its family.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is an IPv4 address.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let bytes = address.sin_addr.s_addr.to_ne_bytes();
            Some(EntryAddress::Ip(bytes.into()))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is an IPv6 address.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(EntryAddress::Ip(address.sin6_addr.s6_addr.into()))
        }
        libc::AF_PACKET => {
            // SAFETY: the family says that it is a link-layer address.
            let address = unsafe { address.cast::<libc::sockaddr_ll>().read_unaligned() };
            let bytes = address.sll_addr.first_chunk()?;
            (address.sll_halen == 6).then_some(EntryAddress::Link(*bytes))
        }
        _ => None,
    }
}

fn mtu_bytes(socket: &OwnedFd, name: &str) -> Option<u32> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 },
    };
    // The last byte stays zero.
    let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    for (place, byte) in room.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed();
    }
    // SAFETY: the request is a local variable of the type that this call
    // reads and writes.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    // SAFETY: every bit pattern is a valid number, and the call writes this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    (result == 0).then(|| u32::try_from(mtu).ok()).flatten()
}
