//! The command lines of the servers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use toll_sshd::Sshd;

use super::Served;
use super::kind::{Cache, KernelCache, Names, Server, SshfsVersion, passthrough_hp};

/// How long names and attributes are taken for right, where nobody else changes
/// the files: passthrough_hp's own choice.
const LONG_SECONDS: &str = "86400";

/// The same in sshfs by default (`dcache_timeout`).
const SSHFS_SECONDS: &str = "20";

/// A program and its arguments.
pub(super) struct Line {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// The SSH server, and the port on 127.0.0.1 by which it is reached.
#[derive(Clone, Copy)]
pub(super) struct Host<'a> {
    pub sshd: &'a Sshd,
    pub port: u16,
}

impl Host<'_> {
    /// The `-o` options of ssh.
    fn ssh_settings(self) -> Vec<String> {
        let mut settings = self.sshd.ssh_settings();
        // Its key is known for its own port; a relay has another.
        let own = self.sshd.port();
        settings.push(format!("HostKeyAlias=[127.0.0.1]:{own}"));
        settings
    }
}

/// How `served` shows `below` at `point`; `own` is for what it keeps.
pub(super) fn line(
    served: Served,
    host: Option<Host<'_>>,
    below: &Path,
    point: &Path,
    own: &Path,
) -> Result<Line, String> {
    let host = || host.ok_or("there is no SSH server");
    match served.server {
        Server::Local(kernel) => toll(served.cache, kernel, own, &[], below.as_ref(), point),
        Server::Sftp(names) => {
            let mut ssh = ssh_options(host()?);
            if names == Names::AsSshfs {
                ssh.extend(["--attribute-seconds", SSHFS_SECONDS].map(OsString::from));
            }
            let source = host()?.sshd.location(below);
            toll(
                served.cache,
                KernelCache::Default,
                own,
                &ssh,
                source.as_ref(),
                point,
            )
        }
        Server::Sshfs(version) => sshfs(version, served.cache, host()?, below, point),
        Server::PassthroughHp { splices } => hp(served.cache, splices, below, point),
    }
}

fn toll(
    cache: Cache,
    kernel: KernelCache,
    own: &Path,
    ssh: &[OsString],
    source: &OsStr,
    point: &Path,
) -> Result<Line, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find this program's own file: {error}"))?;
    let mode = match cache {
        Cache::Whole => "whole",
        Cache::Blocks => "blocks",
        Cache::None => "none",
    };
    let mut arguments: Vec<OsString> = ["mount", "--foreground", "--cache", mode, "--copies"]
        .map(OsString::from)
        .into();
    arguments.push(own.into());
    let of_kernel: &[&str] = match kernel {
        KernelCache::Default => &[],
        KernelCache::WriteBack => &["--kernel-cache", "writeback"],
        KernelCache::PassThrough => &["--kernel-cache", "passthrough"],
    };
    arguments.extend(of_kernel.iter().map(OsString::from));
    if kernel != KernelCache::Default {
        arguments.extend(["--attribute-seconds", LONG_SECONDS].map(OsString::from));
        // passthrough_hp, with which these are compared, knows none as libfuse
        // builds it.
        arguments.push("--no-xattr".into());
    }
    arguments.extend_from_slice(ssh);
    arguments.extend([OsString::from("--"), source.into(), point.into()]);
    Ok(Line { program, arguments })
}

/// What `toll mount` is told of the server.
fn ssh_options(host: Host<'_>) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec![
        "--port".into(),
        host.port.to_string().into(),
        "--identity".into(),
        host.sshd.identity().into(),
        "--ssh-config".into(),
        "/dev/null".into(),
    ];
    for setting in host.ssh_settings() {
        options.extend(["--ssh-option".into(), setting.into()]);
    }
    options
}

fn sshfs(
    version: SshfsVersion,
    cache: Cache,
    host: Host<'_>,
    below: &Path,
    point: &Path,
) -> Result<Line, String> {
    let program = version.program().ok_or("sshfs is missing")?;
    let mut arguments: Vec<OsString> = vec![
        host.sshd.location(below).into(),
        point.into(),
        "-f".into(),
        "-p".into(),
        host.port.to_string().into(),
        "-F".into(),
        "/dev/null".into(),
    ];
    let mut options = host.ssh_settings();
    options.push(format!("IdentityFile={}", host.sshd.identity().display()));
    match cache {
        // Pages outlive the close of their file while its length and time of
        // change stay.
        Cache::Whole => options.push("auto_cache".into()),
        Cache::Blocks => {}
        Cache::None => options.extend(["direct_io".into(), "dir_cache=no".into()]),
    }
    for option in options {
        arguments.extend(["-o".into(), option.into()]);
    }
    Ok(Line { program, arguments })
}

fn hp(cache: Cache, splices: bool, below: &Path, point: &Path) -> Result<Line, String> {
    let program = passthrough_hp().ok_or("passthrough_hp is missing")?;
    let mut arguments: Vec<OsString> = vec!["--foreground".into()];
    if cache == Cache::None {
        arguments.push("--nocache".into());
    }
    if !splices {
        arguments.push("--nosplice".into());
    }
    arguments.extend([below.into(), point.into()]);
    Ok(Line { program, arguments })
}
