//! Rust types of the structures in `bpf/count_calls.h`, as the kernel passes them.

use aya::Pod;

pub const CALLS_MAX: usize = 512;
pub const OUTCOME_WHOLE: u32 = 0x80;
pub const OUTCOME_ERROR: u32 = 0x1000;
pub const ERROR_MASK: u32 = 0xfff;

/// Stands for the program's number in threads whose calls are not part of the trace.
pub const PROGRAM_NOT_TRACED: u32 = u32::MAX;

pub const EVENT_FILE: u32 = 1;
pub const EVENT_PROGRAM: u32 = 2;
pub const EVENT_END: u32 = 3;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub ends: u8,
    pub places: [i8; 2],
    pub asked: i8,
    pub is_seek: u8,
    pub is_closing: u8,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SumKey {
    pub thread: u32,
    pub program: u32,
    pub files: [u32; 2],
    pub call: u32,
    pub outcome: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub calls: u64,
    pub bytes: u64,
    pub least_bytes: u64,
    pub most_bytes: u64,
    pub off_cpu_ns: u64,
    pub timed_calls: u64,
    pub timed_ns: u64,
}

/// The first fields of a thread's state, and room for its other fields, which begin as zeros.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    pub number: u32,
    pub program: u32,
    pub others: [u64; 10 + 4 * 2 + 16 * 10],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub threads: u64,
    pub programs: u64,
    pub files: u64,
    pub alive: u64,
    pub calls_lost: u64,
    pub threads_lost: u64,
    pub programs_lost: u64,
    pub calls_of_32_bit: u64,
    pub closings: u64,
    pub is_in_region: u64,
}

/// Header before the text of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHead {
    pub kind: u32,
    pub number: u32,
    pub mode: u32,
    pub magic: u32,
    pub inode: u64,
}

const HEAD_BYTES: usize = 32;

impl EventHead {
    /// Splits an event into its header and text; `None` if it is too short.
    pub fn read(event: &[u8]) -> Option<(Self, &[u8])> {
        let (head, text) = event.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("4 bytes"));
        let head = Self {
            kind: word(0),
            number: word(4),
            mode: word(8),
            magic: word(12),
            inode: u64::from_ne_bytes(head[16..24].try_into().expect("8 bytes")),
        };
        Some((head, text))
    }
}

// SAFETY: any bytes are a valid shape, and it has no padding.
unsafe impl Pod for Shape {}
// SAFETY: any bytes are a valid key, and it has no padding.
unsafe impl Pod for SumKey {}
// SAFETY: any bytes are a valid sum, and it has no padding.
unsafe impl Pod for Sum {}
// SAFETY: any bytes are valid totals, and they have no padding.
unsafe impl Pod for Totals {}
