//! The served file systems: the requirements and the command line of each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use toll_sshd::Sshd;
use toll_system::mount_table::fuse_obstacle;
use toll_system::{paths, process, products};

/// First kernel whose FUSE can pass reads and writes through to another file
/// (`FUSE_PASSTHROUGH`, merged for 6.9).
const PASSTHROUGH_KERNEL: (u32, u32) = (6, 9);

/// Timeout of cached names and attributes if nobody else changes the files, as in passthrough_hp.
const LONG_SECONDS: &str = "86400";

/// The default timeout of sshfs (`dcache_timeout`).
const SSHFS_SECONDS: &str = "20";

/// A served file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    server: Server,
    cache: Cache,
    /// Round-trip time to the SSH server, in addition to the loopback interface's. File systems
    /// without an SSH server do not use it.
    pub(super) round_trip: Duration,
}

/// The program that serves a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// `toll mount` over a local directory.
    Toll,
    TollWriteBack,
    TollPassThrough,
    TollSftp,
    /// `toll mount` over SFTP. Names and attributes are cached as long as sshfs does by default.
    TollSftp20s,
    Sshfs,
    /// The version of sshfs that `tools/unpack-newest-sshfs` unpacked.
    SshfsNewest,
    /// The example `passthrough_hp` of libfuse.
    PassthroughHp,
    PassthroughHpNoSplice,
}

/// Levels of `fs`, each with what its server caches of files by default.
const LEVELS: [(&str, Server, Cache); 9] = [
    ("userfs", Server::Toll, Cache::Whole),
    ("userfs-writeback", Server::TollWriteBack, Cache::None),
    ("userfs-passthrough", Server::TollPassThrough, Cache::None),
    ("userfs-sftp", Server::TollSftp, Cache::Whole),
    ("userfs-sftp-20s", Server::TollSftp20s, Cache::Whole),
    ("sshfs", Server::Sshfs, Cache::Blocks),
    ("sshfs-newest", Server::SshfsNewest, Cache::Blocks),
    ("passthrough-hp", Server::PassthroughHp, Cache::Blocks),
    (
        "passthrough-hp-nosplice",
        Server::PassthroughHpNoSplice,
        Cache::Blocks,
    ),
];

/// What a server of a file system caches of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Whole,
    Blocks,
    None,
}

const CACHES: [(&str, Cache); 3] = [
    ("whole", Cache::Whole),
    ("blocks", Cache::Blocks),
    ("none", Cache::None),
];

/// The SSH server, and the port on 127.0.0.1 at which it is reached.
#[derive(Clone, Copy)]
pub(super) struct Host<'a> {
    pub sshd: &'a Sshd,
    pub port: u16,
}

impl Host<'_> {
    /// The `-o` options of ssh.
    fn ssh_settings(self) -> Vec<String> {
        let mut settings = self.sshd.ssh_settings();
        // The server's host key is known for its own port; a relay has another port.
        let own = self.sshd.port();
        settings.push(format!("HostKeyAlias=[127.0.0.1]:{own}"));
        settings
    }
}

