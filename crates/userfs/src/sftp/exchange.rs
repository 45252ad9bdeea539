//! The requests of one caller, many of which can be in flight at once.
//!
//! A server answers in any order, but does what a connection asks for in the
//! order in which it was asked (OpenSSH's does one after the other). So what
//! need not wait for an answer goes together with what comes before it, in
//! one round trip.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::mailbox::{Mailbox, Packet};
use super::packet::{Decoder, Encoder, HANDLE_BYTES_MAX, Malformed, kind, status};
use super::session::{Content, Session};
use super::stat::Stat;
use super::status::Failure;

/// Content up to this length is copied to go with what is asked next: what is
/// sent by itself is also encrypted, passed on and answered by itself.
const GATHERED_BYTES_MAX: usize = 16 << 10;

/// A handle of an open file or directory, as the server named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandleId(Vec<u8>);

impl HandleId {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// One of an exchange's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tag(usize);

/// A name with attributes, as READDIR, READLINK and REALPATH answer. What is
/// for people to read (`longname`) is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub name: Vec<u8>,
    pub stat: Stat,
}

/// Requests and their answers. Requests are gathered and sent when an answer
/// is waited for.
pub(super) struct Exchange<'a> {
    session: &'a Session,
    mailbox: Arc<Mailbox>,
    unsent: Vec<u8>,
    tag_next: usize,
    /// Answers that came before they were waited for.
    early: HashMap<usize, Packet>,
}

impl<'a> Exchange<'a> {
    pub fn new(session: &'a Session) -> Self {
        Self {
            session,
            mailbox: Arc::default(),
            unsent: Vec::new(),
            tag_next: 0,
            early: HashMap::new(),
        }
    }

    fn begin(&mut self, kind: u8) -> Result<(Encoder<'_>, Tag), Failure> {
        let tag = Tag(self.tag_next);
        let id = self.session.register(&self.mailbox, tag.0)?;
        self.tag_next += 1;
        let mut packet = Encoder::begin(&mut self.unsent, kind);
        packet.u32(id);
        Ok((packet, tag))
    }

    /// A WRITE that is sent at once, whose answer goes to another mailbox, under
    /// the number of its bytes.
    pub fn write_for(
        &mut self,
        mailbox: &Arc<Mailbox>,
        handle: &HandleId,
        offset: u64,
        content: Content<'_>,
    ) -> Result<(), Failure> {
        let id = self.session.register(mailbox, content.bytes())?;
        let mut packet = Encoder::begin(&mut self.unsent, kind::WRITE);
        let length = u32::try_from(content.bytes()).expect("a piece is far below 4 GiB");
        packet.u32(id);
        packet.string(handle.bytes()).u64(offset).u32(length);
        packet.finish(content.bytes());
        let unsent = std::mem::take(&mut self.unsent);
        self.session.send(&unsent, content)?;
        Ok(())
    }

    /// An fsync that is sent at once, likewise, under no bytes.
    pub fn sync_for(&mut self, mailbox: &Arc<Mailbox>, handle: &HandleId) -> Result<(), Failure> {
        let id = self.session.register(mailbox, 0)?;
        let mut packet = Encoder::begin(&mut self.unsent, kind::EXTENDED);
        packet.u32(id);
        packet.string(b"fsync@openssh.com").string(handle.bytes());
        packet.finish(0);
        self.send()
    }

