//! Messages between `toll` and the init of a guest.
//!
//! The init is the probe, running as process 1 of a virtual machine. It sends
//! [`GuestEvent::Ready`] first, and then answers each [`GuestRequest`] in turn. Each message is
//! one line of JSON over the virtio serial port [`PORT`].

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Outcome, Request, WIRE_VERSION, WireError};

/// Name of the virtio serial port for requests and answers.
pub const PORT: &str = "toll";

/// Name of the port that carries a command's standard output or, in both directions, the terminal
/// of a command that has one.
pub const OUTPUT_PORT: &str = "toll.output";

/// Name of the port that carries a command's standard error.
pub const ERROR_PORT: &str = "toll.error";

/// Serial number of the disk that holds the work files.
pub const WORK_DISK: &str = "toll-work";

/// Serial number of the swap disk.
pub const SWAP_DISK: &str = "toll-swap";

/// Mount point of the ext4 work disk in a guest.
pub const WORK_DIRECTORY: &str = "/work";

/// Mount point in a guest of a host directory that is shared over 9p, if there is such a directory.
pub const SHARED_DIRECTORY: &str = "/shared";

/// Name of the shared directory as a 9p device.
pub const SHARED_TAG: &str = "toll-shared";

/// Mount point of a tmpfs in a guest.
pub const TMPFS_DIRECTORY: &str = "/tmpfs";

/// Directory of the project's own modules in a guest, as `NAME.ko`. A module is inserted only when
/// a trial needs it.
pub const MODULES_DIRECTORY: &str = "/modules";

/// Directory of the modules that the init inserts before anything else, in the order of their
/// names.
pub const BOOT_MODULES_DIRECTORY: &str = "/boot-modules";

/// Directory of the modules that the init inserts before each trial and each command, in the order
/// of their names, and removes afterwards.
pub const TRIAL_MODULES_DIRECTORY: &str = "/trial-modules";

/// Directory of files that a user adds from the host.
pub const HOST_FILES_DIRECTORY: &str = "/host";

/// Environment variable that marks the probe as a guest's init. The kernel puts parameters that it
/// does not know into the environment of process 1
/// (Documentation/admin-guide/kernel-parameters.rst).
pub const INIT_VARIABLE: &str = "TOLL_GUEST";

/// Environment variable that announces a swap disk to the init.
pub const SWAP_VARIABLE: &str = "TOLL_GUEST_SWAP";

/// Environment variable that announces a shared host directory to the init.
pub const SHARED_VARIABLE: &str = "TOLL_GUEST_SHARED";

/// Environment variable that marks the guest as one of a pair; its value is the word of a
/// [`PairSide`].
pub const PAIR_VARIABLE: &str = "TOLL_GUEST_PAIR";

/// Length in bits of the IPv4 prefix that the guests of a pair share.
pub const PAIR_PREFIX_V4: u32 = 24;

/// Length in bits of the IPv6 prefix that the guests of a pair share.
pub const PAIR_PREFIX_V6: u32 = 64;

/// Value of [`INIT_VARIABLE`] in an ordinary guest.
pub const INIT_ORDINARY: &str = "1";

/// Value of [`INIT_VARIABLE`] in a guest whose clock advances by one nanosecond per instruction.
pub const INIT_ICOUNT: &str = "icount";

/// Value of [`INIT_VARIABLE`] in a guest that carries out [`COUNT_FILE`] without waiting for a
/// request, and reports the result with [`GuestEvent::Counted`].
pub const INIT_COUNT: &str = "count";

/// Path of the request, a [`GuestAction::Count`], in a guest with [`INIT_COUNT`].
pub const COUNT_FILE: &str = "/count.json";

/// The metric that replaces `duration_ns` in a guest whose clock counts instructions.
pub const PATH_LENGTH: &str = "path_length_instructions";

