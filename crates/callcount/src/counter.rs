//! Loads the BPF programs, reads their events and sums, and detaches them.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use aya::maps::{Array, CgroupArray, HashMap, Map, MapData, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{BtfTracePoint, Iter, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, VerifierLogLevel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toll_calls::shape::{Role, Shape};
use toll_calls::tally::Tally;
use toll_core::format;

use crate::layout::{CALLS_MAX, PROGRAM_NOT_TRACED, Shape as CallShape, Sum, SumKey, Totals};
use crate::mark::Marker;
use crate::sums::Sums;
use crate::{names, overhead};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/count_calls.o"));

const TRACEPOINTS: [(&str, &str); 6] = [
    ("enter", "sys_enter"),
    ("leave", "sys_exit"),
    ("fork", "sched_process_fork"),
    ("exec", "sched_process_exec"),
    ("end", "sched_process_exit"),
    ("switch_thread", "sched_switch"),
];

/// Calls after which a descriptor may refer to another file. The list has `io_uring_enter`, because
/// the operations of io_uring are not traced.
const CLOSING_CALLS: [&str; 8] = [
    "close",
    "close_range",
    "dup2",
    "dup3",
    "execve",
    "execveat",
    "io_uring_enter",
    "unshare",
];

/// Number of ended threads at which their sums are taken out of the kernel.
const ENDED_MAX: usize = 1000;

/// How long a BPF program that is running may continue after it is detached.
const LAST_RUN: Duration = Duration::from_millis(10);

/// First number for programs that user space names. It is far above the numbers that the kernel
/// side assigns.
const FIRST_NAMED_PROGRAM: u32 = 1 << 31;

/// Counts system calls from its creation on.
pub struct Counter {
    bpf: Ebpf,
    events: RingBuf<MapData>,
    totals: Array<MapData, Totals>,
    kernel_sums: HashMap<MapData, SumKey, Sum>,
    links: Vec<BtfTracePointLink>,
    marker: Marker,
    sums: Sums,
    programs_named: u32,
    overhead_ns: Option<f64>,
}

/// Whose calls are counted.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// Calls of marked processes.
    Marked,
    /// Calls of marked processes, between `CALL_REGION_BEGINS` and `CALL_REGION_ENDS` of toll_wire.
    MarkedRegions,
    /// Calls of all processes in a control group and in the groups below it.
    Cgroup(BorrowedFd<'a>),
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    pub tally: Tally,
    pub notes: Vec<String>,
    /// Time that counting added to all calls together, in nanoseconds; `None` if unknown.
    pub overhead_ns: Option<f64>,
}

impl Counter {
    /// Loads and attaches the BPF programs. `counts_all`: also counts calls that move no
    /// bytes. An error gives the reason and what to do.
    pub fn new(counts_all: bool, scope: Scope<'_>) -> Result<Self, String> {
        if OBJECT.is_empty() {
            return Err(
                "this toll was built without clang; install the package clang and build toll again"
                    .into(),
            );
        }
        let btf = Btf::from_sys_fs().map_err(|error| {
            format!("the kernel has no BTF types ({error}); use one with CONFIG_DEBUG_INFO_BTF")
        })?;
        let untraced_ns = overhead::untraced_ns();
        let mut bpf = EbpfLoader::new()
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .verifier_log_level(VerifierLogLevel::DISABLE)
            .override_global("shapes", &call_shapes()[..], true)
            .override_global(
                "is_of_cgroup",
                &u8::from(matches!(scope, Scope::Cgroup(_))),
                true,
            )
            .override_global(
                "has_regions",
                &u8::from(matches!(scope, Scope::MarkedRegions)),
                true,
            )
            .load(OBJECT)
            .map_err(|error| refusal(&error))?;
        if let Scope::Cgroup(cgroup) = scope {
            let cgroups = bpf.map_mut("cgroups").expect("the object defines it");
            let mut cgroups = CgroupArray::try_from(cgroups).expect("it is an array of cgroups");
            cgroups
                .set(0, cgroup, 0)
                .map_err(|error| format!("cannot select the control group: {error}"))?;
        }
        let links = attach(&mut bpf, &btf).map_err(|error| refusal(&error.into()))?;
        let Some(Map::Unsupported(threads)) = bpf.map("threads") else {
            panic!("the object defines the map threads");
        };
        let marker = Marker {
            threads: threads.fd().as_fd().as_raw_fd(),
        };
        let mut counter = Self {
            events: RingBuf::try_from(take(&mut bpf, "events")).expect("it is a ring buffer"),
            totals: Array::try_from(take(&mut bpf, ".bss")).expect("it is an array"),
            kernel_sums: HashMap::try_from(take(&mut bpf, "sums")).expect("it is a hash map"),
            links,
            marker,
            sums: Sums::new(counts_all),
            programs_named: 0,
            overhead_ns: None,
            bpf,
        };
        if let Scope::Cgroup(_) = scope {
            marker
                .leave_out_self()
                .map_err(|error| format!("cannot exclude the calls of toll itself: {error}"))?;
        }
        counter.overhead_ns = overhead::traced_ns(marker)
            .zip(untraced_ns)
            .map(|(traced, untraced)| (traced - untraced).max(0.0));
        Ok(counter)
    }

