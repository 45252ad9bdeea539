//! Messages between `toll` and its probe.
//!
//! The probe reads one [`Request`] as a line of JSON, runs one trial and writes one [`Response`] as
//! a line of JSON. The same lines travel over a pipe on the host and over a serial port to a guest.
//! So no message contains a raw newline, and each has [`WIRE_VERSION`].
//!
//! Architecture invariant: this crate only describes messages. It opens
//! nothing, measures nothing and knows no experiment.

mod counters;
pub mod guest;
mod levels;
mod metrics;
mod profile;
pub mod quantity;
mod request;
mod response;
mod surroundings;
mod transfer_message;
mod words;
mod work_request;
mod workload;

pub use counters::{COUNTERS, raw_counter};
pub use levels::{Amount, count, from_levels, size_within};
pub use metrics::{
    Better, COUNTER, MAKING, METRICS, MetricDefinition, Precision, Role, SYSTEM_CALLS,
    metric_words, metrics_with, unit_and_better,
};
pub use profile::{Activity, CodeAddress, Profile, ProfiledStack};
pub use request::{CALL_REGION_BEGINS, CALL_REGION_ENDS, Recording, Request, decode_request};
pub use response::{
    CounterReading, Disturbance, Failure, FailureKind, Outcome, Response, Sample, TrialData,
    decode_response,
};
pub use surroundings::{
    LIMIT_BYTES_MIN, MountCache, Pressure, SourceContent, Surroundings, WorkFileSystem,
};
pub use transfer_message::{
    ReceiverReport, TransferMessage, TransferTerms, decode_transfer_message,
    encode_transfer_message,
};
pub use words::{from_word, word, words};
pub use work_request::DiskNeeds;
pub use workload::*;

/// Version of the message format. A reader refuses any other version.
pub const WIRE_VERSION: u32 = 1;

/// Longest message that either side accepts, in bytes. It limits the memory that a faulty probe or
/// a hostile guest can make the other side use.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Largest number of timed iterations in one trial; their samples must fit in a message.
pub const ITERATIONS_MAX: u32 = 20_000;

/// Largest buffer that a workload may ask for, in bytes.
pub const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Largest number of bytes of a command's outputs that one trial may keep, over all its iterations.
/// JSON escapes a control byte as six bytes, so this limit is well below [`MESSAGE_BYTES_MAX`].
pub const CAPTURED_BYTES_MAX: u64 = 8 << 20;

/// A message that cannot be understood: broken JSON, an unknown field or
/// another version.
#[derive(Debug)]
pub struct WireError(String);

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// Encodes a message as one line, without the newline.
///
/// # Panics
/// Never for the types of this crate: all of them are plain data with string
/// keys, which JSON can always hold.
pub fn encode<T: serde::Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("wire messages are plain data")
}

fn decode<T: serde::de::DeserializeOwned>(line: &str, what: &str) -> Result<T, WireError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    if line.len() > MESSAGE_BYTES_MAX {
        return Err(WireError(format!(
            "cannot read {what}: {} bytes exceed the limit of {MESSAGE_BYTES_MAX}",
            line.len()
        )));
    }
    let malformed = |error| WireError(format!("cannot read {what}: {error}"));
    let Versioned { version } = serde_json::from_str(line).map_err(malformed)?;
    if version != WIRE_VERSION {
        return Err(WireError(format!(
            "cannot read {what}: it has version {version}, but this program expects \
             {WIRE_VERSION}; use toll and toll-probe from the same build"
        )));
    }
    serde_json::from_str(line).map_err(malformed)
}

#[cfg(test)]
mod tests;
