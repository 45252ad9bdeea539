//! Content on its way, with many requests in flight: at most
//! [`WINDOW_BYTES`] of them for one caller, which is what OpenSSH lets a
//! channel have under way (`CHAN_SES_WINDOW_DEFAULT`), so that more would
//! only wait in a pipe.

use std::collections::{HashMap, VecDeque};

use super::exchange::{Exchange, HandleId, Tag};
use super::packet::kind;
use super::status::Failure;
use crate::source::Error;

/// Bytes that one caller asks for or sends before it waits for answers.
pub(super) const WINDOW_BYTES: usize = 2 << 20;

/// Why a transfer ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The server refused, or is gone.
    Remote(Failure),
    /// Who takes or gives the content could not.
    Local(Error),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Remote(failure)
    }
}

/// Gets a piece of a file and its distance from where reading began.
pub(super) type Take<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

/// A part of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub offset: u64,
    pub bytes: u64,
}

/// Reads a part of a file, of which `take` gets every byte once, in pieces
/// and in any order, each with its distance from the part's beginning.
/// Answers how many bytes there are until the end of the part or of the file.
pub(super) fn read(
    exchange: &mut Exchange<'_>,
    handle: &HandleId,
    part: Range,
    piece_bytes: usize,
    take: &mut Take<'_>,
) -> Result<u64, Broken> {
    let ask = |exchange: &mut Exchange<'_>, at: u64, bytes: usize| {
        let length = u32::try_from(bytes).expect("a piece is far below 4 GiB");
        exchange.request(kind::READ, |packet| {
            packet
                .string(handle.bytes())
                .u64(part.offset + at)
                .u32(length);
        })
    };
    let mut in_flight: HashMap<Tag, (u64, usize)> = HashMap::new();
    let (mut asked, mut waiting_bytes, mut end) = (0, 0, part.bytes);
    loop {
        while asked < end && waiting_bytes < WINDOW_BYTES {
            let left = usize::try_from(end - asked).unwrap_or(usize::MAX);
            let bytes = left.min(piece_bytes);
            in_flight.insert(ask(exchange, asked, bytes)?, (asked, bytes));
            asked += bytes as u64;
            waiting_bytes += bytes;
        }
        if in_flight.is_empty() {
            return Ok(end);
        }
        let (tag, packet) = exchange.next()?;
        let Some((at, bytes)) = in_flight.remove(&tag) else {
            exchange.put_by(tag, packet);
            continue;
        };
        waiting_bytes -= bytes;
        let Some(content) = exchange.read_data(&packet, bytes)? else {
            end = end.min(at);
            continue;
        };
        take(at, content).map_err(Broken::Local)?;
        let short = bytes - content.len();
        if short > 0 {
            // A server may answer with less than was asked for; only it knows
            // whether the file ends there.
            let next = at + content.len() as u64;
            in_flight.insert(ask(exchange, next, short)?, (next, short));
            waiting_bytes += short;
        }
    }
}

/// Writes that are under way.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// In the order in which they were sent, which is that of the answers of
    /// every server that there is.
    in_flight: VecDeque<(Tag, usize)>,
    waiting_bytes: usize,
}

impl Writes {
    /// Sends a piece, as soon as it has room among those under way.
    pub fn send(
        &mut self,
        exchange: &mut Exchange<'_>,
        handle: &HandleId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        while self.waiting_bytes >= WINDOW_BYTES {
            self.wait(exchange)?;
        }
        let tag = exchange.write(handle, offset, bytes)?;
        self.in_flight.push_back((tag, bytes.len()));
        self.waiting_bytes += bytes.len();
        Ok(())
    }

    /// Waits until every piece is answered for.
    pub fn finish(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Failure> {
        while !self.in_flight.is_empty() {
            self.wait(exchange)?;
        }
        Ok(())
    }

    fn wait(&mut self, exchange: &mut Exchange<'_>) -> Result<(), Failure> {
        let Some((tag, bytes)) = self.in_flight.pop_front() else {
            return Ok(());
        };
        self.waiting_bytes -= bytes;
        exchange.status(tag)
    }
}
