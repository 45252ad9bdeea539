//! Addresses of this machine's network interfaces, from getifaddrs(3), and
//! their gateways, from `/proc/net`.
//!
//! Both are those of this process's network namespace, whatever `/sys` shows.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, socket};
use toll_observe::interfaces::{Address, Interface, Report, State, default_routes, prefix_length};

/// All interfaces with what is known of them.
pub fn interfaces() -> io::Result<Report> {
    let mut interfaces: Vec<Interface> = Vec::new();
    // Asking for an MTU takes a socket, of whatever kind.
    let asked = socket(
        AddressFamily::Unix,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    for entry in getifaddrs()? {
        // An IPv4 address may have a label of its own, such as `eth0:1`.
        let name = entry.interface_name.split(':').next().unwrap_or_default();
        let known = interfaces.iter().position(|known| known.name == name);
        let at = known.unwrap_or_else(|| {
            interfaces.push(Interface {
                name: name.to_owned(),
                index: nix::net::if_::if_nametoindex(name).unwrap_or_default(),
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

/// A routing table. A kernel without the protocol has none, which is no fault.
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

fn state(flags: InterfaceFlags) -> State {
    match flags {
        flags if !flags.contains(InterfaceFlags::IFF_UP) => State::Down,
        flags if !flags.contains(InterfaceFlags::IFF_RUNNING) => State::NoCarrier,
        _ => State::Up,
    }
}

fn address(entry: &InterfaceAddress) -> Option<Address> {
    let ip = |address: &Option<SockaddrStorage>| address.as_ref().and_then(ip);
    let address = ip(&entry.address)?;
    let netmask = ip(&entry.netmask);
    let prefix_length = netmask.and_then(prefix_length);
    // getifaddrs(3) has one member for both. It holds the address itself where
    // neither was set, and on any link a peer where the network has one host.
    let other = |other| ip(other).filter(|other| *other != address);
    let (broadcast, peer) = match (other(&entry.broadcast), other(&entry.destination)) {
        (Some(other), None) if prefix_length == Some(32) => (None, Some(other)),
        both => both,
    };
    Some(Address {
        address,
        prefix_length,
        netmask,
        broadcast,
        peer,
    })
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

/// An Ethernet address; tunnels put other things in its place, and the loopback
/// zeros.
fn link_address(entry: &InterfaceAddress) -> Option<String> {
    let link = entry.address.as_ref()?.as_link_addr()?;
    let bytes = link
        .addr()
        .filter(|bytes| link.halen() == bytes.len() && *bytes != [0; 6])?;
    let digits = bytes.map(|byte| format!("{byte:02x}"));
    Some(digits.join(":"))
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
    // SAFETY: the request is this function's own and of the kind that this
    // call reads and writes.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    // SAFETY: every bit pattern is a number, and the call writes this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    (result == 0).then(|| u32::try_from(mtu).ok()).flatten()
}
