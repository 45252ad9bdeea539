//! Requests that share a round trip.
//!
//! A server replies in any order, but carries out the requests of a connection in the
//! order in which they were sent (OpenSSH's does one after the other). So a request
//! that need not wait for a reply is sent together with the previous request.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use oneshot::TryRecvError;

use super::failure::{Failure, Requested};
use super::packet::{Decoder, Encoder, HANDLE_BYTES_MAX, Malformed, kind, status};
pub(super) use super::session::Reply;
use super::session::{Packet, Session};
use super::stat::Stat;
use crate::source::Content;

/// Longest content that is copied so that it can go with the next request. Content that
/// is sent alone is also encrypted, forwarded and answered alone.
const GATHERED_BYTES_MAX: usize = 16 << 10;

/// Number of bytes that one caller requests or sends before it waits for replies. It is
/// the window of a channel in OpenSSH (`CHAN_SES_WINDOW_DEFAULT`); more bytes would
/// only wait in a pipe.
pub(super) const WINDOW_BYTES: usize = 2 << 20;

/// A handle of an open file or directory. Dropping this value closes the handle.
pub(super) struct OpenHandle {
    pub session: Arc<Session>,
    pub id: Vec<u8>,
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        self.session.close(&self.id);
    }
}

/// A name with attributes, as in replies to READDIR, READLINK and REALPATH. The
/// `longname`, which is for users to read, is skipped.
pub(super) type Name = (Vec<u8>, Stat);

/// Requests of one caller. They are gathered until the caller waits for a reply.
pub(super) struct RequestBatch {
    pub session: Arc<Session>,
    unsent: Vec<u8>,
}

impl Session {
    pub fn batch(self: &Arc<Self>) -> RequestBatch {
        RequestBatch {
            session: Arc::clone(self),
            unsent: Vec::new(),
        }
    }
}

impl RequestBatch {
    fn begin(&mut self, kind: u8) -> Result<(Encoder<'_>, Reply), Failure> {
        let (id, reply) = self.session.connection.register()?;
        let mut packet = Encoder::begin(&mut self.unsent, kind);
        packet.u32(id);
        Ok((packet, reply))
    }

