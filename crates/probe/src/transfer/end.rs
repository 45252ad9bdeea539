//! What the ends of all channels have in common.

use std::fs::File;
use std::net::SocketAddr;

use toll_wire::Failure;

use crate::clock;
use crate::copy::mover::{CallError, Moved};

/// What an end tells of an iteration beside its times: names and values.
pub type Metrics = Vec<(&'static str, u64)>;

/// The sender's end of a channel with its method, made once for a trial, all
/// its memory allocated and touched. In each iteration `offer`, `accept`,
/// `send_all` and `close` follow each other.
pub trait Outgoing {
    /// Waits for the receiver from now on; untimed. Yields where it is to
    /// connect, if the channel has addresses.
    fn offer(&mut self) -> Result<Option<SocketAddr>, Failure>;

    /// Lets the receiver in, which says that it has connected from `from`, and
    /// readies the file; untimed.
    fn accept(&mut self, from: Option<SocketAddr>) -> Result<(), Failure>;

    /// Sends the whole file, without allocating. This is what is timed.
    fn send_all(&mut self) -> Result<Moved, CallError>;

    /// What else is to be told of the iteration, before its connection is closed;
    /// untimed.
    fn metrics(&mut self) -> Result<Metrics, Failure> {
        Ok(Vec::new())
    }

    /// Ends the iteration's connection; untimed.
    fn close(&mut self);

    /// Breaks the connection after a failure, so that the receiver cannot wait
    /// for more.
    fn break_off(&mut self) {
        self.close();
    }

    /// How the method resolved what it was free to choose.
    fn notes(&self) -> Vec<String>;
}

/// The receiver's end likewise: in each iteration `connect`, `receive_all` and
/// `close` follow each other.
pub trait Incoming {
    /// Connects to where the sender waits, if the channel has addresses, and
    /// yields where from; untimed.
    fn connect(&mut self, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Failure>;

    /// Receives all bytes into `file`, which is empty, at its beginning and open
    /// for reading and writing, without allocating. `arrival` is told of the
    /// first.
    fn receive_all(&mut self, file: &File, arrival: &mut Arrival) -> Result<Moved, CallError>;

    /// What else is to be told of the iteration, before its connection is closed;
    /// untimed.
    fn metrics(&mut self) -> Result<Metrics, Failure> {
        Ok(Vec::new())
    }

    /// Ends the iteration's connection; untimed.
    fn close(&mut self);

    /// Breaks the connection after a failure, so that the sender cannot wait
    /// for room.
    fn break_off(&mut self) {
        self.close();
    }

    /// How the method resolved what it was free to choose.
    fn notes(&self) -> Vec<String>;
}

#[derive(Debug, Default)]
pub struct Arrival {
    first_ns: Option<u64>,
}

impl Arrival {
    /// Tells that a call has brought bytes. Only the first time counts.
    pub fn note(&mut self) {
        if self.first_ns.is_none() {
            self.first_ns = Some(clock::now_ns());
        }
    }

    /// From the first bytes to `end_ns`, in nanoseconds; 0 if none came.
    pub fn until(&self, end_ns: u64) -> u64 {
        self.first_ns.map_or(0, |first| end_ns - first)
    }
}
