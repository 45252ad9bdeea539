//! What `toll` and the init of a guest say to each other.
//!
//! The init is the probe as process 1 of a virtual machine. It speaks first, with
//! [`GuestEvent::Ready`], and then answers each [`GuestRequest`] in turn, one
//! line of JSON each way over the virtio serial port [`PORT`].

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Outcome, Request, WIRE_VERSION, WireError};

/// Name of the virtio serial port for requests and answers.
pub const PORT: &str = "toll";

/// Name of the port with a command's standard output, or both ways with the
/// terminal of a command that has one.
pub const OUTPUT_PORT: &str = "toll.output";

/// Name of the port with a command's standard error.
pub const ERROR_PORT: &str = "toll.error";

/// Serial number of the disk with the work files.
pub const WORK_DISK: &str = "toll-work";

/// Serial number of the disk to swap to.
pub const SWAP_DISK: &str = "toll-swap";

/// Where the ext4 work disk is mounted in a guest.
pub const WORK_DIRECTORY: &str = "/work";

/// Where a directory of the host is mounted over 9p in a guest, if there is one.
pub const SHARED_DIRECTORY: &str = "/shared";

/// Name of that directory's device.
pub const SHARED_TAG: &str = "toll-shared";

/// Where a tmpfs is mounted in a guest.
pub const TMPFS_DIRECTORY: &str = "/tmpfs";

/// Where the project's own modules lie in a guest, as `NAME.ko`. None of them is
/// inserted before a trial asks for it.
pub const MODULES_DIRECTORY: &str = "/modules";

/// Where the modules lie that the init inserts before anything else, in the
/// order of their names.
pub const BOOT_MODULES_DIRECTORY: &str = "/boot-modules";

/// Where the modules lie that the init inserts before each trial and each command, in
/// the order of their names, and removes after it.
pub const TRIAL_MODULES_DIRECTORY: &str = "/trial-modules";

/// Where files lie that a user adds from the host.
pub const HOST_FILES_DIRECTORY: &str = "/host";

/// The variable by which the init knows that it is one. The kernel puts
/// parameters that it does not know into the environment of process 1
/// (Documentation/admin-guide/kernel-parameters.rst).
pub const INIT_VARIABLE: &str = "TOLL_GUEST";

/// The variable by which the init knows that there is a disk to swap to.
pub const SWAP_VARIABLE: &str = "TOLL_GUEST_SWAP";

/// The variable by which the init knows that there is a directory of the host.
pub const SHARED_VARIABLE: &str = "TOLL_GUEST_SHARED";

/// The variable by which the init knows that the guest is one of a pair; its value
/// is the word of a [`PairSide`].
pub const PAIR_VARIABLE: &str = "TOLL_GUEST_PAIR";

/// Bits of an IPv4 address that the guests of a pair have in common.
pub const PAIR_PREFIX_V4: u32 = 24;

/// Bits of an IPv6 address that the guests of a pair have in common.
pub const PAIR_PREFIX_V6: u32 = 64;

/// Value of [`INIT_VARIABLE`] in an ordinary guest.
pub const INIT_ORDINARY: &str = "1";

/// Value of [`INIT_VARIABLE`] where one nanosecond is one instruction.
pub const INIT_ICOUNT: &str = "icount";

/// Value of [`INIT_VARIABLE`] in a guest that carries out [`COUNT_FILE`], tells what
/// came out by [`GuestEvent::Counted`], and is not asked anything before.
pub const INIT_COUNT: &str = "count";

/// Where the request of such a guest lies, a [`GuestAction::Count`].
pub const COUNT_FILE: &str = "/count.json";

/// The metric in place of `duration_ns` in such a guest.
pub const PATH_LENGTH: &str = "path_length_instructions";

/// Which of two guests that are joined by a network card each. There is nobody
/// else on that network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairSide {
    /// The guest whose trial it is.
    Main,
    Partner,
}