    fn request(&mut self, kind: u8, fields: impl FnOnce(&mut Encoder<'_>)) -> Requested<Reply> {
        let (mut packet, reply) = self.begin(kind)?;
        fields(&mut packet);
        packet.finish(0);
        Ok(reply)
    }

    /// Adds a request whose fields are all strings: paths, handles, the name of an
    /// extension.
    pub fn ask(&mut self, kind: u8, strings: &[&[u8]]) -> Requested<Reply> {
        self.request(kind, |packet| {
            for string in strings {
                packet.string(string);
            }
        })
    }

    /// Adds a request that sets attributes. `strings` say of which file.
    pub fn set(&mut self, kind: u8, strings: &[&[u8]], attributes: &Stat) -> Requested<Reply> {
        self.request(kind, |packet| {
            for string in strings {
                packet.string(string);
            }
            attributes.encode(packet);
        })
    }

    pub fn open(&mut self, path: &[u8], flags: u32, new: &Stat) -> Requested<Reply> {
        self.request(kind::OPEN, |packet| {
            packet.string(path).u32(flags);
            new.encode(packet);
        })
    }

    pub fn run(&mut self, kind: u8, strings: &[&[u8]]) -> Requested<()> {
        let reply = self.ask(kind, strings)?;
        self.status(reply)
    }

    pub fn look_up(&mut self, kind: u8, of: &[u8]) -> Requested<Stat> {
        let reply = self.ask(kind, &[of])?;
        self.stat(reply)
    }

    /// Adds a WRITE. A long WRITE is sent at once with all gathered requests, so that
    /// its content need not be copied.
    pub fn write(&mut self, handle: &[u8], offset: u64, content: Content<'_>) -> Requested<Reply> {
        let (mut packet, reply) = self.begin(kind::WRITE)?;
        let length = u32::try_from(content.bytes()).expect("a piece is far below 4 GiB");
        packet.string(handle).u64(offset).u32(length);
        packet.finish(content.bytes());
        match content {
            Content::Bytes(bytes) if bytes.len() <= GATHERED_BYTES_MAX => {
                self.unsent.extend_from_slice(bytes);
            }
            content => {
                let unsent = std::mem::take(&mut self.unsent);
                self.session.connection.send(&unsent, content)?;
            }
        }
        Ok(reply)
    }

    pub fn send(&mut self) -> Requested<()> {
        if !self.unsent.is_empty() {
            self.session
                .connection
                .send(&self.unsent, Content::Bytes(&[]))?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// Returns the status of a request, if its reply has arrived.
    pub fn poll(&self, reply: &Reply) -> Option<Requested<()>> {
        match reply.try_recv() {
            Ok(packet) => Some(self.read_status(&packet)),
            Err(TryRecvError::Disconnected) => Some(Err(Failure::Lost)),
            Err(TryRecvError::Empty) => None,
        }
    }

    fn distrust(&self, what: Malformed) -> Failure {
        self.session
            .connection
            .end(&format!("the server sent {what}"));
        Failure::Lost
    }

    /// Waits for a reply, which must be of type `wanted` or a refusal.
    pub fn read_answer<T>(
        &mut self,
        reply: Reply,
        wanted: u8,
        fields: impl FnOnce(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Requested<T> {
        self.send()?;
        let packet = self.session.answer(&reply)?;
        self.read_packet(&packet, wanted, fields)
    }

    fn read_packet<T>(
        &self,
        packet: &Packet,
        wanted: u8,
        fields: impl FnOnce(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Requested<T> {
        let mut decoder = Decoder::new(&packet.body);
        let read = match packet.kind {
            kind if kind == wanted => {
                return fields(&mut decoder).map_err(|why| self.distrust(why));
            }
            kind::STATUS => decoder.u32(),
            _ => Err("a reply of the wrong type"),
        };
        match read {
            Ok(status::OK) => Err(self.distrust("a success without a result")),
            Ok(code) => Err(Failure::Refused(code)),
            Err(why) => Err(self.distrust(why)),
        }
    }

    /// Waits for the status of a request. The text that the server adds for users is
    /// not read.
    pub fn status(&mut self, reply: Reply) -> Requested<()> {
        self.send()?;
        self.read_status(&self.session.answer(&reply)?)
    }

    fn read_status(&self, packet: &Packet) -> Requested<()> {
        match self.read_packet(packet, kind::STATUS, |fields| fields.u32())? {
            status::OK => Ok(()),
            code => Err(Failure::Refused(code)),
        }
    }

    pub fn handle(&mut self, reply: Reply) -> Requested<OpenHandle> {
        let id = self.read_answer(reply, kind::HANDLE, |fields| {
            let id = fields.string()?;
            if id.len() <= HANDLE_BYTES_MAX {
                Ok(id.to_vec())
            } else {
                Err("a handle that is too long")
            }
        })?;
        let session = Arc::clone(&self.session);
        Ok(OpenHandle { session, id })
    }

    pub fn stat(&mut self, reply: Reply) -> Requested<Stat> {
        self.read_answer(reply, kind::ATTRS, Stat::decode)
    }

    /// Waits for the next names of a listing. Returns an empty list at its end.
    pub fn names(&mut self, reply: Reply) -> Requested<Vec<Name>> {
        match self.read_answer(reply, kind::NAME, read_names) {
            Err(Failure::Refused(status::EOF)) => Ok(Vec::new()),
            names => names,
        }
    }

    /// Waits for the one name in the reply to READLINK or REALPATH.
    pub fn name(&mut self, reply: Reply) -> Requested<Vec<u8>> {
        let mut names = self.read_answer(reply, kind::NAME, read_names)?;
        match (names.pop(), names.is_empty()) {
            (Some((name, _)), true) => Ok(name),
            _ => Err(self.distrust("several names where one was requested")),
        }
    }

    /// Waits for the bytes of a READ and copies them into `buffer`, whose length is the
    /// requested one. Returns how many bytes arrived; 0 is the end of the file.
    pub fn data(&mut self, reply: Reply, buffer: &mut [u8]) -> Requested<usize> {
        let read = self.read_answer(reply, kind::DATA, |fields| {
            let bytes = fields.string()?;
            match bytes.len() {
                // The end of a file has its own status. Without progress, the same
                // bytes would be requested forever.
                0 => Err("no bytes in reply to a read"),
                length if length > buffer.len() => Err("more bytes than were requested"),
                length => {
                    buffer[..length].copy_from_slice(bytes);
                    Ok(length)
                }
            }
        });
        match read {
            Err(Failure::Refused(status::EOF)) => Ok(0),
            read => read,
        }
    }

    /// Reads a part of a file in pieces, many of them in flight. Returns how many
    /// bytes there are up to the end of the buffer or of the file.
    pub fn read(&mut self, handle: &[u8], buffer: &mut [u8], offset: u64) -> Requested<usize> {
        let piece_bytes = self.session.piece_bytes;
        let mut in_flight = VecDeque::new();
        let (mut asked, mut in_flight_bytes, mut end) = (0, 0, buffer.len());
        loop {
            while asked < end && in_flight_bytes < WINDOW_BYTES {
                let piece = asked..(asked + piece_bytes).min(end);
                asked = piece.end;
                in_flight_bytes += piece.len();
                in_flight.push_back((self.ask_data(handle, offset, &piece)?, piece));
            }
            let Some((reply, mut piece)) = in_flight.pop_front() else {
                return Ok(end);
            };
            in_flight_bytes -= piece.len();
            match self.data(reply, &mut buffer[piece.clone()])? {
                0 => end = end.min(piece.start),
                length if length < piece.len() => {
                    // A server may send less than was requested, and only the server
                    // knows whether the file ends there.
                    piece.start += length;
                    in_flight_bytes += piece.len();
                    in_flight.push_back((self.ask_data(handle, offset, &piece)?, piece));
                }
                _ => {}
            }
        }
    }

    pub fn ask_data(
        &mut self,
        handle: &[u8],
        offset: u64,
        piece: &Range<usize>,
    ) -> Requested<Reply> {
        let length = u32::try_from(piece.len()).expect("a piece is far below 4 GiB");
        self.request(kind::READ, |packet| {
            let at = offset.saturating_add(piece.start as u64);
            packet.string(handle).u64(at).u32(length);
        })
    }
}

fn read_names(fields: &mut Decoder<'_>) -> Result<Vec<Name>, Malformed> {
    /// Minimum number of bytes of a name in a reply: two lengths and the flags of its
    /// attributes.
    const NAME_BYTES_MIN: usize = 12;
    let count = fields.u32()? as usize;
    if count > fields.remaining() / NAME_BYTES_MIN {
        return Err("a listing with fewer names than it announces");
    }
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let name = fields.string()?.to_vec();
        fields.string()?;
        names.push((name, Stat::decode(fields)?));
    }
    Ok(names)
}
