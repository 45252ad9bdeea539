//! Decodes what the kernel records of profiled threads (perf_event_open(2)).

use std::collections::HashMap;

use perf_event::Record;
use perf_event::data::endian::Native;
use perf_event::data::parse::{ParseConfig, Parser};
use perf_event::data::{
    Comm, Exit, Fork, Lost, LostSamples, Mmap2, RecordMetadata, Sample, Visitor,
};
use perf_event_open_sys::bindings as abi;

/// Largest number of events that are kept of a trial: about 160 MB.
const EVENTS_MAX: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub time_ns: u64,
    pub process: u32,
    pub thread: u32,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The thread is on a CPU, in the stack of this number.
    Sample {
        stack: u32,
        period: u64,
    },
    /// The stack in which the thread leaves the CPU.
    LeavesAt {
        stack: u32,
    },
    SwitchedOut {
        preempted: bool,
    },
    SwitchedIn,
    Ends,
    /// A thread or process begins, in the event's process.
    Begins {
        parent_process: u32,
    },
    Exec,
    Maps(Mapping),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Offset of the start in the file.
    pub offset: u64,
    pub file: String,
}

/// Everything that was recorded of some threads.
#[derive(Debug, Default)]
pub struct Recording {
    pub events: Vec<Event>,
    /// Addresses, the innermost first, with markers between kernel and user.
    pub stacks: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, u32>,
    pub lost: u64,
}

/// Which event the samples in a buffer come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleOf {
    Clock,
    Switches,
}

impl Recording {
    pub fn add(&mut self, record: &Record<'_>, config: &ParseConfig<Native>, of: SampleOf) {
        if self.events.len() >= EVENTS_MAX {
            self.lost += 1;
            return;
        }
        let bytes = record.to_contiguous();
        let header_bytes = size_of::<abi::perf_event_header>();
        let header = abi::perf_event_header {
            type_: record.ty(),
            misc: record.misc(),
            size: (bytes.len() + header_bytes) as u16,
        };
        let mut parser = Parser::new(&*bytes, config.clone());
        let reader = Reader {
            recording: self,
            of,
        };
        // The parser refuses records that have no fields of their own.
        let parsed = match record.ty() {
            abi::PERF_RECORD_SWITCH => parser
                .parse_metadata_with_header(header)
                .map(|(_, metadata)| reader.switch(&metadata)),
            _ => parser.parse_record_with_header(reader, header),
        };
        if parsed.is_err() {
            self.lost += 1;
        }
    }

    fn number(&mut self, stack: &[u64]) -> u32 {
        if let Some(number) = self.numbers.get(stack) {
            return *number;
        }
        let number = u32::try_from(self.stacks.len()).expect("events are limited");
        self.stacks.push(stack.to_vec());
        self.numbers.insert(stack.to_vec(), number);
        number
    }
}

struct Reader<'a> {
    recording: &'a mut Recording,
    of: SampleOf,
}

impl Reader<'_> {
    fn push(self, time_ns: u64, process: u32, thread: u32, what: What) {
        self.recording.events.push(Event {
            time_ns,
            process,
            thread,
            what,
        });
    }

    fn switch(self, metadata: &RecordMetadata) {
        let has = |flag: u32| u32::from(metadata.misc()) & flag != 0;
        let what = if has(abi::PERF_RECORD_MISC_SWITCH_OUT) {
            What::SwitchedOut {
                preempted: has(abi::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT),
            }
        } else {
            What::SwitchedIn
        };
        self.push_at(metadata, what);
    }

    /// Adds an event whose time is in the part that all records share.
    fn push_at(self, metadata: &RecordMetadata, what: What) {
        let id = metadata.sample_id();
        if let (Some(time_ns), Some(process), Some(thread)) = (id.time(), id.pid(), id.tid()) {
            self.push(time_ns, process, thread, what);
        }
    }
}

impl<'a> Visitor<'a> for Reader<'_> {
    type Output = ();

    fn visit_unimplemented(self, _: RecordMetadata) {}

    fn visit_sample(self, record: Sample<'a>, _: RecordMetadata) {
        let (Some(time_ns), Some(process), Some(thread)) =
            (record.time(), record.pid(), record.tid())
        else {
            return;
        };
        let stack = self
            .recording
            .number(record.callchain().unwrap_or_default());
        let what = match self.of {
            SampleOf::Switches => What::LeavesAt { stack },
            SampleOf::Clock => What::Sample {
                stack,
                period: record.period().unwrap_or(1),
            },
        };
        self.push(time_ns, process, thread, what);
    }

    fn visit_mmap2(self, record: Mmap2<'a>, metadata: RecordMetadata) {
        let name = record.filename.split(|byte| *byte == 0).next();
        let mapping = Mapping {
            start: record.addr,
            end: record.addr.saturating_add(record.len),
            offset: record.pgoff,
            file: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
        };
        self.push_at(&metadata, What::Maps(mapping));
    }

    fn visit_comm(self, _: Comm<'a>, metadata: RecordMetadata) {
        if u32::from(metadata.misc()) & abi::PERF_RECORD_MISC_COMM_EXEC != 0 {
            self.push_at(&metadata, What::Exec);
        }
    }

    fn visit_fork(self, record: Fork, _: RecordMetadata) {
        let parent_process = record.ppid;
        let what = What::Begins { parent_process };
        self.push(record.time, record.pid, record.tid, what);
    }

    fn visit_exit(self, record: Exit, _: RecordMetadata) {
        self.push(record.time, record.pid, record.tid, What::Ends);
    }

    fn visit_lost(self, record: Lost, _: RecordMetadata) {
        self.recording.lost += record.lost;
    }

    fn visit_lost_samples(self, record: LostSamples, _: RecordMetadata) {
        self.recording.lost += record.lost;
    }
}
