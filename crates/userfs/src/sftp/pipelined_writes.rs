//! Writes that are sent before earlier ones were answered.
//!
//! A server does what a connection asks for in order, so whatever is asked
//! after such a write finds it done. Only a refusal has to be reported later.

use std::collections::VecDeque;
use std::sync::Arc;

use super::open_file::Opened;
use super::packet::{extension, kind};
use super::requests::{Failure, Reply, RequestBatch, Requested, WINDOW_BYTES};
use crate::source::Content;

/// A request that was not done, and the bytes that it would have written.
pub(super) type Refused = (Failure, usize);

/// Writes and synchronisations in flight, in the order in which they were
/// sent, which is that of the answers.
#[derive(Default)]
pub(super) struct PipelinedWrites {
    batch: Option<RequestBatch>,
    in_flight: VecDeque<(Reply, usize)>,
    in_flight_bytes: usize,
    /// The first failure that no caller has been told of.
    pub failed: Option<Refused>,
}

impl PipelinedWrites {
    /// The requests to this session; before another one is used, everything
    /// that was sent to the last one has to be answered or lost.
    pub fn batch(&mut self, opened: &Opened) -> &mut RequestBatch {
        let is_current = |batch: &RequestBatch| Arc::ptr_eq(batch.session(), &opened.session);
        if !self.batch.as_ref().is_some_and(is_current) {
            self.wait();
            self.batch = None;
        }
        self.batch
            .get_or_insert_with(|| RequestBatch::new(&opened.session))
    }

    /// Writes in pieces, as soon as there is room among the writes in flight.
    pub fn write(&mut self, opened: &Opened, offset: u64, content: Content<'_>) {
        let bytes = content.bytes();
        let piece_bytes = opened.session.limits.write_bytes;
        for start in (0..bytes).step_by(piece_bytes) {
            while self.in_flight_bytes >= WINDOW_BYTES {
                self.receive();
            }
            let length = piece_bytes.min(bytes - start);
            let (at, content) = (offset + start as u64, content.part(start, length));
            let sent = self.batch(opened).write(&opened.id, at, content);
            self.sent(sent, length);
        }
    }

    /// Lets the server bring to its device what was sent.
    pub fn sync(&mut self, opened: &Opened) {
        let strings = [extension::FSYNC, &opened.id.0[..]];
        let sent = self.batch(opened).ask(kind::EXTENDED, &strings);
        self.sent(sent, 0);
    }

    fn sent(&mut self, sent: Requested<Reply>, bytes: usize) {
        match sent {
            Ok(reply) => {
                self.in_flight.push_back((reply, bytes));
                self.in_flight_bytes += bytes;
            }
            Err(failure) => self.fail(failure, bytes),
        }
    }

    fn fail(&mut self, failure: Failure, bytes: usize) {
        self.failed.get_or_insert((failure, bytes));
    }

    /// Sends what is gathered; nobody waits for its answer now.
    pub fn send(&mut self) {
        if let Some(Err(failure)) = self.batch.as_mut().map(RequestBatch::send) {
            self.fail(failure, 0);
        }
    }

    /// Takes the answers that are here already.
    pub fn poll(&mut self) {
        while let (Some(batch), Some((reply, _))) = (&self.batch, self.in_flight.front())
            && let Some(done) = batch.poll(reply)
        {
            let bytes = self.in_flight.pop_front().map_or(0, |(_, bytes)| bytes);
            self.answered(done, bytes);
        }
    }

    /// Waits until everything that was sent is answered or lost.
    pub fn wait(&mut self) {
        while !self.in_flight.is_empty() {
            self.receive();
        }
    }

    fn receive(&mut self) {
        if let (Some(batch), Some((reply, bytes))) = (&mut self.batch, self.in_flight.pop_front()) {
            let done = batch.status(reply);
            self.answered(done, bytes);
        }
    }

    fn answered(&mut self, done: Requested<()>, bytes: usize) {
        self.in_flight_bytes -= bytes;
        if let Err(failure) = done {
            self.fail(failure, bytes);
        }
    }
}