    /// Returns the handle with which a new process marks itself.
    pub fn marker(&self) -> Marker {
        self.marker
    }

    /// Also counts the calls of a running process, under the name of its program.
    pub fn mark(&mut self, process: BorrowedFd<'_>, program: &str) -> std::io::Result<()> {
        let number = FIRST_NAMED_PROGRAM + self.programs_named;
        self.programs_named += 1;
        self.sums.name_program(number, program);
        self.marker.mark(process, number)
    }

    /// Returns the number of threads that made a call and have not ended.
    pub fn alive(&self) -> u64 {
        self.read_totals().alive
    }

    /// Returns whether calls were counted. Calls of a live thread may not be visible yet.
    pub fn has_counted(&self) -> bool {
        let mut keys = self.kernel_sums.keys().filter_map(Result::ok);
        self.sums.calls > 0 || keys.any(|key| key.program != PROGRAM_NOT_TRACED)
    }

    /// Waits until an event arrives, `until` is readable or `nap` is over, and takes all
    /// pending events.
    pub fn wait(&mut self, until: Option<BorrowedFd<'_>>, nap: Duration) -> std::io::Result<()> {
        let nap = Timespec::try_from(nap).expect("short");
        let mut watched = vec![PollFd::new(&self.events, PollFlags::IN)];
        watched.extend(until.map(|until| PollFd::from_borrowed_fd(until, PollFlags::IN)));
        match poll(&mut watched, Some(&nap)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.take_events();
        if self.sums.ended.len() >= ENDED_MAX {
            self.take_sums_of_ended();
        }
        Ok(())
    }

    /// Returns all that was counted so far. Complete if no counted thread is alive.
    pub fn so_far(&mut self) -> &Tally {
        self.take_events();
        let keys = self.kernel_sums.keys().filter_map(Result::ok).collect();
        self.take_sums(keys);
        let mut totals = self.read_totals();
        // A process may have ended inside a region.
        totals.is_in_region = 0;
        self.totals.set(0, totals, 0).expect("there is one entry");
        &self.sums.tally
    }

    /// Stops counting and returns the result.
    pub fn finish(mut self) -> Result<Counted, String> {
        self.links.clear();
        std::thread::sleep(LAST_RUN);
        self.put_away_rest()
            .map_err(|error| format!("cannot read the last sums of BPF: {error}"))?;
        self.so_far();
        self.sums.tally.finish();
        let notes = notes(&self.read_totals(), self.sums.calls_without_file);
        let overhead_ns = self.overhead_ns.map(|each| each * self.sums.calls as f64);
        Ok(Counted {
            tally: self.sums.tally,
            notes,
            overhead_ns,
        })
    }

    fn read_totals(&self) -> Totals {
        self.totals.get(&0, 0).expect("there is one entry")
    }

    fn take_events(&mut self) {
        while let Some(event) = self.events.next() {
            self.sums.take_event(&event);
        }
    }

    fn take_sums_of_ended(&mut self) {
        let keys = self.kernel_sums.keys().filter_map(Result::ok);
        let keys = keys
            .filter(|key| self.sums.ended.contains(&key.thread))
            .collect();
        self.take_sums(keys);
        for thread in std::mem::take(&mut self.sums.ended) {
            self.sums.tally.end_thread(thread);
        }
    }

    /// Moves sums from the kernel to the tally.
    fn take_sums(&mut self, keys: Vec<SumKey>) {
        let mut sums = Vec::with_capacity(keys.len());
        for key in keys {
            if let Ok(sum) = self.kernel_sums.get(&key, 0) {
                sums.push((key, sum));
                // A sum that stayed would be added twice; removing a key that was just read
                // cannot fail.
                self.kernel_sums.remove(&key).expect("it is there");
            }
        }
        self.sums.add(&sums);
    }

    fn put_away_rest(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let program: &mut Iter = program(&mut self.bpf, "put_away_rest");
        let link = program.attach()?;
        let mut walk = program.take_link(link)?.into_file()?;
        // The read runs the program.
        walk.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

fn attach(bpf: &mut Ebpf, btf: &Btf) -> Result<Vec<BtfTracePointLink>, ProgramError> {
    let last: &mut Iter = program(bpf, "put_away_rest");
    last.load("task", btf)?;
    for (name, tracepoint) in TRACEPOINTS {
        program::<BtfTracePoint>(bpf, name).load(tracepoint, btf)?;
    }
    let attached = TRACEPOINTS.iter().map(|(name, _)| {
        let program: &mut BtfTracePoint = program(bpf, name);
        let link = program.attach()?;
        program.take_link(link)
    });
    attached.collect()
}

fn program<'a, P>(bpf: &'a mut Ebpf, name: &str) -> &'a mut P
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let program = bpf.program_mut(name).expect("the object defines it");
    program.try_into().ok().expect("it is of this type")
}

fn take(bpf: &mut Ebpf, map: &str) -> Map {
    bpf.take_map(map).expect("the object defines it")
}

/// Describes the arguments of each call, by its number.
fn call_shapes() -> [CallShape; CALLS_MAX] {
    let place = |place: usize| i8::try_from(place).expect("calls have six arguments");
    let shape_of = |name: &str| {
        let shape = Shape::for_call(name);
        let ends = shape.map_or(&[][..], |shape| shape.ends);
        let end = |at: usize| ends.get(at).map_or(-1, |(_, argument)| place(*argument));
        CallShape {
            ends: u8::try_from(ends.len()).expect("at most two"),
            places: [end(0), end(1)],
            asked: shape.and_then(|shape| shape.asked).map_or(-1, place),
            is_seek: shape.is_some_and(|shape| shape.role == Role::Seek).into(),
            is_closing: CLOSING_CALLS.contains(&name).into(),
        }
    };
    std::array::from_fn(|number| {
        let number = u32::try_from(number).expect("few");
        shape_of(names::call(number).unwrap_or(""))
    })
}

/// Explains why the kernel refuses BPF, and what to do.
fn refusal(error: &EbpfError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let io_error = cause.downcast_ref::<std::io::Error>();
    match io_error.and_then(std::io::Error::raw_os_error) {
        Some(libc::EPERM | libc::EACCES) => format!(
            "the kernel does not permit BPF ({cause}); run as root, or give a container the \
             capabilities BPF, PERFMON and SYS_RESOURCE"
        ),
        _ => format!("the kernel refuses the programs ({cause}); use Linux 5.17 or newer"),
    }
}

/// Returns notes on what is missing from the sums.
fn notes(totals: &Totals, calls_without_file: u64) -> Vec<String> {
    let lost = [
        (
            totals.calls_lost,
            "call",
            "not counted: too many threads and files at once",
        ),
        (
            totals.threads_lost,
            "thread",
            "not counted: the kernel had no memory left for counting them",
        ),
        (
            totals.programs_lost,
            "program",
            "not named: events came faster than they were read",
        ),
        (
            calls_without_file,
            "call",
            "on files that are not named: events came faster than they were read",
        ),
        (
            totals.calls_of_32_bit,
            "call",
            "not counted: made by a 32-bit program; --with strace counts these, too",
        ),
    ];
    let losses = lost.iter().filter(|(number, ..)| *number > 0);
    losses
        .map(|(number, noun, why)| format!("{} {why}", format::counted(*number, noun)))
        .collect()
}
