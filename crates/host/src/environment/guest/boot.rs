//! What a guest is booted from.

use std::os::unix::net::UnixStream;
use std::path::Path;

use super::disk::GuestDisk;
use super::spec::GuestSpec;

/// All that a boot needs.
pub(super) struct Boot<'a> {
    pub spec: &'a GuestSpec,
    pub disk: &'a GuestDisk,
    /// A file for the kernel's log.
    pub log: Option<&'a Path>,
    pub card: Card<'a>,
    pub interrupted: &'a dyn Fn() -> bool,
}

/// The network card of a guest.
#[derive(Debug, Clone, Copy)]
pub(super) enum Card<'a> {
    /// It has none.
    None,
    /// That of the main guest of a pair. Each start gets a new cable: a
    /// killed QEMU may leave half a packet in the old one.
    Main,
    /// That of its partner, at the other end of the cable.
    Partner(&'a UnixStream),
}
