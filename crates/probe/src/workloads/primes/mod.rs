//! The primes workload: the same counting in user space, in a system call, in a
//! module and in a BPF program.
//!
//! In each place, memory for the numbers is allocated, the numbers are drawn,
//! and the primes among them are counted by trial division. The machine code of
//! drawing and counting is the same everywhere except in BPF, which has its
//! own. The time of each part is reported in addition to the total time.

mod bpf;
mod core;
mod counted;
mod expected;
mod kernel;
mod map;
mod print;
pub mod process;
mod user;

use std::mem::MaybeUninit;

use toll_wire::{
    Failure, PrimesAllocation, PrimesClock, PrimesPlacement, PrimesRequest, Printing, RandomSource,
    Request, Sample, TrialData,
};

use self::bpf::BpfCounter;
pub use self::counted::Counted;
use self::expected::Expected;
pub use self::kernel::KMALLOC_N_MAX;
use self::kernel::{AtLoad, Way, count_as_published};
use self::print::Printer;
use self::process::Process;
use crate::clock::{self, gettimeofday_ns};
use crate::counters::Inherit;
use crate::driver::Driver;
use crate::failure;
use crate::meter::{Meter, put};
use crate::trial::Trial;
use crate::usage::{Scope, Usage};

pub fn run(request: &Request, primes: &PrimesRequest) -> Result<TrialData, Failure> {
    check(primes)?;
    let mut place = Place::new(primes)?;
    let expected = Expected::new(primes.n);
    let inherit = match primes.placement {
        PrimesPlacement::UserProcess => Inherit::OnExec,
        _ => Inherit::No,
    };
    let trial = Trial::counting(request, Scope::Thread, inherit);
    user::seed_rand(primes.seed);
    trial.repeat(|meter| {
        let (sample, counted) = sample(&mut place, primes, meter)?;
        place.check(primes, &expected, counted)?;
        Ok(sample)
    })
}

fn check(primes: &PrimesRequest) -> Result<(), Failure> {
    let is_usual = primes.allocation == PrimesAllocation::Usual;
    let is_bulk = primes.random == RandomSource::Bulk;
    let prints = primes.printing == Printing::Inside;
    let obstacle = match primes.placement {
        PrimesPlacement::User | PrimesPlacement::UserProcess | PrimesPlacement::Bpf
            if !is_usual =>
        {
            "only the kernel has other ways to allocate"
        }
        PrimesPlacement::UserProcess if !prints => "a process always prints n and its count",
        PrimesPlacement::Bpf if prints => "the BPF program prints nothing",
        PrimesPlacement::SyscallPublished if !is_bulk || !prints || !is_usual => {
            "the published system call draws in bulk, allocates by kmalloc and prints n"
        }
        PrimesPlacement::SyscallPublished if primes.clock == PrimesClock::Inside => {
            "the published system call returns only the count"
        }
        PrimesPlacement::ModuleLoad if !is_bulk || !prints || !is_usual => {
            "at load the module draws in bulk, allocates by kmalloc and prints n and the count"
        }
        _ => return Ok(()),
    };
    Err(failure::unsupported(format!(
        "cannot count primes this way: {obstacle}; choose other parameters"
    )))
}

enum Place {
    User(Option<Printer>),
    Process(Process),
    Published,
    Kernel(Way),
    AtLoad(AtLoad),
    Bpf(BpfCounter),
}

impl Place {
    fn new(primes: &PrimesRequest) -> Result<Self, Failure> {
        Ok(match primes.placement {
            PrimesPlacement::User => Self::User(match primes.printing {
                Printing::None => None,
                Printing::Inside => Some(Printer::on_pipe()?),
            }),
            PrimesPlacement::UserProcess => Self::Process(Process::new()?),
            PrimesPlacement::SyscallPublished => Self::Published,
            PrimesPlacement::Syscall => Self::Kernel(Way::Syscall),
            PrimesPlacement::Module => Self::Kernel(Way::Ioctl(Driver::open()?)),
            PrimesPlacement::ModuleLoad => Self::AtLoad(AtLoad::new(primes.n)?),
            PrimesPlacement::Bpf => Self::Bpf(BpfCounter::new(primes.n)?),
        })
    }

