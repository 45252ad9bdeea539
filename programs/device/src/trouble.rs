//! Messages of the form `cannot X: why; what to do`.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use toll_probe::device::End;
use toll_probe::failure::{advice, cannot, reason};
use toll_probe::workloads::copy::mover::CallError;

pub fn of_file(action: &str, path: &Path, error: &io::Error) -> String {
    cannot(
        &format!("{action} {}", path.display()),
        error,
        advice(error),
    )
}

pub fn of_device(end: End, error: &io::Error) -> String {
    let what_to_do = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => {
            format!(
                "insert the modules tolldev and {} in a guest",
                end.module_name()
            )
        }
        _ => advice(error).to_owned(),
    };
    cannot(&format!("open {}", end.path()), error, &what_to_do)
}

pub fn of_connection(action: &str, errno: Errno) -> String {
    let error = io::Error::from(errno);
    let what_to_do = match errno {
        Errno::CONNREFUSED => "start master there first, or wait for it with --timeout",
        Errno::TIMEDOUT => "check whether the other program runs there, or raise --timeout",
        Errno::ADDRINUSE => "stop the program that uses the port, or choose another with --port",
        Errno::ADDRNOTAVAIL => "give an address of this machine",
        Errno::HOSTUNREACH | Errno::NETUNREACH => {
            "check the address, and that its network interface is up"
        }
        Errno::AFNOSUPPORT => "boot a kernel that supports this address family",
        _ => advice(&error),
    };
    cannot(action, &error, what_to_do)
}

pub fn of_transfer(action: &str, path: &Path, partner: &str, error: &CallError) -> String {
    let what = format!("cannot {action} {}", path.display());
    let is_of_channel = matches!(error.call, "send" | "receive" | "write" | "finish");
    match (error.call, error.errno) {
        ("read", None) => format!(
            "{what}: it became shorter during the transfer; check whether another program writes \
             it"
        ),
        ("send" | "receive", None) => ended(&what, partner),
        (_, Some(Errno::CONNRESET | Errno::PIPE)) if is_of_channel => ended(&what, partner),
        (_, Some(Errno::TIMEDOUT)) => format!(
            "{what}: nothing was sent or received within --timeout; check what the {partner} waits \
             for"
        ),
        (call, Some(errno)) => {
            let error = io::Error::from(errno);
            format!("{what}: {call}: {}; {}", reason(&error), advice(&error))
        }
        (call, None) => format!("{what}: {call} moved nothing; see the kernel log"),
    }
}

fn ended(what: &str, partner: &str) -> String {
    format!(
        "{what}: the {partner} ended the connection before the end; see the {partner}'s message"
    )
}

/// Returns the message for a peer that does not speak the protocol.
pub fn of_stranger(what: &str, partner: &str) -> String {
    format!("cannot {what}: the peer is not a {partner} of this version; check address and port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_told_with_its_module() {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(
            of_device(End::Slave, &error),
            "cannot open /dev/slave_device: no such file or directory; insert the modules tolldev and \
             slave in a guest"
        );
    }

    #[test]
    fn a_partner_that_is_gone_is_told_apart_from_a_file_that_shrinks() {
        let message = |error| of_transfer("send", Path::new("f"), "slave", &error);
        for error in [
            CallError::new("send", Errno::PIPE),
            CallError::new("write", Errno::CONNRESET),
            CallError::no_progress("receive"),
        ] {
            assert!(message(error).contains("the slave ended the connection"));
        }
        assert!(message(CallError::no_progress("read")).contains("became shorter"));
        let full = message(CallError::new("write", Errno::NOSPC));
        assert_eq!(
            full,
            "cannot send f: write: no space left on device; free space there or lower the size"
        );
    }
}
