//! Virtio serial ports, which connect the guest to the host.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use toll_wire::MESSAGE_BYTES_MAX;

use super::setup::wait_for;

#[derive(Debug)]
pub struct Port {
    file: File,
    rest: Vec<u8>,
}

impl Port {
    pub fn open(name: &str) -> Result<Self, String> {
        let device = wait_for(|| find(name)).ok_or_else(|| {
            format!("cannot find the port {name}; use a kernel with virtio_console")
        })?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(&device)
            .map_err(|error| format!("cannot open {}: {error}", device.display()))?;
        Ok(Self {
            file,
            rest: Vec::new(),
        })
    }

    /// Reads the next line. Returns `None` if the host is gone or the line is
    /// too long. The inner error says why a line cannot be used.
    pub fn line(&mut self) -> Option<Result<String, String>> {
        let mut chunk = vec![0_u8; 64 << 10];
        let mut scanned = 0;
        loop {
            if let Some(end) = self.rest[scanned..].iter().position(|byte| *byte == b'\n') {
                let behind = self.rest.split_off(scanned + end + 1);
                let mut line = std::mem::replace(&mut self.rest, behind);
                line.pop();
                return Some(String::from_utf8(line).map_err(|error| error.to_string()));
            }
            scanned = self.rest.len();
            if scanned > MESSAGE_BYTES_MAX {
                return None;
            }
            match self.file.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.rest.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    pub fn say(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Reads some bytes; 0 if the host is gone.
    pub fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.file.read(chunk)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Finds the device of a port. Links with the ports' names are made by udev,
/// which a guest does not have.
fn find(name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let has_name =
        |path: &Path| fs::read_to_string(path.join("name")).is_ok_and(|text| text.trim() == name);
    let entry = entries.flatten().find(|entry| has_name(&entry.path()))?;
    Some(Path::new("/dev").join(entry.file_name())).filter(|path| path.exists())
}
