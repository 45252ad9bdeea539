//! Kernel modules, inserted for a trial and removed after it, and the driver of
//! one of them, `toll_primes`.
//!
//! Architecture invariant: a module is inserted only in a guest. Only there is the
//! probe the first process.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};
use rustix::system::{delete_module, finit_module};
use toll_wire::Failure;
use toll_wire::guest::MODULES_DIRECTORY;

use crate::failure::{self, OrFail};

/// Device file of the driver `toll_primes`.
const DEVICE: &str = "/dev/toll_primes";
/// Directory of the modules' parameters, some of which are results.
const PARAMETERS: &str = "/sys/module";

const SEE_LOG: &str = "see the kernel log";

/// `TOLL_PRIMES_EMPTY`: does nothing.
const EMPTY: Opcode = opcode::none(0xe7, 0);
/// `TOLL_PRIMES_COUNT`: counts primes.
const COUNT: Opcode = opcode::read_write::<TollPrimes>(0xe7, 1);
/// `TOLL_PRIMES_COPY`: copies bytes into the driver's buffer.
const COPY: Opcode = opcode::write::<TollCopy>(0xe7, 2);

/// `struct toll_primes` of `kernel/uapi/toll_primes.h`, which describes the fields.
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

/// Modules of this program's kernel sources. `tolldev` has what the two devices share,
/// and is inserted before them.
pub const PRIMES: &CStr = c"toll_primes";
pub const MASTER: &CStr = c"master";
pub const SLAVE: &CStr = c"slave";
const TOLLDEV: &CStr = c"tolldev";

fn text(name: &'static CStr) -> &'static str {
    name.to_str().expect("the names are ASCII")
}

pub struct ModuleFile {
    name: &'static CStr,
    file: File,
    /// The file of `tolldev`, if the module needs it.
    shared: Option<File>,
}

impl ModuleFile {
    pub fn open(name: &'static CStr) -> Result<Self, Failure> {
        if !is_first_process() {
            return Err(failure::unsupported(
                "cannot insert a module: this is not a guest of toll; run the trial in a guest",
            ));
        }
        let open = |name| {
            let path = Path::new(MODULES_DIRECTORY).join(format!("{}.ko", text(name)));
            let advice = "boot a kernel for which the modules are built";
            File::open(path).unsupported_by(inserting(name), advice)
        };
        Ok(Self {
            name,
            file: open(name)?,
            shared: (name != PRIMES).then(|| open(TOLLDEV)).transpose()?,
        })
    }

    /// Inserts the module with parameters such as `n=100` (finit_module(2)). A module
    /// left by a killed trial is removed first.
    pub fn insert(&self, parameters: &CStr) -> Result<Module, Failure> {
        let name = self.name;
        if let Some(shared) = &self.shared {
            match finit_module(shared, c"", 0) {
                Ok(()) | Err(Errno::EXIST) => {}
                refused => refused.failed_by(inserting(TOLLDEV), SEE_LOG)?,
            }
        }
        let inserted = match finit_module(&self.file, parameters, 0) {
            Err(Errno::EXIST) => {
                remove(name);
                finit_module(&self.file, parameters, 0)
            }
            other => other,
        };
        inserted.failed_by(inserting(name), SEE_LOG)?;
        Ok(Module { name })
    }
}

fn inserting(name: &'static CStr) -> String {
    format!("insert the module {}", text(name))
}

/// An inserted module, removed when this value is dropped.
pub struct Module {
    name: &'static CStr,
}

impl Module {
    pub fn insert(name: &'static CStr, parameters: &CStr) -> Result<Self, Failure> {
        ModuleFile::open(name)?.insert(parameters)
    }

    pub fn parameter(&self, name: &str) -> Result<u64, Failure> {
        let module = Path::new(PARAMETERS).join(text(self.name));
        let path = module.join("parameters").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.trim().parse().map_err(|_| {
            failure::instrument(format!(
                "cannot read {}: it is not a number; use modules of this version",
                path.display()
            ))
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        remove(self.name);
        if self.name != PRIMES {
            // `tolldev` stays as long as another module uses it.
            remove(TOLLDEV);
        }
    }
}

fn remove(name: &'static CStr) {
    // A module in use stays, and the next insertion reports that.
    let _ = delete_module(name, libc::O_NONBLOCK);
}

pub struct Driver {
    // Closed before the module is removed.
    file: File,
    _module: Module,
}

impl Driver {
    pub fn open() -> Result<Self, Failure> {
        let module = Module::insert(PRIMES, c"")?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(DEVICE)
            .failed_by(format_args!("open {DEVICE}"), SEE_LOG)?;
        Ok(Self {
            file,
            _module: module,
        })
    }

    #[inline]
    pub fn empty(&self) -> std::io::Result<()> {
        // SAFETY: the request takes no argument.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), EMPTY.into(), 0) })
    }

    /// Makes the driver copy bytes into its own buffer.
    #[inline]
    pub fn copy(&self, bytes: &[u8]) -> std::io::Result<()> {
        let copy = TollCopy {
            address: bytes.as_ptr().expose_provenance() as u64,
            length: bytes.len() as u64,
        };
        // SAFETY: the driver reads `copy` and the bytes that it names; both are alive.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), COPY.into(), &raw const copy) })
    }

    pub fn count(&self, request: &mut TollPrimes) -> std::io::Result<()> {
        // SAFETY: the driver reads and writes `request`, whose size the request's
        // number encodes.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), COUNT.into(), &raw mut *request) })
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
        assert_eq!((EMPTY, COUNT, COPY), (0xe700, 0xc040_e701, 0x4010_e702));
    }

    #[test]
    fn no_module_goes_into_a_machine_whose_first_process_is_another() {
        for name in [PRIMES, MASTER, SLAVE] {
            let Err(failure) = Module::insert(name, c"") else {
                panic!("{name:?} was inserted");
            };
            assert_eq!(failure.kind, toll_wire::FailureKind::Unsupported);
        }
    }
}
