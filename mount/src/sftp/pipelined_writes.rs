//! Writes that are sent before earlier ones are answered.
//!
//! A server carries out the requests of a connection in order, so every later
//! request finds the write done. Only a refusal has to be reported later.

use std::collections::VecDeque;
use std::sync::Arc;

use super::failure::{Failure, Requested};
use super::packet::{extension, kind};
use super::requests::{OpenHandle, Reply, RequestBatch, WINDOW_BYTES};
use crate::source::Content;

/// Writes and synchronisations in flight, in the order of sending. Replies are taken in
/// the same order.
pub(super) struct PipelinedWrites {
    pub opened: Arc<OpenHandle>,
    pub batch: RequestBatch,
    in_flight: VecDeque<(Reply, usize)>,
    in_flight_bytes: usize,
    /// The first failed request whose error no caller has received yet, and the number
    /// of bytes that it would have written.
    pub failed: Option<(Failure, usize)>,
}

impl PipelinedWrites {
    pub fn new(opened: Arc<OpenHandle>) -> Self {
        Self {
            batch: opened.session.batch(),
            opened,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            failed: None,
        }
    }

    /// Sends further writes through this handle. If its session is another one, waits
    /// until everything that was sent in the last session is answered or lost.
    pub fn use_handle(&mut self, opened: Arc<OpenHandle>) {
        if !Arc::ptr_eq(&self.opened, &opened) {
            self.wait();
            self.batch = opened.session.batch();
            self.opened = opened;
        }
    }

    /// Writes in pieces, each as soon as there is room among the writes in flight.
    pub fn write(&mut self, offset: u64, content: Content<'_>) {
        let bytes = content.bytes();
        let piece_bytes = self.opened.session.piece_bytes;
        for start in (0..bytes).step_by(piece_bytes) {
            while self.in_flight_bytes >= WINDOW_BYTES {
                self.receive();
            }
            let length = piece_bytes.min(bytes - start);
            let (at, content) = (offset + start as u64, content.part(start, length));
            let sent = self.batch.write(&self.opened.id, at, content);
            self.sent(sent, length);
        }
    }

    /// Sends an `fsync` for all earlier writes. Returns whether the server has the
    /// extension.
    pub fn sync(&mut self) -> bool {
        let can = self.opened.session.has(extension::FSYNC);
        if can {
            let strings = [extension::FSYNC, &self.opened.id];
            let sent = self.batch.ask(kind::EXTENDED, &strings);
            self.sent(sent, 0);
        }
        can
    }

    fn sent(&mut self, sent: Requested<Reply>, bytes: usize) {
        self.in_flight_bytes += bytes;
        match sent {
            Ok(reply) => self.in_flight.push_back((reply, bytes)),
            Err(failure) => self.answered(Err(failure), bytes),
        }
    }

    /// Sends the gathered requests without waiting for their replies.
    pub fn send(&mut self) {
        let sent = self.batch.send();
        self.answered(sent, 0);
    }

    /// Takes the replies that have arrived.
    pub fn poll(&mut self) {
        while let Some((reply, bytes)) = self.in_flight.front()
            && let Some(done) = self.batch.poll(reply)
        {
            let bytes = *bytes;
            self.in_flight.pop_front();
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
        if let Some((reply, bytes)) = self.in_flight.pop_front() {
            let done = self.batch.status(reply);
            self.answered(done, bytes);
        }
    }

    fn answered(&mut self, done: Requested<()>, bytes: usize) {
        self.in_flight_bytes -= bytes;
        if let Err(failure) = done {
            self.failed.get_or_insert((failure, bytes));
        }
    }
}