impl PairSide {
    pub fn word(self) -> &'static str {
        crate::words::<Self>()[self as usize]
    }

    pub fn from_word(word: &str) -> Option<Self> {
        crate::from_word(word)
    }

    /// Its address, 10.0.77.1 or 10.0.77.2.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 77, self.number())
    }

    /// Its address, `fd77::1` or `fd77::2`, of those that are unique to a site
    /// (RFC 4193).
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(self.number()))
    }

    /// Address of its card, `02:…`, of those that nobody assigns.
    pub fn hardware_address(self) -> String {
        format!("02:00:0a:00:4d:{:02x}", self.number())
    }

    fn number(self) -> u8 {
        match self {
            Self::Main => 1,
            Self::Partner => 2,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestRequest {
    pub version: u32,
    pub action: GuestAction,
}

impl GuestRequest {
    pub fn new(action: GuestAction) -> Self {
        Self {
            version: WIRE_VERSION,
            action,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestAction {
    /// Run one trial in a fresh probe process; answered by
    /// [`GuestEvent::Trial`] or [`GuestEvent::Refused`].
    Trial(Box<GuestTrial>),
    /// Run a command for a person; answered by [`GuestEvent::Ended`] or
    /// [`GuestEvent::Refused`].
    Run(Box<GuestCommand>),
    /// Run a command and tell what it took; of [`COUNT_FILE`] alone.
    Count(Box<CountedCommand>),
    /// Bring the disks to rest and switch the guest off; not answered.
    End,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestTrial {
    pub request: Request,
    /// Bytes by which the probe's environment is padded.
    pub padding_bytes: u32,
    /// Most time that the probe may take, in milliseconds. The init keeps the limit, unless
    /// its clock counts instructions: then the host does.
    pub timeout_ms: u64,
    /// What is set before the probe is started, untimed, in this order.
    pub knobs: Vec<Knob>,
    /// Whether the answer is to have the functions of the kernel.
    pub wants_symbols: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// The file that holds it, such as `/proc/sys/vm/page-cluster`.
    pub path: PathBuf,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestCommand {
    /// The program, looked for in `PATH`, and its arguments; at least one word.
    pub words: Vec<String>,
    /// The size of the terminal that it gets, which is then the output port both
    /// ways. Without one its output and its errors go to the two ports.
    pub terminal: Option<TerminalSize>,
    /// All that it can read, if it has no terminal.
    pub input: String,
}

/// A command whose instructions are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedCommand {
    /// The program's path.
    pub program: PathBuf,
    /// The name that it is started by, and its arguments.
    pub words: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// Its standard input; `/dev/null` for none.
    pub input: PathBuf,
    /// Seed of the guest's random numbers.
    pub seed: u64,
}

/// What is known of a counted command but the counts themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedEnd {
    pub end: GuestEnd,
    /// Page faults of the command and of those children that it waited for.
    pub minor_faults: u64,
    pub major_faults: u64,
    pub kernel_release: String,
    /// Functions of the kernel and its modules: the lines of `/proc/kallsyms`.
    pub symbols: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestAnswer {
    pub version: u32,
    pub event: GuestEvent,
}

impl GuestAnswer {
    pub fn new(event: GuestEvent) -> Self {
        Self {
            version: WIRE_VERSION,
            event,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestEvent {
    /// The guest is up and waits for requests. Said once, first.
    Ready(Box<GuestFacts>),
    Trial {
        outcome: Outcome,
        /// Functions of the kernel and of the modules that the trial had, where they were
        /// asked for: the lines of `/proc/kallsyms`.
        symbols: Option<String>,
    },
    Ended(GuestEnd),
    /// In place of [`GuestEvent::Ready`] in a guest that counts. Its output follows on
    /// the two ports.
    Counted(Box<CountedEnd>),
    /// What was asked for cannot be done, in a sentence `cannot X: why; what to
    /// do`. In place of [`GuestEvent::Ready`] it means that the guest is of no
    /// use and switches itself off.
    Refused(String),
}

/// How a command for a person ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestEnd {
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    pub signal: Option<i32>,
    /// Bytes that went to [`OUTPUT_PORT`] on its behalf.
    pub output_bytes: u64,
    /// Bytes that went to [`ERROR_PORT`] on its behalf.
    pub error_bytes: u64,
}

/// What a guest is, as seen from inside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestFacts {
    /// Kernel release (`uname -r`).
    pub kernel_release: String,
    /// Kernel version: build number and date (`uname -v`).
    pub kernel_version: String,
    pub command_line: String,
    pub cpu_model: String,
    pub cpus_online: u32,
    /// Memory that the kernel manages, in bytes.
    pub memory_bytes: u64,
    /// Swap space in bytes; 0 without one.
    pub swap_bytes: u64,
    /// The kernel's clock source, if it tells.
    pub clock_source: Option<String>,
    /// Median cost of one clock read of the probe, in nanoseconds of the guest's
    /// clock.
    pub clock_read_ns: f64,
    pub page_bytes: u64,
    /// Randomisation of address spaces (`kernel.randomize_va_space`), if it can
    /// be read.
    pub randomize_va_space: Option<String>,
    /// Chosen policy of transparent huge pages, if the kernel has them.
    pub transparent_hugepage: Option<String>,
    /// State of the multi-generational LRU (`lru_gen/enabled`), if the kernel
    /// has it.
    pub multi_gen_lru: Option<String>,
    /// Vulnerabilities of the CPU with how each is mitigated.
    pub mitigations: BTreeMap<String, String>,
    /// File systems for work files, by kind, with where each is mounted.
    pub file_systems: BTreeMap<String, PathBuf>,
}

pub fn decode_guest_request(line: &str) -> Result<GuestRequest, WireError> {
    crate::decode(line, "the guest's request")
}

pub fn decode_guest_answer(line: &str) -> Result<GuestAnswer, WireError> {
    crate::decode(line, "the guest's answer")
}
