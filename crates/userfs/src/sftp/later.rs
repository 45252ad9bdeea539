//! Writes whose caller was answered when they were sent, and what became of
//! them.
//!
//! A server does what a connection asks for in order, so whatever is asked
//! after such a write finds it done. Only that it may have failed has to be
//! told: to the next write or synchronisation, and until then to each close.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::handle::Opened;
use super::mailbox::{Mailbox, Packet};
use super::session::Content;
use super::status::Failure;
use super::transfer::WINDOW_BYTES;
use crate::source::{Error, Result};

/// The writes of one open file.
#[derive(Default)]
pub(super) struct Later {
    state: Mutex<State>,
}

/// What is under way and what has failed.
#[derive(Default)]
pub(super) struct State {
    /// Where what is in flight was sent to.
    sent_to: Option<Opened>,
    /// Gets the answers, each under the bytes of its write.
    mailbox: Arc<Mailbox>,
    in_flight: usize,
    waiting_bytes: usize,
    /// The first error that no write and no synchronisation has told.
    failed: Option<Error>,
}

/// Says which error a refusal of so many bytes is.
pub(super) type Explain<'a> = dyn Fn(&Opened, usize, Failure) -> Error + 'a;

impl Later {
    /// No other write is sent while this is held.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Sends a piece, as soon as it has room among those under way.
    pub fn send(
        &mut self,
        opened: &Opened,
        offset: u64,
        piece: Content<'_>,
        explain: &Explain<'_>,
    ) -> Result<()> {
        while self.waiting_bytes >= WINDOW_BYTES {
            self.wait(explain);
        }
        let mut exchange = opened.session.exchange();
        let sent = exchange.write_for(&self.mailbox, &opened.id, offset, piece);
        sent.map_err(|failure| self.not_sent(failure))?;
        self.sent_to = Some(opened.clone());
        self.in_flight += 1;
        self.waiting_bytes += piece.bytes();
        Ok(())
    }

    /// Lets the server begin to bring to its device what was sent.
    pub fn sync(&mut self, opened: &Opened) -> Result<()> {
        let mut exchange = opened.session.exchange();
        let sent = exchange.sync_for(&self.mailbox, &opened.id);
        sent.map_err(|failure| self.not_sent(failure))?;
        self.sent_to = Some(opened.clone());
        self.in_flight += 1;
        Ok(())
    }

    /// Takes the answers that are there; with another session all there will
    /// be of the one before.
    pub fn look(&mut self, opened: &Opened, explain: &Explain<'_>) {
        let before = self.sent_to.as_ref();
        if before.is_some_and(|before| !Arc::ptr_eq(&before.session, &opened.session)) {
            return self.wait_for_all(explain);
        }
        while self.in_flight > 0
            && let Some((bytes, packet)) = self.mailbox.next(Duration::ZERO)
        {
            self.answered(bytes, packet, explain);
        }
    }

    /// Waits until every write was answered for.
    pub fn wait_for_all(&mut self, explain: &Explain<'_>) {
        while self.in_flight > 0 {
            self.wait(explain);
        }
    }

    /// The error that is to be told, and is told by that.
    pub fn told(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The same; it will be told again.
    pub fn failed(&self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    fn wait(&mut self, explain: &Explain<'_>) {
        let sent_to = self.sent_to.as_ref().expect("something was sent");
        match sent_to.session.next(&self.mailbox) {
            Some((bytes, packet)) => self.answered(bytes, Some(packet), explain),
            None => self.lost(),
        }
    }

    fn answered(&mut self, bytes: usize, packet: Option<Packet>, explain: &Explain<'_>) {
        let Some(packet) = packet else {
            return self.lost();
        };
        self.in_flight -= 1;
        self.waiting_bytes -= bytes;
        let sent_to = self.sent_to.as_ref().expect("something was sent");
        let done = sent_to.session.exchange().read_status(&packet);
        if let (Err(failure), None) = (done, self.failed) {
            self.failed = Some(explain(sent_to, bytes.max(1), failure));
        }
    }

    /// The session has ended, and the mailbox is told of what was not sent, too.
    fn not_sent(&mut self, failure: Failure) -> Error {
        self.lost();
        // The caller is told just now.
        self.failed = None;
        failure.plain()
    }

    /// The session has ended: nothing in flight will be answered.
    fn lost(&mut self) {
        self.mailbox = Arc::default();
        self.in_flight = 0;
        self.waiting_bytes = 0;
        self.failed.get_or_insert(Error::Lost);
    }
}
