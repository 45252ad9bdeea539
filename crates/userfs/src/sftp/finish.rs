//! The end of a write-back, in one round trip as far as it fits the window:
//! the server does what it is asked for in this order.

use super::change;
use super::handle::Opened;
use super::packet::kind;
use super::stat::Stat;
use super::status::Failure;
use super::transfer::Writes;
use crate::source::SetAttributes;

/// What is written and set, and whether it is synchronised.
pub(super) struct Finish<'a> {
    pub bytes: &'a [u8],
    pub offset: u64,
    pub changes: &'a SetAttributes,
    pub is_sync: bool,
    /// What the file was when it was made here, if it was.
    pub made: Option<Stat>,
}

impl Finish<'_> {
    /// Does all of it; answers what the file is then.
    pub fn run(&self, opened: &Opened) -> Result<Stat, Failure> {
        let mut exchange = opened.session.exchange();
        let handle = &opened.id;
        let look = |packet: &mut super::packet::Encoder<'_>| {
            packet.string(handle.bytes());
        };
        let now = match (change::needs_present(self.changes), self.made) {
            (false, _) => Stat::default(),
            // Nobody has read a file before it had any content.
            (true, Some(made)) => made,
            (true, None) => {
                let tag = exchange.request(kind::FSTAT, look)?;
                exchange.stat(tag)?
            }
        };
        let mut writes = Writes::default();
        let mut at = self.offset;
        for piece in self.bytes.chunks(opened.session.limits.write_bytes) {
            writes.send(&mut exchange, handle, at, piece)?;
            at += piece.len() as u64;
        }
        let mut asked = Vec::new();
        for step in change::steps(self.changes, &now) {
            let tag = exchange.request(kind::FSETSTAT, |packet| {
                packet.string(handle.bytes());
                step.encode(packet);
            })?;
            match step.owner {
                // What follows may be set-user-id: see `change`.
                Some(_) => exchange.status(tag)?,
                None => asked.push(tag),
            }
        }
        if self.is_sync && opened.session.extensions.fsync {
            let tag = exchange.extended("fsync@openssh.com", look)?;
            asked.push(tag);
        }
        let stat = exchange.request(kind::FSTAT, look)?;
        writes.finish(&mut exchange)?;
        for tag in asked {
            exchange.status(tag)?;
        }
        exchange.stat(stat)
    }
}
