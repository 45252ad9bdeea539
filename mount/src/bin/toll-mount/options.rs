//! The command line of `toll mount`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use toll_mount::cache::Mode;
use toll_mount::fuse::{KernelCache, Options};
use toll_mount::sftp::Address;
use toll_system::mount_table::served_at;
use toll_system::{Failure, paths};

/// Mount a local directory, or a directory of another host, with FUSE
///
/// Goes to the background once it is mounted, as sshfs does. SIGTERM, SIGINT,
/// SIGHUP or `fusermount3 -u MOUNTPOINT` end it, after everything is written back.
/// Nothing is left except content that could not be written back; a message says
/// where it is.
#[derive(Debug, Parser)]
#[command(
    name = "toll-mount",
    bin_name = "toll mount",
    version,
    max_term_width = 100
)]
pub struct MountArguments {
    /// Local directory, or HOST:DIR or USER@HOST:DIR over SSH
    #[arg(value_name = "SOURCE", required_unless_present = "kept")]
    source: Option<String>,
    /// An existing directory outside SOURCE
    #[arg(value_name = "MOUNTPOINT", required_unless_present = "kept")]
    mountpoint: Option<PathBuf>,
    /// List content that could not be written back, for all sources, and mount
    /// nothing
    #[arg(long, conflicts_with_all = ["source", "mountpoint"])]
    kept: bool,
    /// How much of an open file the mount keeps locally
    #[arg(long, value_enum, value_name = "MODE", default_value = "whole")]
    cache: Mode,
    /// What the kernel caches of files [default: pages; with --cache none: direct]
    #[arg(long, value_enum, value_name = "WHAT")]
    kernel_cache: Option<KernelCache>,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Let other users use the mount, as far as permissions allow
    #[arg(long)]
    allow_other: bool,
    /// Hide extended attributes, so that the kernel need not ask for one before it
    /// first writes to a file
    #[arg(long)]
    no_xattr: bool,
    /// For another host: how to show files of the user that the mount logs in as
    #[arg(long, value_enum, value_name = "WHO", default_value = "user")]
    idmap: IdMap,
    /// How to show symbolic links that lead out of the mount [default: contain; for
    /// a local source: raw]
    #[arg(long, value_enum, value_name = "HOW")]
    symlinks: Option<Symlinks>,
    /// Seconds for which names and attributes may be used without asking the source
    /// again; opening a file always asks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    attribute_seconds: f64,
    /// Directory for local copies, which can become as large as the open files
    /// [default: $XDG_STATE_HOME/toll/mount]
    #[arg(long, value_name = "DIR")]
    copies: Option<PathBuf>,
    /// Stay in the foreground
    #[arg(short, long)]
    foreground: bool,
    /// Port of the SSH server
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Private key for ssh
    #[arg(short, long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Configuration file for ssh
    #[arg(short = 'F', long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// Option for ssh, as in its configuration file; may be repeated
    #[arg(short = 'o', long = "ssh-option", value_name = "NAME=VALUE")]
    ssh_options: Vec<String>,
    #[arg(long, hide = true)]
    in_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Symlinks {
    /// Refuse to read or follow links out of the mount, so that a server cannot lead
    /// programs to files of this machine
    Contain,
    /// Show links as they are at the source
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum IdMap {
    /// Show files of the login user as files of the user who mounts
    User,
    /// Show all users by their numbers at the server
    None,
}

/// A local directory, or a directory on another host.
pub(super) enum Place {
    Local(PathBuf),
    Remote(Box<(Address, toll_mount::sftp::Options)>),
}

/// What to mount, where to mount it, and how.
pub(super) struct Settings {
    pub place: Place,
    pub mountpoint: PathBuf,
    pub options: Options,
}

impl MountArguments {
    pub(super) fn is_foreground(&self) -> bool {
        self.foreground || self.in_background
    }

    pub(super) fn is_in_background(&self) -> bool {
        self.in_background
    }

    pub(super) fn lists_kept(&self) -> bool {
        self.kept
    }

    pub(super) fn copies(&self) -> anyhow::Result<PathBuf> {
        match &self.copies {
            Some(directory) => whole(directory),
            None => paths::mounts()
                .and_then(|place| place.path())
                .map_err(anyhow::Error::msg),
        }
    }

    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        let mountpoint = directory(self.mountpoint.as_deref().unwrap_or(Path::new("")))?;
        if let Some(source) = served_at(&mountpoint) {
            let point = mountpoint.display();
            bail!(Failure::Usage(format!(
                "cannot mount on {point}: {source} is mounted there already; unmount it first with \
                 `fusermount3 -u {point}`, or choose another directory"
            )));
        }
        let place = self.place()?;
        if let Place::Local(source) = &place
            && mountpoint.starts_with(source)
            && mountpoint != *source
        {
            // A mount inside its own source would wait for itself.
            bail!(Failure::Usage(format!(
                "cannot mount {} on {}: the mount point is inside the source; choose a mount point \
                 outside it",
                source.display(),
                mountpoint.display()
            )));
        }
        let options = self.options(&place)?;
        if is_below(&options.directory, &mountpoint) {
            bail!(Failure::Usage(format!(
                "cannot keep copies in {}: the directory is inside the mount point {}, so the \
                 mount would wait for itself; choose another directory with --copies",
                options.directory.display(),
                mountpoint.display()
            )));
        }
        Ok(Settings {
            place,
            mountpoint,
            options,
        })
    }

    fn place(&self) -> anyhow::Result<Place> {
        let source = self.source.as_deref().unwrap_or_default();
        if !Address::is_remote(source) {
            return Ok(Place::Local(directory(Path::new(source))?));
        }
        let address = Address::parse(source)
            .map_err(|why| Failure::Usage(format!("cannot parse the source {source}: {why}")))?;
        let options = toll_mount::sftp::Options {
            port: self.port,
            identity: self.identity.as_deref().map(whole).transpose()?,
            config: self.ssh_config.as_deref().map(whole).transpose()?,
            settings: self.ssh_options.clone(),
            is_interactive: true,
            ..toll_mount::sftp::Options::default()
        };
        Ok(Place::Remote(Box::new((address, options))))
    }

    fn options(&self, place: &Place) -> anyhow::Result<Options> {
        let mode = self.cache;
        let kernel = self.kernel_cache.unwrap_or(match mode {
            Mode::None => KernelCache::Direct,
            _ => KernelCache::Pages,
        });
        let contradiction = match kernel {
            _ if mode == Mode::None => None,
            KernelCache::PassThrough => Some("let reads and writes pass through"),
            // Nothing proves the promises of fsync if both the kernel and the mount
            // write back late.
            KernelCache::WriteBack => Some("have the kernel write back"),
            KernelCache::Pages | KernelCache::Direct => None,
        };
        if let Some(what) = contradiction {
            bail!(Failure::Usage(format!(
                "cannot {what} while the mount keeps copies; add --cache none"
            )));
        }
        let lifetime = Duration::try_from_secs_f64(self.attribute_seconds).map_err(|why| {
            Failure::Usage(format!(
                "cannot keep attributes for {} seconds: {why}; give 0 or more",
                self.attribute_seconds
            ))
        })?;
        Ok(Options {
            mode,
            kernel,
            is_read_only: self.read_only,
            allows_others: self.allow_other,
            maps_user: self.idmap == IdMap::User,
            contains_links: match self.symlinks {
                Some(symlinks) => symlinks == Symlinks::Contain,
                None => matches!(place, Place::Remote(_)),
            },
            shows_extended: !self.no_xattr,
            attribute_lifetime: lifetime,
            directory: self.copies()?,
        })
    }
}

/// Makes a path absolute, so that it stays valid when the program changes its current
/// directory.
fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|error| Failure::Usage(format!("cannot use {}: {error}", path.display())).into())
}

/// Returns whether a path leads into a directory, even through links. The last
/// components of the path need not exist.
fn is_below(path: &Path, directory: &Path) -> bool {
    let there = path.ancestors().find_map(|above| above.canonicalize().ok());
    there.is_some_and(|there| there.starts_with(directory))
}

/// Returns the full path of an existing directory.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot use {}: {why}", path.display()))
    };
    let whole = path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => cannot(&"it does not exist; create the directory first"),
        // The directory is the mount point of a mount whose program has died.
        io::ErrorKind::NotConnected => cannot(&format!(
            "the program that served it is gone; remove its mount with `fusermount3 -u {}`",
            path.display()
        )),
        _ => cannot(&error),
    })?;
    if whole.is_dir() {
        Ok(whole)
    } else {
        Err(cannot(&"it is not a directory").into())
    }
}
