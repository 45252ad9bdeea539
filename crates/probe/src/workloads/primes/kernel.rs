//! Counting in the kernel: by system call or in the driver `toll_primes`.

use std::ffi::CString;
use std::io;

use toll_wire::{Failure, PrimesAllocation, PrimesRequest, Printing, RandomSource};

use super::counted::Counted;
use crate::driver::{Driver, Module, ModuleFile, PRIMES, TollPrimes};
use crate::failure;

/// System call `count_primes`, as published.
const COUNT_PRIMES: libc::c_long = 549;
/// System call `count_primes_with`.
const COUNT_PRIMES_WITH: libc::c_long = 550;

const PRINT: u32 = 1;

/// Largest number of values that `kmalloc` has room for: 4 MiB with pages of 4 KiB.
pub const KMALLOC_N_MAX: u32 = 1 << 20;

/// The way into the kernel.
pub enum Way {
    Syscall,
    Ioctl(Driver),
}

impl Way {
    pub fn count(&self, request: &PrimesRequest) -> Result<Counted, Failure> {
        let mut asked = asked(request);
        let result = match self {
            Self::Syscall => count_primes_with(&mut asked),
            Self::Ioctl(driver) => driver.count(&mut asked),
        };
        result.map_err(|error| cannot(request, COUNT_PRIMES_WITH, &error))?;
        Ok(Counted {
            primes: asked.primes,
            allocate_ns: Some(asked.allocate_ns),
            draw_ns: Some(asked.draw_ns),
            count_ns: Some(asked.count_ns),
            whole_ns: None,
        })
    }
}

fn asked(request: &PrimesRequest) -> TollPrimes {
    TollPrimes {
        n: request.n,
        flags: match request.printing {
            Printing::None => 0,
            Printing::Inside => PRINT,
        },
        random: match request.random {
            RandomSource::Seeded => 0,
            RandomSource::Bulk => 1,
            RandomSource::Each => 2,
        },
        allocation: match request.allocation {
            PrimesAllocation::Usual | PrimesAllocation::Kmalloc => 0,
            PrimesAllocation::Vmalloc => 1,
            PrimesAllocation::Kvmalloc => 2,
        },
        seed: match request.random {
            RandomSource::Seeded => request.seed,
            _ => 0,
        },
        ..TollPrimes::default()
    }
}

fn count_primes_with(request: &mut TollPrimes) -> io::Result<()> {
    // SAFETY: the kernel reads and writes `request`, whose size it is given.
    let status = unsafe {
        libc::syscall(
            COUNT_PRIMES_WITH,
            &raw mut *request,
            size_of::<TollPrimes>(),
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Counts by system call `count_primes`, which returns only the count.
pub fn count_as_published(request: &PrimesRequest) -> Result<Counted, Failure> {
    let n = request.n.cast_signed();
    // SAFETY: the kernel reads `n`, which lives until the call is over.
    let primes = unsafe { libc::syscall(COUNT_PRIMES, &raw const n) };
    match u64::try_from(primes) {
        Ok(primes) => Ok(Counted::from_primes(primes)),
        Err(_) => Err(cannot(request, COUNT_PRIMES, &io::Error::last_os_error())),
    }
}

fn cannot(request: &PrimesRequest, number: libc::c_long, error: &io::Error) -> Failure {
    let n = request.n;
    match error.raw_os_error() {
        Some(libc::ENOSYS) => failure::unsupported(format!(
            "cannot count primes by system call {number}: this kernel does not have it; \
             boot the kernel toll in a guest"
        )),
        Some(libc::ENOMEM) if n > KMALLOC_N_MAX => failure::unsupported(format!(
            "cannot count primes among {n} numbers: kmalloc has room for {KMALLOC_N_MAX}; choose \
             another allocation"
        )),
        _ => failure::failed_to(
            &format!("count primes among {n} numbers in the kernel"),
            error,
        ),
    }
}

/// The module `toll_primes`, which counts when it is inserted.
pub struct AtLoad {
    file: ModuleFile,
    parameters: CString,
    inserted: Option<Module>,
}

impl AtLoad {
    pub fn new(n: u32) -> Result<Self, Failure> {
        Ok(Self {
            file: ModuleFile::open(PRIMES)?,
            parameters: CString::new(format!("n={n}")).expect("digits have no zero byte"),
            inserted: None,
        })
    }

    /// Inserts the module, which counts before the call returns.
    pub fn insert(&mut self) -> Result<(), Failure> {
        self.inserted = Some(self.file.insert(&self.parameters)?);
        Ok(())
    }

    /// Reads what the module counted and removes it; untimed.
    pub fn settle(&mut self) -> Result<Counted, Failure> {
        let module = self.inserted.take().expect("the module was inserted");
        Ok(Counted {
            whole_ns: Some(module.parameter("duration_ns")?),
            ..Counted::from_primes(module.parameter("primes")?)
        })
    }
}
