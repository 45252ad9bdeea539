//! Which served file systems there are, and what each needs.

use std::path::{Path, PathBuf};

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
}

/// Who serves a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// `toll mount` over a local directory.
    Local(KernelCache),
    /// `toll mount` over SFTP.
    Sftp,
    Sshfs,
    /// The example `passthrough_hp` of libfuse.
    PassthroughHp {
        splices: bool,
    },
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
    /// Reads the name of a file system: a level of `fs`, and behind a colon one
    /// of `mount_cache` if the experiment has it.
    pub fn parse(name: &str) -> Option<Self> {
        let (level, cache) = match name.split_once(':') {
            Some((level, cache)) => (level, Some(cache)),
            None => (name, None),
        };
        let (server, default) = match level {
            "userfs" => (Server::Local(KernelCache::Default), Cache::Whole),
            "userfs-writeback" => (Server::Local(KernelCache::WriteBack), Cache::None),
            "userfs-passthrough" => (Server::Local(KernelCache::PassThrough), Cache::None),
            "userfs-sftp" => (Server::Sftp, Cache::Whole),
            "sshfs" => (Server::Sshfs, Cache::Blocks),
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
        Some(Self { server, cache })
    }

    /// Whether it is reached through an SSH server.
    pub(super) fn is_over_ssh(self) -> bool {
        matches!(self.server, Server::Sftp | Server::Sshfs)
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
            Server::Local(_) | Server::Sftp => None,
            Server::Sshfs => process::find("sshfs")
                .is_none()
                .then(|| "sshfs is missing; install the package sshfs".into()),
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
    let built = paths::peers().join("passthrough_hp");
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    is_program(&built)
        .then_some(built)
        .or_else(|| process::find("passthrough_hp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_serves_and_what_is_kept() {
        let cases = [
            ("userfs", Server::Local(KernelCache::Default), Cache::Whole),
            (
                "userfs:none",
                Server::Local(KernelCache::Default),
                Cache::None,
            ),
            ("userfs-sftp:blocks", Server::Sftp, Cache::Blocks),
            ("sshfs", Server::Sshfs, Cache::Blocks),
        ];
        for (name, server, cache) in cases {
            assert_eq!(
                Served::parse(name),
                Some(Served { server, cache }),
                "{name}"
            );
        }
        for name in ["work", "ext4", "userfs:some", "userfs:", "fuse"] {
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
