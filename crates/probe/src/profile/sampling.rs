//! Opens the events of a profile, and reads what they record.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::mpsc;
use std::thread::JoinHandle;

use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::record::{Recording, SampleOf};

/// About 4 kHz. The number is odd, so that it does not keep step with work that repeats every
/// millisecond.
const PERIOD_NS: u64 = 250_199;
const FREQUENCY_HZ: u64 = 4_000;

/// Sizes to try for each buffer. The largest that the kernel lets us lock is used
/// (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK).
const BUFFER_BYTES: [usize; 5] = [4 << 20, 1 << 20, 256 << 10, 64 << 10, 32 << 10];

/// Maximum size of all buffers together; there are two per CPU.
const ALL_BUFFERS_BYTES_MAX: usize = 128 << 20;

/// The event that triggers samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocking {
    /// Cycles, counted by the CPU's performance monitoring unit.
    Cycles,
    /// A timer of the kernel. Code that runs with interrupts off is charged to
    /// where they are enabled again.
    Timer,
    /// A timer of the kernel, for user code alone.
    UserTimer,
}

/// Events that record what the calling thread and everything it starts do.
pub struct Sampling {
    pub clocking: Clocking,
    stop: OwnedFd,
    reader: JoinHandle<Recording>,
}

struct Buffer {
    sampler: Sampler,
    of: SampleOf,
}

impl Sampling {
    /// Opens the events, which record between [`enable_all`] and [`disable_all`].
    ///
    /// # Errors
    /// If not even user code may be sampled.
    pub fn open() -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let (hand_over, handed_over) = mpsc::channel();
        // Spawned before the events are opened, because threads inherit open
        // events.
        let reader = std::thread::spawn(move || {
            let buffers = handed_over.recv().unwrap_or_default();
            read_all(buffers, &stopped)
        });
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        for clocking in [Clocking::Cycles, Clocking::Timer, Clocking::UserTimer] {
            match open_all(clocking) {
                Ok(buffers) => {
                    // The reader lives until it is stopped.
                    let _ = hand_over.send(buffers);
                    return Ok(Self {
                        clocking,
                        stop,
                        reader,
                    });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Closes the events and returns what they recorded.
    pub fn finish(self) -> Recording {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        self.reader.join().unwrap_or_default()
    }
}

fn open_all(clocking: Clocking) -> io::Result<Vec<Buffer>> {
    let mut outcome = Ok(Vec::new());
    let buffers = 2 * online_cpus()?.len();
    let least = BUFFER_BYTES[BUFFER_BYTES.len() - 1];
    let fits = |bytes: &usize| *bytes * buffers <= ALL_BUFFERS_BYTES_MAX || *bytes == least;
    for bytes in BUFFER_BYTES.into_iter().filter(fits) {
        let opened = open_with(clocking, bytes);
        match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => outcome = Err(error),
            other => return other,
        }
    }
    outcome
}

fn open_with(clocking: Clocking, bytes: usize) -> io::Result<Vec<Buffer>> {
    let mut buffers = Vec::new();
    // The kernel provides no buffer for inherited events of all CPUs at once.
    for cpu in online_cpus()? {
        let mut clock = match clocking {
            Clocking::Cycles => {
                let mut builder = builder(Hardware::CPU_CYCLES, clocking, bytes);
                builder.sample_frequency(FREQUENCY_HZ);
                builder
            }
            Clocking::Timer | Clocking::UserTimer => {
                let mut builder = builder(Software::CPU_CLOCK, clocking, bytes);
                builder.sample_period(PERIOD_NS);
                builder
            }
        };
        clock.mmap(true).mmap2(true).comm(true).comm_exec(true);
        let mut switches = builder(Software::CONTEXT_SWITCHES, clocking, bytes);
        switches.sample_period(1).context_switch(true).task(true);
        for (mut builder, of) in [(clock, SampleOf::Clock), (switches, SampleOf::Switches)] {
            let sampler = builder.one_cpu(cpu).build()?.sampled(bytes)?;
            buffers.push(Buffer { sampler, of });
        }
    }
    Ok(buffers)
}

fn builder(event: impl Event, clocking: Clocking, bytes: usize) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder
        .inherit(true)
        .exclude_kernel(clocking == Clocking::UserTimer)
        // The clock of the timed region.
        .clockid(Clock::MONOTONIC_RAW)
        .sample(SampleFlag::TID)
        .sample(SampleFlag::TIME)
        .sample(SampleFlag::PERIOD)
        .sample(SampleFlag::CALLCHAIN)
        .sample_id_all(true)
        .wakeup_watermark(bytes / 4);
    // Reads no times of the event: samples do not have them, and inherited events refuse them.
    builder.attrs_mut().read_format = 0;
    builder
}

fn online_cpus() -> io::Result<Vec<usize>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let number = |text: &str| text.parse::<usize>().map_err(io::Error::other);
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(number(first)?..=number(last)?);
    }
    Ok(cpus)
}

/// Reads buffers as they fill, and what is left in them once stopped.
fn read_all(mut buffers: Vec<Buffer>, stop: &OwnedFd) -> Recording {
    let mut recording = Recording::default();
    loop {
        let is_stopped = wait(&buffers, stop);
        for Buffer { sampler, of } in &mut buffers {
            let config = sampler.config().clone();
            while let Some(record) = sampler.next_record() {
                recording.add(&record, &config, *of);
            }
        }
        if is_stopped {
            recording.events.sort_by_key(|event| event.time_ns);
            return recording;
        }
    }
}

/// Waits until a buffer fills. Returns whether reading is to end.
fn wait(buffers: &[Buffer], stop: &OwnedFd) -> bool {
    let mut watched = vec![PollFd::new(stop, PollFlags::IN)];
    for Buffer { sampler, .. } in buffers {
        watched.push(PollFd::from_borrowed_fd(descriptor(sampler), PollFlags::IN));
    }
    // If waiting is impossible, the buffers are read only once.
    match poll(&mut watched, None) {
        Ok(_) => !watched[0].revents().is_empty(),
        Err(rustix::io::Errno::INTR) => false,
        Err(_) => true,
    }
}

fn descriptor(sampler: &Sampler) -> BorrowedFd<'_> {
    // SAFETY: the sampler owns the descriptor and stays borrowed as long as it
    // is used.
    unsafe { BorrowedFd::borrow_raw(sampler.as_raw_fd()) }
}

/// Enables all events that the calling thread has opened, in it and in everything that inherited
/// them (prctl(2)).
pub fn enable_all() {
    // SAFETY: the command takes no argument and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_ENABLE) };
}

/// Disables all events that the calling thread has opened, as [`enable_all`] enables them.
pub fn disable_all() {
    // SAFETY: the command takes no argument and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_DISABLE) };
}
