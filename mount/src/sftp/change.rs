//! Changes attributes, in steps that a server carries out correctly.
//!
//! OpenSSH's server applies one request in the order length, permissions, times, owner,
//! and continues after an error. A change of owner clears set-user-id, so it is sent
//! first, in a separate request. The other changes wait for the reply: a file that
//! could not be given away must not become set-user-id.

use std::time::{SystemTime, UNIX_EPOCH};

use super::diagnosis::Operation;
use super::failure::{Failure, Requested};
use super::packet::{extension, kind, status};
use super::requests::{Reply, RequestBatch};
use super::stat::{Stat, seconds};
use crate::source::{Kind, SetAttributes, SetTime};

/// The file to change: a path, whose symbolic link is not followed, or an open file.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Path(&'a [u8]),
    Handle(&'a [u8]),
}

/// Returns the operation that a refusal of these changes is diagnosed as.
pub(super) fn operation(changes: &SetAttributes) -> Operation {
    Operation::SetAttributes {
        resizes: changes.size_bytes.is_some(),
    }
}

pub(super) fn make(
    batch: &mut RequestBatch,
    target: Target<'_>,
    changes: &SetAttributes,
) -> Requested<()> {
    let resizes = changes.size_bytes.is_some();
    let may_follow = resizes || !batch.session.has(extension::LSETSTAT);
    let now = match target {
        Target::Path(path) if may_follow || needs_present(changes) => {
            batch.look_up(kind::LSTAT, path)?
        }
        Target::Handle(handle) if needs_present(changes) => batch.look_up(kind::FSTAT, handle)?,
        _ => Stat::default(),
    };
    if may_follow && now.kind() == Some(Kind::Symlink) {
        // The server would follow the link: it has no other request for this.
        return Err(Failure::Refused(status::OP_UNSUPPORTED));
    }
    let sent = send(batch, target, changes, &now)?;
    sent.map_or(Ok(()), |reply| batch.status(reply))
}

/// Sends the requests that change a file. `now` are the file's current attributes. The
/// last reply may be pending on return.
pub(super) fn send(
    batch: &mut RequestBatch,
    target: Target<'_>,
    changes: &SetAttributes,
    now: &Stat,
) -> Requested<Option<Reply>> {
    let mut last = None;
    for step in steps(changes, now) {
        if let Some(owner) = last.take() {
            batch.status(owner)?;
        }
        let knows_links = batch.session.has(extension::LSETSTAT);
        last = Some(match target {
            Target::Handle(handle) => batch.set(kind::FSETSTAT, &[handle], &step),
            // lsetstat refuses a length.
            Target::Path(path) if knows_links && step.size_bytes.is_none() => {
                batch.set(kind::EXTENDED, &[extension::LSETSTAT, path], &step)
            }
            Target::Path(path) => batch.set(kind::SETSTAT, &[path], &step),
        }?);
    }
    Ok(last)
}

/// Returns whether the current attributes must be known, because the protocol sets both
/// times or none.
pub(super) fn needs_present(changes: &SetAttributes) -> bool {
    changes.atime.is_some() != changes.mtime.is_some()
}

fn steps(changes: &SetAttributes, now: &Stat) -> Vec<Stat> {
    let mut steps = Vec::new();
    if changes.uid.is_some() || changes.gid.is_some() {
        steps.push(Stat {
            owner: Some((
                changes.uid.unwrap_or(u32::MAX),
                changes.gid.unwrap_or(u32::MAX),
            )),
            ..Stat::default()
        });
    }
    let (accessed, modified) = now.times.unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let present = since.map_or(0, |since| {
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    });
    let time = |set: Option<SetTime>, now: u32| match set {
        None => now,
        Some(SetTime::At(time)) => seconds(time),
        // The protocol cannot set the server's current time; this host's is the
        // closest value available.
        Some(SetTime::Now) => present,
    };
    let has_times = changes.atime.is_some() || changes.mtime.is_some();
    let rest = Stat {
        size_bytes: changes.size_bytes,
        owner: None,
        permissions: changes.mode.map(|mode| mode & 0o7777),
        times: has_times.then(|| (time(changes.atime, accessed), time(changes.mtime, modified))),
    };
    if rest != Stat::default() {
        steps.push(rest);
    }
    steps
}