    /// Performs the whole timed operation. [`Place::settle`] later reads the
    /// count that a module made when it was inserted.
    fn count(&mut self, primes: &PrimesRequest) -> Result<(Counted, Option<Usage>), Failure> {
        let counted = match self {
            Self::User(printer) => {
                user::count_primes(primes.n, primes.random, primes.seed, printer.as_mut())?
            }
            Self::Process(process) => {
                let run = process.run(primes)?;
                return Ok((run.counted, Some(run.usage)));
            }
            Self::Published => count_as_published(primes)?,
            Self::Kernel(way) => way.count(primes)?,
            Self::AtLoad(module) => {
                module.insert()?;
                Counted::from_primes(0)
            }
            Self::Bpf(counter) => count_by_bpf(counter, primes)?,
        };
        Ok((counted, None))
    }

    /// Adds what can be read only after the timed region.
    fn settle(&mut self, counted: Counted) -> Result<Counted, Failure> {
        match self {
            Self::AtLoad(module) => module.settle(),
            Self::Bpf(counter) => Ok(Counted {
                count_ns: Some(counter.count_ns()),
                ..counted
            }),
            _ => Ok(counted),
        }
    }

    fn check(
        &mut self,
        primes: &PrimesRequest,
        expected: &Expected,
        counted: Counted,
    ) -> Result<(), Failure> {
        match self {
            Self::User(Some(printer)) => printer.check(counted.primes)?,
            Self::Bpf(counter) => {
                let held = expected.count(counter.numbers());
                if held != counted.primes {
                    return Err(failure::failed(format!(
                        "cannot trust the count: {} primes instead of {held} in its numbers; see \
                         the kernel log",
                        counted.primes
                    )));
                }
            }
            _ => {}
        }
        expected.check(primes, counted.primes)
    }
}

fn count_by_bpf(counter: &mut BpfCounter, primes: &PrimesRequest) -> Result<Counted, Failure> {
    let started = clock::now_ns();
    user::fill(uninit(counter.numbers()), primes.random, primes.seed)?;
    let draw_ns = clock::now_ns() - started;
    Ok(Counted {
        draw_ns: Some(draw_ns),
        ..Counted::from_primes(counter.run()?)
    })
}

fn uninit(numbers: &mut [u32]) -> &mut [MaybeUninit<u32>] {
    let (start, length) = (numbers.as_mut_ptr().cast(), numbers.len());
    // SAFETY: both types have the same layout, and whatever fills the places
    // stores numbers there.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

fn sample(
    place: &mut Place,
    primes: &PrimesRequest,
    meter: &mut Meter,
) -> Result<(Sample, Counted), Failure> {
    let asks_gettimeofday = primes.clock == PrimesClock::Gettimeofday;
    let ((before, result, after), measured) = meter.measure(|| {
        let before = asks_gettimeofday.then(gettimeofday_ns);
        let result = place.count(primes);
        (before, result, asks_gettimeofday.then(gettimeofday_ns))
    })?;
    let (counted, usage) = result?;
    let counted = place.settle(counted)?;
    let (measured_ns, idle_ns) = (measured.duration_ns, measured.idle_ns);
    let mut sample = measured.into_sample();
    let used = usage.iter().flat_map(Usage::metrics);
    for (name, value) in used.chain(counted.parts()) {
        put(&mut sample, name, value as f64);
    }
    put(&mut sample, "numbers", f64::from(primes.n));
    put(&mut sample, "primes", counted.primes as f64);
    let inside_ns = counted.inside_ns();
    if inside_ns > 0 {
        // Time of entry and return, always by the probe's clock.
        let way_ns = measured_ns.saturating_sub(inside_ns);
        put(&mut sample, "way_duration_ns", way_ns as f64);
    }
    let duration_ns = match (primes.clock, before, after) {
        (PrimesClock::Inside, ..) => inside_ns,
        // NTP may have set the clock back meanwhile.
        (_, Some(before), Some(after)) => after.saturating_sub(before + idle_ns),
        _ => measured_ns,
    };
    put(&mut sample, "duration_ns", duration_ns as f64);
    Ok((sample, counted))
}
