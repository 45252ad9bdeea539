//! Counts in a BPF program (bpf(2)).
//!
//! The numbers are in an array map that is mapped into the probe, which draws
//! them. The program is of the type that runs on demand
//! (`BPF_PROG_TYPE_SYSCALL`, Linux 5.14), so that one system call enters and
//! returns.

mod program;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use toll_wire::Failure;

use self::program::{
    COUNT_NS_OFFSET, CUT_SHORT, Instruction, NUMBERS_OFFSET, THREE_OFFSET, ZERO_OFFSET, assemble,
};
use super::map::SharedMap;
use crate::failure::{self, OrFail};

const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const PROG_RUN: libc::c_long = 10;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_SYSCALL: u32 = 31;
/// The kernel accepts a program of type `BPF_PROG_TYPE_SYSCALL` only as a sleepable one.
const PROG_SLEEPABLE: u32 = 1 << 4;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

const LOG_BYTES: usize = 64 << 10;

pub struct BpfCounter {
    memory: SharedMap,
    program: OwnedFd,
    n: u32,
}

impl BpfCounter {
    pub fn new(n: u32) -> Result<Self, Failure> {
        let length = NUMBERS_OFFSET + n as usize * size_of::<u32>();
        let map = create_map(length)
            .map_err(|error| unsupported("make a map for the numbers", &failure::reason(&error)))?;
        let mut memory = SharedMap::new(&map, length)
            .map_err(|error| unsupported("map the numbers", &failure::reason(&error)))?;
        memory.write_word(ZERO_OFFSET, 0);
        memory.write_word(THREE_OFFSET, 3);
        let program = load(&assemble(map.as_raw_fd(), n))?;
        Ok(Self { memory, program, n })
    }

    pub fn numbers(&mut self) -> &mut [u32] {
        self.memory.numbers_mut(NUMBERS_OFFSET, self.n as usize)
    }

    /// Runs the program and returns its count. Fails if the kernel cut a loop short.
    pub fn run(&self) -> Result<u64, Failure> {
        let mut attributes = ProgRun {
            prog_fd: self.program.as_raw_fd().cast_unsigned(),
            ..ProgRun::default()
        };
        bpf(PROG_RUN, &mut attributes).failed_by("run the BPF program", "see the kernel log")?;
        match attributes.retval {
            CUT_SHORT => Err(failure::instrument(
                "cannot trust the BPF program: the kernel cut a loop short; keep other \
                 work away from the machine",
            )),
            primes => Ok(u64::from(primes)),
        }
    }

    /// Returns the nanoseconds that the last run took by the program's own
    /// clock.
    pub fn count_ns(&self) -> u64 {
        self.memory.read_word(COUNT_NS_OFFSET)
    }
}

fn unsupported(what: &str, why: &str) -> Failure {
    failure::unsupported(format!(
        "cannot count primes by BPF: cannot {what}: {why}; use Linux 6.9 or newer with BPF, as root"
    ))
}

fn create_map(length: usize) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        map_type: MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: u32::try_from(length).expect("n is limited"),
        max_entries: 1,
        map_flags: MAP_MMAPABLE,
    };
    descriptor(bpf(MAP_CREATE, &mut attributes)?)
}

/// Loads a program. The verifier is asked for its log only if it refuses the
/// program: the log of an accepted one may be too long.
fn load(instructions: &[Instruction]) -> Result<OwnedFd, Failure> {
    let mut attributes = ProgLoad {
        prog_type: PROG_TYPE_SYSCALL,
        insn_cnt: u32::try_from(instructions.len()).expect("the program is short"),
        insns: instructions.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: PROG_SLEEPABLE,
    };
    let error = match bpf(PROG_LOAD, &mut attributes).and_then(descriptor) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    let mut log = vec![0u8; LOG_BYTES];
    attributes.log_level = 1;
    attributes.log_size = LOG_BYTES as u32;
    attributes.log_buf = log.as_mut_ptr().expose_provenance() as u64;
    let _ = bpf(PROG_LOAD, &mut attributes);
    Err(unsupported("load the program", &refusal(&error, &log)))
}

/// Returns why a program was refused: the verifier's last message, or else the
/// error.
fn refusal(error: &io::Error, log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let said = text
        .trim_end_matches('\0')
        .lines()
        .rfind(|line| !line.trim().is_empty() && !line.starts_with("processed "));
    match said {
        Some(line) => format!("{} ({})", failure::reason(error), line.trim()),
        None => failure::reason(error),
    }
}

/// Makes one bpf(2) call; `attributes` must be of the command's kind.
fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes at most `size_of::<T>()` bytes of
    // `attributes`, and what they point to is alive and of the length given.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

fn descriptor(number: libc::c_long) -> io::Result<OwnedFd> {
    let number = i32::try_from(number).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns
    // it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_what_the_verifier_said_last() {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        let log = b"0: R1=ctx()\nback-edge from 5 to 3\nprocessed 4 insns\n\0\0";
        assert_eq!(
            refusal(&error, log),
            "invalid argument (back-edge from 5 to 3)"
        );
        assert_eq!(refusal(&error, &[0; 8]), "invalid argument");
    }
}
