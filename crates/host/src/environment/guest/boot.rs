//! What a guest is booted from.

use std::os::unix::net::UnixStream;
use std::path::Path;

use super::disk::GuestDisk;
use super::spec::GuestSpec;

/// Everything that a boot needs.
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
    /// The guest has no network card.
    None,
    /// The card of the main guest of a pair. Each start gets a new cable, since a killed QEMU may
    /// leave half a packet in the old cable.
    Main,
    /// The card of the partner, at the other end of the cable.
    Partner(&'a UnixStream),
}
