//! Messages of the form `cannot X: why; what to do`.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use toll_probe::copy::mover::CallError;
use toll_probe::device::End;
use toll_probe::failure::{advice, cannot, reason};

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
        Errno::CONNREFUSED => "start master there first, or wait for it by --timeout",
        Errno::TIMEDOUT => "see whether the partner runs there, or raise --timeout",
        Errno::ADDRINUSE => "end the program that uses the port, or choose another by --port",
        Errno::ADDRNOTAVAIL => "name an address of this machine",
        Errno::HOSTUNREACH | Errno::NETUNREACH => {
            "check the address, and that its network interface is up"
        }
        Errno::AFNOSUPPORT => "boot a kernel that has this kind of address",
        _ => advice(&error),
    };
    cannot(action, &error, what_to_do)
}

pub fn of_transfer(action: &str, path: &Path, partner: &str, error: &CallError) -> String {
    let what = format!("cannot {action} {}", path.display());
    let is_of_channel = matches!(error.call, "send" | "receive" | "write" | "finish");
    match (error.call, error.errno) {
        ("read", None) => format!(
            "{what}: it has become shorter meanwhile; see whether another program writes it"
        ),
        ("send" | "receive", None) => ended(&what, partner),
        (_, Some(Errno::CONNRESET | Errno::PIPE)) if is_of_channel => ended(&what, partner),
        (_, Some(Errno::TIMEDOUT)) => format!(
            "{what}: nothing came or went for as long as --timeout allows; see what the {partner} \
             waits for"
        ),
        (call, Some(errno)) => {
            let error = io::Error::from(errno);
            format!("{what}: {call}: {}; {}", reason(&error), advice(&error))
        }
        (call, None) => format!("{what}: {call} moved nothing; see the kernel log"),
    }
}

fn ended(what: &str, partner: &str) -> String {
    format!("{what}: the {partner} ended the connection before it was complete; see its message")
}

/// What a partner is that says what no partner says.
pub fn of_stranger(what: &str, partner: &str) -> String {
    format!(
        "cannot {what}: what answers there is no {partner} of this version; check address and port"
    )
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
        let told = |error| of_transfer("send", Path::new("f"), "slave", &error);
        for error in [
            CallError::of("send", Errno::PIPE),
            CallError::of("write", Errno::CONNRESET),
            CallError::no_progress("receive"),
        ] {
            assert!(told(error).contains("the slave ended the connection"));
        }
        assert!(told(CallError::no_progress("read")).contains("become shorter"));
        let full = told(CallError::of("write", Errno::NOSPC));
        assert_eq!(
            full,
            "cannot send f: write: no space left on device; free space there or lower the size"
        );
    }
}