/// One of two guests whose network cards are connected to each other. No other host is on that
/// network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairSide {
    /// The guest to which the trial belongs.
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

    /// Returns the guest's IPv4 address, 10.0.77.1 or 10.0.77.2.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 77, self.number())
    }

    /// Returns the guest's IPv6 address, `fd77::1` or `fd77::2`, from the unique local range (RFC
    /// 4193).
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(self.number()))
    }

    /// Returns the hardware address of the guest's network card, `02:…`, which is locally
    /// administered.
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
    /// Run a command for a user; answered by [`GuestEvent::Ended`] or [`GuestEvent::Refused`].
    Run(Box<GuestCommand>),
    /// Run a command and report its cost; only in [`COUNT_FILE`].
    Count(Box<CountedCommand>),
    /// Unmount the work disk and switch the guest off; there is no reply.
    End,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestTrial {
    pub request: Request,
    /// Padding of the probe's environment in bytes.
    pub padding_bytes: u32,
    /// Time limit of the probe in milliseconds. The init enforces it. If the guest's clock counts
    /// instructions, the host enforces it instead.
    pub timeout_ms: u64,
    /// Settings to write before the probe is started, untimed, in this order.
    pub knobs: Vec<Knob>,
    /// Whether the reply should list the functions of the kernel.
    pub wants_symbols: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// The file that holds the setting, such as `/proc/sys/vm/page-cluster`.
    pub path: PathBuf,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestCommand {
    /// The program, looked up in `PATH`, and its arguments; at least one word.
    pub words: Vec<String>,
    /// Size of the command's terminal, which then uses the output port in both directions. Without
    /// a terminal, standard output and standard error go to the two ports.
    pub terminal: Option<TerminalSize>,
    /// The command's whole standard input, if the command has no terminal.
    pub input: String,
}

/// A command whose instructions are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedCommand {
    /// The program's path.
    pub program: PathBuf,
    /// The name by which the program is started (`argv[0]`), and its arguments.
    pub words: Vec<String>,
    /// The command's complete environment.
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// The file that is the command's standard input; `/dev/null` for none.
    pub input: PathBuf,
    /// Seed of the guest's random numbers.
    pub seed: u64,
}

/// The result of a counted command, without the counts themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedEnd {
    pub end: GuestEnd,
    /// Minor page faults of the command and of the child processes that it waited for.
    pub minor_faults: u64,
    /// Major page faults of the command and of the child processes that it waited for.
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
    /// The guest is up and waits for requests. Sent once, before all other events.
    Ready(Box<GuestFacts>),
    Trial {
        outcome: Outcome,
        /// Functions of the kernel and of the trial's modules, if requested: the lines of
        /// `/proc/kallsyms`.
        symbols: Option<String>,
    },
    Ended(GuestEnd),
    /// Sent instead of [`GuestEvent::Ready`] by a guest that counts the instructions of a command.
    /// The command's output follows on the two ports.
    Counted(Box<CountedEnd>),
    /// The request cannot be carried out; the message has the form `cannot X: why; what to do`.
    /// Sent instead of [`GuestEvent::Ready`], it means that the guest is unusable and switches
    /// itself off.
    Refused(String),
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestEnd {
    /// The command's exit status; `None` if a signal ended the command.
    pub status: Option<i32>,
    pub signal: Option<i32>,
    /// Bytes sent to [`OUTPUT_PORT`] for the command.
    pub output_bytes: u64,
    /// Bytes sent to [`ERROR_PORT`] for the command.
    pub error_bytes: u64,
}

/// Facts about a guest, as seen from inside.
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
    /// Swap space in bytes; 0 if there is none.
    pub swap_bytes: u64,
    /// The kernel's clock source, if the kernel reports it.
    pub clock_source: Option<String>,
    /// Median cost of one clock read of the probe, in nanoseconds of the guest's
    /// clock.
    pub clock_read_ns: f64,
    pub page_bytes: u64,
    /// Address space layout randomisation (`kernel.randomize_va_space`), if it can be read.
    pub randomize_va_space: Option<String>,
    /// Selected policy of transparent huge pages, if the kernel has them.
    pub transparent_hugepage: Option<String>,
    /// State of the multi-generational LRU (`lru_gen/enabled`), if the kernel
    /// has it.
    pub multi_gen_lru: Option<String>,
    /// How each vulnerability of the CPU is mitigated, by the vulnerability's name.
    pub mitigations: BTreeMap<String, String>,
    /// Mount points of the file systems for work files, by kind of file system.
    pub file_systems: BTreeMap<String, PathBuf>,
}

pub fn decode_guest_request(line: &str) -> Result<GuestRequest, WireError> {
    crate::decode(line, "the guest's request")
}

pub fn decode_guest_answer(line: &str) -> Result<GuestAnswer, WireError> {
    crate::decode(line, "the guest's answer")
}
