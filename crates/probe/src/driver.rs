//! Kernel modules, inserted for a trial and removed after it, and the driver of
//! one of them, `toll_primes`.
//!
//! Architecture invariant: a module goes into a guest only. The probe is the
//! guest's first process, which it is nowhere else.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::system::{delete_module, finit_module};
use toll_wire::Failure;
use toll_wire::guest::MODULES_DIRECTORY;

use crate::failure;

/// What the driver `toll_primes` is reached by.
const DEVICE: &str = "/dev/toll_primes";
/// Where modules have their parameters, some of which are results.
const PARAMETERS: &str = "/sys/module";

const EMPTY: libc::Ioctl = 0xe700;
const COUNT: libc::Ioctl = 0xc040_e701;
const COPY: libc::Ioctl = 0x4010_e702;

/// `struct toll_primes` of `kernel/uapi/toll_primes.h`, where the fields are
/// described.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TollPrimes {
    pub n: u32,
    pub flags: u32,
    pub random: u32,
    pub allocation: u32,
    pub seed: u64,
    pub primes: u64,
    pub allocate_ns: u64,
    pub draw_ns: u64,
    pub count_ns: u64,
    pub reserved: u64,
}

#[repr(C)]
struct TollCopy {
    address: u64,
    length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleName {
    TollPrimes,
    Tolldev,
    Master,
    Slave,
}

impl ModuleName {
    fn name(self) -> &'static CStr {
        match self {
            Self::TollPrimes => c"toll_primes",
            Self::Tolldev => c"tolldev",
            Self::Master => c"master",
            Self::Slave => c"slave",
        }
    }

    /// The module whose symbols it uses, which is inserted first.
    fn needs(self) -> Option<Self> {
        match self {
            Self::TollPrimes | Self::Tolldev => None,
            Self::Master | Self::Slave => Some(Self::Tolldev),
        }
    }

    pub fn text(self) -> &'static str {
        self.name().to_str().expect("the names are ASCII")
    }

    pub fn file(self) -> Result<ModuleFile, Failure> {
        if !is_first_process() {
            return Err(failure::unsupported(
                "cannot insert a module: this is no guest of toll's; run it in one".to_owned(),
            ));
        }
        let path = Path::new(MODULES_DIRECTORY).join(format!("{}.ko", self.text()));
        let file = File::open(path).map_err(|error| {
            failure::unsupported(format!(
                "cannot insert the module {}: {}; boot a kernel for which the modules are built",
                self.text(),
                failure::reason(&error)
            ))
        })?;
        let needed = self.needs().map(Self::file).transpose()?;
        Ok(ModuleFile {
            name: self,
            file,
            needed: needed.map(Box::new),
        })
    }
}

pub struct ModuleFile {
    name: ModuleName,
    file: File,
    needed: Option<Box<ModuleFile>>,
}

impl ModuleFile {
    /// Inserts the module with parameters such as `n=100` (finit_module(2)). One
    /// that a killed trial has left is removed first.
    pub fn insert(&self, parameters: &CStr) -> Result<Module, Failure> {
        let name = self.name;
        if let Some(needed) = &self.needed {
            needed.insert_shared()?;
        }
        let inserted = match finit_module(&self.file, parameters, 0) {
            Err(Errno::EXIST) => {
                remove(name);
                finit_module(&self.file, parameters, 0)
            }
            other => other,
        };
        match inserted {
            Ok(()) => Ok(Module { name }),
            Err(errno) => Err(refused(name, errno)),
        }
    }

    /// Inserts a module that others use, unless it is there already.
    fn insert_shared(&self) -> Result<(), Failure> {
        match finit_module(&self.file, c"", 0) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(refused(self.name, errno)),
        }
    }
}

fn refused(name: ModuleName, errno: Errno) -> Failure {
    failure::failed(format!(
        "cannot insert the module {}: {}; see the kernel log",
        name.text(),
        failure::reason(&errno.into())
    ))
}

pub struct Module {
    name: ModuleName,
}

impl Module {
    pub fn insert(name: ModuleName, parameters: &CStr) -> Result<Self, Failure> {
        name.file()?.insert(parameters)
    }

    pub fn parameter(&self, name: &str) -> Result<u64, Failure> {
        let module = Path::new(PARAMETERS).join(self.name.text());
        let path = module.join("parameters").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.trim().parse().map_err(|_| {
            failure::instrument(format!(
                "cannot read {}: it is no number; use modules of this version",
                path.display()
            ))
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        remove(self.name);
        if let Some(needed) = self.name.needs() {
            // It stays as long as another module uses it.
            remove(needed);
        }
    }
}

fn remove(name: ModuleName) {
    // What is in use stays, and the next insertion tells.
    let _ = delete_module(name.name(), libc::O_NONBLOCK);
}

/// The device of `toll_primes`.
pub struct Driver {
    // Closed before the module goes.
    file: File,
    _module: Module,
}

impl Driver {
    pub fn open() -> Result<Self, Failure> {
        let module = Module::insert(ModuleName::TollPrimes, c"")?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(DEVICE)
            .map_err(|error| {
                failure::failed(format!(
                    "cannot open {DEVICE}: {}; see the kernel log",
                    failure::reason(&error)
                ))
            })?;
        Ok(Self {
            file,
            _module: module,
        })
    }

    #[inline]
    pub fn empty(&self) -> std::io::Result<()> {
        // SAFETY: the request takes no argument.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), EMPTY, 0) })
    }

    /// Has the driver copy bytes into a buffer of its own.
    #[inline]
    pub fn copy(&self, bytes: &[u8]) -> std::io::Result<()> {
        let copy = TollCopy {
            address: bytes.as_ptr().expose_provenance() as u64,
            length: bytes.len() as u64,
        };
        // SAFETY: the driver reads `copy` and the bytes it names, both alive.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), COPY, &raw const copy) })
    }

    pub fn count(&self, request: &mut TollPrimes) -> std::io::Result<()> {
        // SAFETY: the driver reads and writes `request`, of the layout that the
        // request's number carries the size of.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), COUNT, &raw mut *request) })
    }
}

fn checked(status: libc::c_int) -> std::io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn is_first_process() -> bool {
    let identity = |path: &str| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let first = identity("/proc/1/exe");
    first.is_some() && first == identity("/proc/self/exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_have_the_numbers_of_the_header() {
        let request = |direction: u64, number: u64, size: usize| {
            (direction << 30) | ((size as u64) << 16) | (0xe7 << 8) | number
        };
        assert_eq!(EMPTY, request(0, 0, 0));
        assert_eq!(COUNT, request(3, 1, size_of::<TollPrimes>()));
        assert_eq!(COPY, request(1, 2, size_of::<TollCopy>()));
        assert_eq!(size_of::<TollPrimes>(), 64);
    }

    #[test]
    fn no_module_goes_into_a_machine_whose_first_process_is_another() {
        for name in [
            ModuleName::TollPrimes,
            ModuleName::Tolldev,
            ModuleName::Master,
            ModuleName::Slave,
        ] {
            let Err(failure) = Module::insert(name, c"") else {
                panic!("{name:?} was inserted");
            };
            assert_eq!(failure.kind, toll_wire::FailureKind::Unsupported);
        }
    }
}
