//! Runs the command of a guest whose instructions are counted.
//!
//! External events arrive at a different instruction each time. So the command is in the archive
//! that the guest boots from, and its output goes to files in memory. The guest does not
//! communicate before the command has ended.
#![expect(
    clippy::disallowed_methods,
    reason = "the init starts the command that is counted"
)]

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use toll_wire::guest::{
    COUNT_FILE, CountedCommand, CountedEnd, ERROR_PORT, GuestAction, GuestEnd, OUTPUT_PORT,
    decode_guest_request,
};

use super::port::Port;
use super::processes::end_processes;
use super::symbols;
use crate::count_mark;
use crate::random::split_mix;
use crate::workloads::command::child;

/// File for the command's output: in the root directory, which is in memory.
const OUTPUT_FILE: &str = "/count.output";
const ERROR_FILE: &str = "/count.error";

/// Every command begins at a whole second of the guest's clock, so that the kernel's ticks hit the
/// same instructions of the command. At least a second passes before that, for work that the kernel
/// deferred during boot.
const PAUSE_S: i64 = 2;

const CHUNK_BYTES: usize = 64 << 10;

/// Runs the command and returns how it ended, its page faults and the kernel's
/// symbols.
pub fn run() -> Result<CountedEnd, String> {
    let text = fs::read_to_string(COUNT_FILE)
        .map_err(|error| format!("cannot read {COUNT_FILE}: {error}"))?;
    let request = decode_guest_request(&text).map_err(|error| error.to_string())?;
    let GuestAction::Count(asked) = request.action else {
        return Err(format!("cannot use {COUNT_FILE}: it requests no count"));
    };
    prepare(asked.seed).map_err(|error| format!("cannot prepare the guest: {error}"))?;
    let ended = start(&asked).and_then(|child| {
        let ended = child::wait(&child);
        count_mark::end();
        ended
    });
    let ended = ended.map_err(|error| {
        let program = asked.program.display();
        format!("cannot run {program} in the guest: {error}; add what it needs with --file")
    })?;
    end_processes();
    let length = |path: &str| fs::metadata(path).map_or(0, |file| file.len());
    Ok(CountedEnd {
        end: GuestEnd {
            status: ended.status(),
            signal: ended.signal(),
            output_bytes: length(OUTPUT_FILE),
            error_bytes: length(ERROR_FILE),
        },
        minor_faults: ended.usage.minor_faults,
        major_faults: ended.usage.major_faults,
        kernel_release: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        symbols: symbols::functions(),
    })
}

/// Sends the command's output to the host.
pub fn send_output() -> Result<(), String> {
    for (port, path) in [(OUTPUT_PORT, OUTPUT_FILE), (ERROR_PORT, ERROR_FILE)] {
        let mut port = Port::open(port)?;
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let mut send = || -> io::Result<()> {
            let mut file = File::open(path)?;
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(()),
                    count => port.send(&chunk[..count])?,
                }
            }
        };
        send().map_err(|error| format!("cannot send {path}: {error}"))?;
    }
    Ok(())
}

fn prepare(seed: u64) -> io::Result<()> {
    add_entropy(seed)?;
    fs::write("/proc/sys/kernel/randomize_va_space", "0")?;
    fs::create_dir_all("/tmp")?;
    fs::set_permissions("/tmp", Permissions::from_mode(0o1777))?;
    for (link, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
    ] {
        // The kernel may have made these links.
        let _ = std::os::unix::fs::symlink(target, link);
    }
    Ok(())
}

/// Seeds the guest's random numbers. Without an independent clock and without random numbers from
/// the CPU, a guest would gather entropy for a second (random(4)).
fn add_entropy(seed: u64) -> io::Result<()> {
    /// `_IOW('R', 3, int[2])`
    const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
    const WORDS: usize = 8;
    /// `struct rand_pool_info`
    #[repr(C)]
    struct Pool {
        entropy_bits: i32,
        bytes: i32,
        words: [u32; WORDS],
    }
    let mut state = seed;
    let pool = Pool {
        entropy_bits: 256,
        bytes: 32,
        words: [0; WORDS].map(|_| (split_mix(&mut state) >> 32) as u32),
    };
    let file = File::options().write(true).open("/dev/random")?;
    // SAFETY: the kernel reads the pool, whose length it gets, and keeps no reference to it.
    match unsafe { libc::ioctl(file.as_raw_fd(), RNDADDENTROPY as _, &pool) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn start(asked: &CountedCommand) -> io::Result<Child> {
    let (name, arguments) = asked
        .words
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(&asked.program);
    command
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(&asked.environment)
        .current_dir(&asked.directory)
        .stdin(Stdio::from(File::open(&asked.input)?))
        .stdout(Stdio::from(File::create(OUTPUT_FILE)?))
        .stderr(Stdio::from(File::create(ERROR_FILE)?));
    let mark = || {
        count_mark::begin();
        Ok(())
    };
    // SAFETY: between fork and exec it executes one instruction that has no effect.
    unsafe { command.pre_exec(mark) };
    let now = clock_gettime(ClockId::Monotonic);
    let begin = Timespec {
        tv_sec: now.tv_sec + PAUSE_S,
        tv_nsec: 0,
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &begin)?;
    command.spawn()
}
