//! Which served file systems there are, and what each needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;

use crate::environment::{paths, process};

/// First kernel whose FUSE lets reads and writes pass to another file
/// (`FUSE_PASSTHROUGH`, merged for 6.9).
const PASSTHROUGH_KERNEL: (u32, u32) = (6, 9);

/// A served file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Who serves it.
    pub(super) server: Server,
    /// What it keeps of files.
    pub(super) cache: Cache,
    /// Round-trip time to the SSH server that is added to the loopback
    /// interface's. Means nothing for those that need no such server.
    pub(super) round_trip: Duration,
}

/// Who serves a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// `toll mount` over a local directory.
    Local(KernelCache),
    /// `toll mount` over SFTP.
    Sftp(Names),
    Sshfs(SshfsVersion),
    /// The example `passthrough_hp` of libfuse.
    PassthroughHp {
        splices: bool,
    },
}

/// How long `toll mount` takes names and attributes for right over SFTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Default,
    /// As long as sshfs does by default.
    AsSshfs,
}

/// Which sshfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SshfsVersion {
    Installed,
    /// The one that `tools/unpack-newest-sshfs` unpacked.
    Newest,
}

impl SshfsVersion {
    /// Its program, if it is there.
    pub(super) fn program(self) -> Option<PathBuf> {
        match self {
            Self::Installed => process::find("sshfs"),
            Self::Newest => peer("sshfs-newest"),
        }
    }
}

/// What the kernel keeps for `toll mount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelCache {
    Default,
    WriteBack,
    PassThrough,
}

/// What a server keeps of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    Whole,
    Blocks,
    None,
}

impl Served {
    /// Reads the name of a file system: a level of `fs`, and behind a colon each
    /// one of `mount_cache` and a round-trip time (`20ms`), if there are any.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split(':');
        let level = parts.next()?;
        let (mut cache, mut round_trip) = (None, Duration::ZERO);
        for part in parts {
            match part.strip_suffix("ms") {
                Some(ms) => round_trip = Duration::from_millis(ms.parse().ok()?),
                None => cache = Some(part),
            }
        }
        let (server, default) = match level {
            "userfs" => (Server::Local(KernelCache::Default), Cache::Whole),
            "userfs-writeback" => (Server::Local(KernelCache::WriteBack), Cache::None),
            "userfs-passthrough" => (Server::Local(KernelCache::PassThrough), Cache::None),
            "userfs-sftp" => (Server::Sftp(Names::Default), Cache::Whole),
            "userfs-sftp-20s" => (Server::Sftp(Names::AsSshfs), Cache::Whole),
            "sshfs" => (Server::Sshfs(SshfsVersion::Installed), Cache::Blocks),
            "sshfs-newest" => (Server::Sshfs(SshfsVersion::Newest), Cache::Blocks),
            "passthrough-hp" => (Server::PassthroughHp { splices: true }, Cache::Blocks),
            "passthrough-hp-nosplice" => (Server::PassthroughHp { splices: false }, Cache::Blocks),
            _ => return None,
        };
        let cache = match cache {
            None => default,
            Some("whole") => Cache::Whole,
            Some("blocks") => Cache::Blocks,
            Some("none") => Cache::None,
            Some(_) => return None,
        };
        Some(Self {
            server,
            cache,
            round_trip,
        })
    }

    /// Whether it is reached through an SSH server.
    pub(super) fn is_over_ssh(self) -> bool {
        matches!(self.server, Server::Sftp(_) | Server::Sshfs(_))
    }

    /// Why it cannot be had here, if it cannot.
    pub fn obstacle(self) -> Option<String> {
        let is_root = rustix::process::geteuid().is_root();
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        if let Err(errno) = open("/dev/fuse", flags, Mode::empty()) {
            let remedy = match errno {
                Errno::ACCESS => "give it the mode 0666, as udev does",
                _ => "load the kernel's module fuse",
            };
            return Some(format!("cannot open /dev/fuse: {errno}; {remedy}"));
        }
        if !is_root && process::find("fusermount3").is_none() {
            return Some("fusermount3 is missing; install the package fuse3".into());
        }
        if self.is_over_ssh()
            && let Some(missing) = toll_sshd::missing()
        {
            return Some(missing);
        }
        match self.server {
            Server::Local(KernelCache::PassThrough) => self.passthrough_obstacle(is_root),
            Server::Local(_) | Server::Sftp(_) => None,
            Server::Sshfs(version) => version.program().is_none().then(|| match version {
                SshfsVersion::Installed => "sshfs is missing; install the package sshfs".into(),
                SshfsVersion::Newest => {
                    "sshfs-newest is missing; unpack it with tools/unpack-newest-sshfs".into()
                }
            }),
            Server::PassthroughHp { .. } if self.cache == Cache::Whole => {
                Some("passthrough_hp keeps no whole files; choose mount_cache = blocks".into())
            }
            Server::PassthroughHp { .. } => passthrough_hp().is_none().then(|| {
                "passthrough_hp is missing; build it with tools/build-passthrough-hp".into()
            }),
        }
    }

    fn passthrough_obstacle(self, is_root: bool) -> Option<String> {
        if self.cache != Cache::None {
            return Some(
                "reads and writes pass through only where nothing is cached; choose \
                 mount_cache = none"
                    .into(),
            );
        }
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        if kernel_version(&release).is_some_and(|version| version < PASSTHROUGH_KERNEL) {
            return Some(format!("this kernel, {release}, is older than 6.9"));
        }
        (!is_root).then(|| "letting reads and writes pass through needs root".into())
    }
}

fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Where libfuse's example is, if it was built. Debian has no package of it.
pub(super) fn passthrough_hp() -> Option<PathBuf> {
    peer("passthrough_hp").or_else(|| process::find("passthrough_hp"))
}

/// A program that one of this project's tools made for comparison.
fn peer(name: &str) -> Option<PathBuf> {
    let made = paths::peers().join(name);
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    is_program(&made).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_serves_what_is_kept_and_how_far_it_is() {
        let cases = [
            (
                "userfs",
                Server::Local(KernelCache::Default),
                Cache::Whole,
                0,
            ),
            (
                "userfs:none",
                Server::Local(KernelCache::Default),
                Cache::None,
                0,
            ),
            (
                "userfs-sftp:blocks:20ms",
                Server::Sftp(Names::Default),
                Cache::Blocks,
                20,
            ),
            (
                "sshfs",
                Server::Sshfs(SshfsVersion::Installed),
                Cache::Blocks,
                0,
            ),
            (
                "sshfs-newest:100ms",
                Server::Sshfs(SshfsVersion::Newest),
                Cache::Blocks,
                100,
            ),
        ];
        for (name, server, cache, ms) in cases {
            let expected = Served {
                server,
                cache,
                round_trip: Duration::from_millis(ms),
            };
            assert_eq!(Served::parse(name), Some(expected), "{name}");
        }
        for name in [
            "work",
            "ext4",
            "userfs:some",
            "userfs:",
            "fuse",
            "sshfs:xms",
        ] {
            assert_eq!(Served::parse(name), None, "{name}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_an_obstacle_anywhere() {
        for name in ["userfs-passthrough:blocks", "passthrough-hp:whole"] {
            let reason = Served::parse(name).unwrap().obstacle();
            assert!(reason.is_some(), "{name}");
        }
    }

    #[test]
    fn a_release_tells_the_version() {
        assert_eq!(kernel_version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(kernel_version("7.0-rc1"), Some((7, 0)));
        assert_eq!(kernel_version("next"), None);
    }
}
