//! File systems that a program serves in user space: `toll mount` and its
//! peers, each over its own directory next to the mount point.

mod kind;
mod relay;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toll_sshd::{Settings, Sshd};
use toll_system::Cannot;
use toll_system::process;

use super::cleanup_journal::{Change, Journal};
use super::filesystem::Mounted;

pub(super) use kind::Served;

use kind::Host;
use relay::Relay;

/// What the served file systems of a run share.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// The SSH server on the loopback interface, once a file system has needed it.
    sshd: Option<Sshd>,
    /// Relays that delay the server's traffic, by round-trip time.
    relays: BTreeMap<Duration, Relay>,
}

impl Servers {
    /// Serves a file system over a new directory below `root`, under `name`.
    pub fn mount(
        &mut self,
        served: Served,
        name: &str,
        root: &Path,
        journal: &mut Journal,
    ) -> Result<Mounted, String> {
        if let Some(reason) = served.obstacle() {
            return Err(reason);
        }
        let name = name.replace(':', "-");
        let place = |what: &str| root.join(format!("{name}{what}"));
        let (below, point, own) = (place("-below"), place(""), place("-own"));
        for path in [&below, &point, &own] {
            // `toll mount` keeps copies only in a directory that other users cannot enter.
            let mut builder = DirBuilder::new();
            builder.mode(0o700).create(path).cannot("make", path)?;
        }
        let host = if served.is_over_ssh() {
            Some(self.host(served.round_trip, root)?)
        } else {
            None
        };
        let line = served.line(host, &below, &point, &own)?;
        journal.note(Change::MountPoint(point.clone()))?;
        let log = own.join("messages");
        let server = process::start(&line, Some(&log))?;
        Mounted::served(&point, below, server).map_err(|why| {
            let why = last_words(&log).unwrap_or(why);
            format!("{name} did not mount: {why}")
        })
    }

    /// Returns the SSH server at a round-trip time; starts server and relay on first use.
    fn host(&mut self, round_trip: Duration, root: &Path) -> Result<Host<'_>, String> {
        if self.sshd.is_none() {
            self.sshd = Some(start_sshd(root)?);
        }
        let sshd = self.sshd.as_ref().expect("it was started");
        if !round_trip.is_zero() && !self.relays.contains_key(&round_trip) {
            let relay = Relay::start(sshd.port(), round_trip)
                .map_err(|error| format!("cannot relay connections: {error}"))?;
            self.relays.insert(round_trip, relay);
        }
        let relay = self.relays.get(&round_trip);
        let port = relay.map_or(sshd.port(), Relay::port);
        Ok(Host { sshd, port })
    }
}

fn start_sshd(root: &Path) -> Result<Sshd, String> {
    let directory: PathBuf = root.join("sshd");
    fs::create_dir(&directory).cannot("make", &directory)?;
    Sshd::start_in(directory, &Settings::default())
}

fn last_words(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map(|line| line.trim().to_owned())
}