    /// A request; `fields` writes what follows its id.
    pub fn request(
        &mut self,
        kind: u8,
        fields: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Tag, Failure> {
        let (mut packet, tag) = self.begin(kind)?;
        fields(&mut packet);
        packet.finish(0);
        Ok(tag)
    }

    /// A request by an extension's name.
    pub fn extended(
        &mut self,
        name: &str,
        fields: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Tag, Failure> {
        self.request(kind::EXTENDED, |packet| {
            packet.string(name.as_bytes());
            fields(packet);
        })
    }

    /// A request whose answer is not waited for.
    pub fn unwanted(
        &mut self,
        kind: u8,
        fields: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<(), Failure> {
        let id = self.session.register_unwanted()?;
        let mut packet = Encoder::begin(&mut self.unsent, kind);
        packet.u32(id);
        fields(&mut packet);
        packet.finish(0);
        Ok(())
    }

    /// Closes a handle without waiting: nothing can be done about a failure
    /// after everything written was answered for.
    pub fn close(&mut self, handle: &HandleId) -> Result<(), Failure> {
        self.session.handles_open.fetch_sub(1, Ordering::Relaxed);
        self.unwanted(kind::CLOSE, |packet| {
            packet.string(handle.bytes());
        })
    }

    /// LSTAT.
    pub fn lstat(&mut self, path: &[u8]) -> Result<Tag, Failure> {
        self.request(kind::LSTAT, |packet| {
            packet.string(path);
        })
    }

    /// A WRITE. A long one is sent at once with all that is gathered, so that
    /// its content need not be copied.
    pub fn write(&mut self, handle: &HandleId, offset: u64, bytes: &[u8]) -> Result<Tag, Failure> {
        let (mut packet, tag) = self.begin(kind::WRITE)?;
        let length = u32::try_from(bytes.len()).expect("a piece is far below 4 GiB");
        packet.string(handle.bytes()).u64(offset).u32(length);
        packet.finish(bytes.len());
        if bytes.len() <= GATHERED_BYTES_MAX {
            self.unsent.extend_from_slice(bytes);
            return Ok(tag);
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.session.send(&unsent, Content::Bytes(bytes))?;
        Ok(tag)
    }

    /// Lets what is gathered, for which nobody waits, go with what is sent
    /// next.
    pub fn send_later(&mut self) {
        self.session.send_later(&self.unsent);
        self.unsent.clear();
    }

    /// Sends what is gathered.
    pub fn send(&mut self) -> Result<(), Failure> {
        if !self.unsent.is_empty() {
            self.session.send(&self.unsent, Content::Bytes(&[]))?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// The answer that comes next, to whichever request.
    pub fn next(&mut self) -> Result<(Tag, Packet), Failure> {
        self.send()?;
        let (tag, packet) = self.session.next(&self.mailbox).ok_or(Failure::Lost)?;
        Ok((Tag(tag), packet))
    }

    /// Keeps an answer until it is asked for.
    pub fn put_by(&mut self, tag: Tag, packet: Packet) {
        self.early.insert(tag.0, packet);
    }

    /// Waits for the answer to one request.
    fn answer(&mut self, wanted: Tag) -> Result<Packet, Failure> {
        loop {
            if let Some(packet) = self.early.remove(&wanted.0) {
                return Ok(packet);
            }
            let (tag, packet) = self.next()?;
            self.put_by(tag, packet);
        }
    }

    /// Ends the session, as its server cannot be trusted.
    fn distrust(&self, Malformed(what): Malformed) -> Failure {
        self.session.fail(&format!("the server sent {what}"));
        Failure::Lost
    }

    /// Reads an answer that should be of one kind and may be a refusal.
    fn read<T>(
        &self,
        packet: &Packet,
        wanted: u8,
        fields: impl FnOnce(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Failure> {
        let mut decoder = Decoder::new(&packet.body);
        if packet.kind == wanted {
            return fields(&mut decoder).map_err(|why| self.distrust(why));
        }
        if packet.kind != kind::STATUS {
            return Err(self.distrust(Malformed("an answer of the wrong kind")));
        }
        match decoder.u32() {
            Ok(status::OK) => Err(self.distrust(Malformed("a success without its result"))),
            Ok(code) => Err(Failure::Refused(code)),
            Err(why) => Err(self.distrust(why)),
        }
    }

    /// Whether a request was done. The text that comes with a status is for
    /// people, in the server's words, and is not read.
    pub fn status(&mut self, tag: Tag) -> Result<(), Failure> {
        let packet = self.answer(tag)?;
        self.read_status(&packet)
    }

    /// The same of an answer that is here.
    pub fn read_status(&self, packet: &Packet) -> Result<(), Failure> {
        let code = self.read(packet, kind::STATUS, |fields| fields.u32())?;
        match code {
            status::OK => Ok(()),
            code => Err(Failure::Refused(code)),
        }
    }

    pub fn handle(&mut self, tag: Tag) -> Result<HandleId, Failure> {
        let packet = self.answer(tag)?;
        let handle = self.read(&packet, kind::HANDLE, |fields| {
            let bytes = fields.string()?;
            match bytes.len() <= HANDLE_BYTES_MAX {
                true => Ok(HandleId(bytes.to_vec())),
                false => Err(Malformed("a handle that is too long")),
            }
        })?;
        self.session.handles_open.fetch_add(1, Ordering::Relaxed);
        Ok(handle)
    }

    pub fn stat(&mut self, tag: Tag) -> Result<Stat, Failure> {
        let packet = self.answer(tag)?;
        self.read(&packet, kind::ATTRS, Stat::decode)
    }

    pub fn names(&mut self, tag: Tag) -> Result<Vec<Name>, Failure> {
        let packet = self.answer(tag)?;
        self.read(&packet, kind::NAME, read_names)
    }

    /// The one name that READLINK and REALPATH answer.
    pub fn name(&mut self, tag: Tag) -> Result<Vec<u8>, Failure> {
        let mut names = self.names(tag)?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name.name),
            _ => Err(self.distrust(Malformed("several names for one"))),
        }
    }

    /// What a READ of some bytes brought, or that the file ends there
    /// (`None`).
    pub fn read_data<'p>(
        &self,
        packet: &'p Packet,
        bytes_max: usize,
    ) -> Result<Option<&'p [u8]>, Failure> {
        if packet.kind == kind::STATUS {
            return match self.read_status(packet) {
                Err(Failure::Refused(status::EOF)) => Ok(None),
                Err(failure) => Err(failure),
                Ok(()) => Err(self.distrust(Malformed("a success without its result"))),
            };
        }
        if packet.kind != kind::DATA {
            return Err(self.distrust(Malformed("an answer of the wrong kind")));
        }
        let bytes = Decoder::new(&packet.body).string();
        let bytes = bytes.map_err(|why| self.distrust(why))?;
        match bytes.len() {
            // The end of a file is a status of its own; no progress at all
            // would be asked for again for ever.
            0 => Err(self.distrust(Malformed("nothing where bytes were asked for"))),
            length if length > bytes_max => {
                Err(self.distrust(Malformed("more bytes than were asked for")))
            }
            _ => Ok(Some(bytes)),
        }
    }

    pub fn extended_reply<T>(
        &mut self,
        tag: Tag,
        fields: impl FnOnce(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Failure> {
        let packet = self.answer(tag)?;
        self.read(&packet, kind::EXTENDED_REPLY, fields)
    }
}

fn read_names(fields: &mut Decoder<'_>) -> Result<Vec<Name>, Malformed> {
    /// Two lengths and the flags of the attributes.
    const NAME_BYTES_MIN: usize = 12;
    let count = fields.u32()? as usize;
    if count > fields.remaining() / NAME_BYTES_MIN {
        return Err(Malformed("a listing of more names than it holds"));
    }
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let name = fields.string()?.to_vec();
        fields.string()?;
        let stat = Stat::decode(fields)?;
        names.push(Name { name, stat });
    }
    Ok(names)
}
