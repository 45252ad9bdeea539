//! Who waits for which answer: requests by their id, and where the reader
//! thread puts what comes for them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An answer of the server, without its length and id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub kind: u8,
    pub body: Vec<u8>,
}

/// The answers to one caller's requests, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    arrived: Mutex<VecDeque<(usize, Option<Packet>)>>,
    bell: Condvar,
}

impl Mailbox {
    /// Puts in an answer, or that none will come.
    fn put(&self, tag: usize, packet: Option<Packet>) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.push_back((tag, packet));
        drop(arrived);
        self.bell.notify_one();
    }

    /// The next answer and the tag of its request, unless none comes for a
    /// time.
    pub fn next(&self, patience: Duration) -> Option<(usize, Option<Packet>)> {
        let deadline = Instant::now() + patience;
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(answer) = arrived.pop_front() {
                return Some(answer);
            }
            let rest = deadline.checked_duration_since(Instant::now())?;
            let waited = self.bell.wait_timeout(arrived, rest);
            arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What became of a request's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended;

/// All requests that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// A request whose answer nobody wants has no mailbox.
    requests: HashMap<u32, Option<(Arc<Mailbox>, usize)>>,
    id_next: u32,
    /// Why there will be no further answers.
    reason: Option<String>,
}

impl Pending {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fresh id, whose answer goes to a mailbox under a tag.
    pub fn register(&self, mailbox: Option<(&Arc<Mailbox>, usize)>) -> Result<u32, Ended> {
        let mut waiting = self.lock();
        if waiting.reason.is_some() {
            return Err(Ended);
        }
        // Ids come round after 4 billion requests.
        while waiting.requests.contains_key(&waiting.id_next) {
            waiting.id_next = waiting.id_next.wrapping_add(1);
        }
        let id = waiting.id_next;
        waiting.id_next = id.wrapping_add(1);
        let mailbox = mailbox.map(|(mailbox, tag)| (Arc::clone(mailbox), tag));
        waiting.requests.insert(id, mailbox);
        Ok(id)
    }

    /// Hands an answer over; says whether anything was asked under that id.
    pub fn deliver(&self, id: u32, packet: Packet) -> bool {
        let Some(mailbox) = self.lock().requests.remove(&id) else {
            return false;
        };
        if let Some((mailbox, tag)) = mailbox {
            mailbox.put(tag, Some(packet));
        }
        true
    }

    /// Tells all who wait that no answer will come, for the first reason that
    /// is given.
    pub fn end(&self, reason: &str) {
        let mut waiting = self.lock();
        waiting.reason.get_or_insert_with(|| reason.to_owned());
        let requests = std::mem::take(&mut waiting.requests);
        drop(waiting);
        for (mailbox, tag) in requests.into_values().flatten() {
            mailbox.put(tag, None);
        }
    }

    /// Why there are no further answers.
    pub fn reason(&self) -> Option<String> {
        self.lock().reason.clone()
    }

    /// Whether answers may still come.
    pub fn is_open(&self) -> bool {
        self.lock().reason.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn the_end_reaches_all_who_wait_and_those_who_come_after() {
        let pending = Pending::default();
        let mailbox = Arc::default();
        for tag in 0..3 {
            pending.register(Some((&mailbox, tag))).unwrap();
        }
        pending.register(None).unwrap();
        pending.end("it is over");
        pending.end("for another reason");
        let mut tags: Vec<_> = (0..3).map(|_| mailbox.next(NOW).unwrap()).collect();
        tags.sort_by_key(|(tag, _)| *tag);
        assert_eq!(tags, [(0, None), (1, None), (2, None)]);
        assert_eq!(pending.register(Some((&mailbox, 9))), Err(Ended));
        assert_eq!(pending.reason().as_deref(), Some("it is over"));
    }

    #[test]
    fn an_id_is_not_given_twice_while_it_waits() {
        let pending = Pending::default();
        let mailbox = Arc::default();
        let id = pending.register(Some((&mailbox, 0))).unwrap();
        pending.lock().id_next = id;
        assert_ne!(pending.register(Some((&mailbox, 1))).unwrap(), id);
        pending.lock().id_next = u32::MAX;
        assert_eq!(pending.register(Some((&mailbox, 2))), Ok(u32::MAX));
        assert_eq!(pending.lock().id_next, 0);
    }
}
