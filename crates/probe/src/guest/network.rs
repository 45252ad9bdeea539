//! The network interfaces of a guest.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, socket};

/// `struct ifreq` of netdevice(7) in bytes: what is asked for is at the beginning
/// of a union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

impl InterfaceRequest {
    fn of(interface: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        // A zero byte stands behind the name.
        if interface.len() >= name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        name[..interface.len()].copy_from_slice(interface.as_bytes());
        let value = [0; 24];
        Ok(Self { name, value })
    }

    fn ask(&mut self, control: &OwnedFd, code: libc::Ioctl) -> io::Result<()> {
        // SAFETY: the codes used here read and write one `struct ifreq`, which
        // this is in size, and which lives until the call is over.
        match unsafe { libc::ioctl(control.as_raw_fd(), code, std::ptr::from_mut(self)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Brings up the loopback interface, which gets its addresses 127.0.0.1 and ::1
/// by that.
///
/// # Errors
/// If the kernel has none.
pub fn loopback() -> Result<(), String> {
    up("lo").map_err(|error| {
        format!("cannot bring the loopback interface up: {error}; use a kernel with CONFIG_INET")
    })
}

/// Switches an interface on.
fn up(interface: &str) -> io::Result<()> {
    let control = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = InterfaceRequest::of(interface)?;
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
    }
}