impl Served {
    /// Parses the name of a file system: a level of `fs`, then optionally a level of `mount_cache`
    /// and a round-trip time (`20ms`). A colon precedes each option.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split(':');
        let level = parts.next()?;
        let (_, server, default) = LEVELS.into_iter().find(|(name, ..)| *name == level)?;
        let (mut cache, mut round_trip) = (default, Duration::ZERO);
        for part in parts {
            match part.strip_suffix("ms") {
                Some(ms) => round_trip = Duration::from_millis(ms.parse().ok()?),
                None => cache = CACHES.into_iter().find(|(name, _)| *name == part)?.1,
            }
        }
        Some(Self {
            server,
            cache,
            round_trip,
        })
    }

    /// Whether the file system is reached through an SSH server.
    pub(super) fn is_over_ssh(self) -> bool {
        use Server::{Sshfs, SshfsNewest, TollSftp, TollSftp20s};
        matches!(self.server, TollSftp | TollSftp20s | Sshfs | SshfsNewest)
    }

    /// Returns the program that serves the file system, or what is missing.
    fn program(self) -> Result<PathBuf, String> {
        use Server as S;
        match self.server {
            S::Toll | S::TollWriteBack | S::TollPassThrough | S::TollSftp | S::TollSftp20s => {
                products::find("mount")
            }
            S::Sshfs => process::find("sshfs")
                .ok_or_else(|| "sshfs is missing; install the package sshfs".into()),
            S::SshfsNewest => peer("sshfs-newest").ok_or_else(|| {
                "sshfs-newest is missing; unpack it with tools/unpack-newest-sshfs".into()
            }),
            // Debian has no package of passthrough_hp.
            S::PassthroughHp | S::PassthroughHpNoSplice => peer("passthrough_hp")
                .or_else(|| process::find("passthrough_hp"))
                .ok_or_else(|| {
                    "passthrough_hp is missing; build it with tools/build-passthrough-hp".into()
                }),
        }
    }

    /// Returns why the file system is not available here; `None` if it is.
    pub fn obstacle(self) -> Option<String> {
        let is_root = rustix::process::geteuid().is_root();
        if let Some(obstacle) = fuse_obstacle() {
            return Some(obstacle);
        }
        if self.is_over_ssh()
            && let Some(missing) = toll_sshd::missing()
        {
            return Some(missing);
        }
        match (self.server, self.cache) {
            (Server::TollPassThrough, cache) => passthrough_obstacle(cache, is_root),
            (Server::PassthroughHp | Server::PassthroughHpNoSplice, Cache::Whole) => Some(
                "passthrough_hp cannot cache whole files; choose `mount_cache = \"blocks\"`".into(),
            ),
            _ => self.program().err(),
        }
    }

    /// Builds the command line of a server that mounts `below` at `point`. `own` is the directory
    /// for the server's local copies.
    pub(super) fn line(
        self,
        host: Option<Host<'_>>,
        below: &Path,
        point: &Path,
        own: &Path,
    ) -> Result<Vec<OsString>, String> {
        let host = || host.ok_or("there is no SSH server");
        let mut line: Vec<OsString> = vec![self.program()?.into()];
        match self.server {
            Server::Sshfs | Server::SshfsNewest => {
                line.extend([host()?.sshd.location(below).into(), point.into()]);
                line.extend(self.sshfs_options(host()?));
            }
            Server::PassthroughHp | Server::PassthroughHpNoSplice => {
                line.push("--foreground".into());
                if self.cache == Cache::None {
                    line.push("--nocache".into());
                }
                if self.server == Server::PassthroughHpNoSplice {
                    line.push("--nosplice".into());
                }
                line.extend([below.into(), point.into()]);
            }
            _ => {
                let (mode, _) = CACHES[self.cache as usize];
                line.extend(words(&["--foreground", "--cache", mode, "--copies"]));
                line.push(own.into());
                line.extend(words(self.own_options()));
                let source = if self.is_over_ssh() {
                    line.extend(ssh_options(host()?));
                    host()?.sshd.location(below).into()
                } else {
                    below.into()
                };
                line.extend(["--".into(), source, point.into()]);
            }
        }
        Ok(line)
    }

    /// The cache options of `toll mount`. For a comparison with passthrough_hp, these options turn
    /// extended attributes off, since libfuse builds that program without them.
    fn own_options(self) -> &'static [&'static str] {
        match self.server {
            Server::TollWriteBack => &[
                "--kernel-cache",
                "writeback",
                "--attribute-seconds",
                LONG_SECONDS,
                "--no-xattr",
            ],
            Server::TollPassThrough => &[
                "--kernel-cache",
                "passthrough",
                "--attribute-seconds",
                LONG_SECONDS,
                "--no-xattr",
            ],
            Server::TollSftp20s => &["--attribute-seconds", SSHFS_SECONDS],
            _ => &[],
        }
    }

    fn sshfs_options(self, host: Host<'_>) -> Vec<OsString> {
        let port = host.port.to_string();
        let mut line = words(&["-f", "-p", &port, "-F", "/dev/null"]);
        let mut options = host.ssh_settings();
        options.push(format!("IdentityFile={}", host.sshd.identity().display()));
        match self.cache {
            // Pages stay cached after the close while the file's length and modification
            // time stay the same.
            Cache::Whole => options.push("auto_cache".into()),
            Cache::Blocks => {}
            Cache::None => options.extend(["direct_io".into(), "dir_cache=no".into()]),
        }
        for option in options {
            line.extend(["-o".into(), option.into()]);
        }
        line
    }
}

/// The options by which `toll mount` reaches the SSH server.
fn ssh_options(host: Host<'_>) -> Vec<OsString> {
    let port = host.port.to_string();
    let mut line = words(&["--port", &port, "--ssh-config", "/dev/null", "--identity"]);
    line.push(host.sshd.identity().into());
    for setting in host.ssh_settings() {
        line.extend(["--ssh-option".into(), setting.into()]);
    }
    line
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn passthrough_obstacle(cache: Cache, is_root: bool) -> Option<String> {
    if cache != Cache::None {
        return Some(
            "reads and writes pass through only if nothing is cached; choose \
             `mount_cache = \"none\"`"
                .into(),
        );
    }
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    if kernel_version(&release).is_some_and(|version| version < PASSTHROUGH_KERNEL) {
        return Some(format!("this kernel, {release}, is older than 6.9"));
    }
    (!is_root).then(|| "passing reads and writes through needs root".into())
}

fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Finds a program that one of this project's tools built for comparison.
fn peer(name: &str) -> Option<PathBuf> {
    let made = paths::peers().ok()?.path().ok()?.join(name);
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    is_program(&made).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_serves_what_is_kept_and_how_far_it_is() {
        for (name, server, cache, ms) in [
            ("userfs", Server::Toll, Cache::Whole, 0),
            ("userfs:none", Server::Toll, Cache::None, 0),
            (
                "userfs-sftp:blocks:20ms",
                Server::TollSftp,
                Cache::Blocks,
                20,
            ),
            ("sshfs", Server::Sshfs, Cache::Blocks, 0),
            (
                "sshfs-newest:100ms",
                Server::SshfsNewest,
                Cache::Blocks,
                100,
            ),
        ] {
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
