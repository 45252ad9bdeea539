//! Serves a mount until somebody ends it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::anyhow;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use toll_document::plural;
use toll_mount::fuse::{Mount, Stopper};
use toll_mount::local::Local;
use toll_mount::sftp::{self, Sftp};
use toll_mount::source::Source;
use toll_system::mount_table::fuse_obstacle;
use toll_system::output;

use super::options::{Place, Settings};
use crate::background::{Departure, READY};

/// The event that ends a mount.
enum End {
    /// The kernel reports that the mount point is unmounted.
    Unmounted(std::io::Result<usize>),
    Signal,
}

fn note(message: &str) {
    output::note(&format!("toll mount: {message}"));
}

fn runtime(what: &str, why: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot {what}: {why}")
}

pub(super) fn serve(settings: &Settings, is_in_background: bool) -> anyhow::Result<ExitCode> {
    // Signals are caught before there is anything to clean up, so that none comes too
    // early.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| runtime("wait for signals", &error))?;
    let source = open(&settings.place)?;
    let (name, at) = (source.name(), settings.mountpoint.display());
    let begun = Mount::begin(
        source,
        &settings.mountpoint,
        &settings.options,
        Box::new(note),
    );
    let (mount, stopper) =
        begun.map_err(|error| runtime(&format!("mount {name} on {at}"), &explained(&error)))?;
    if is_in_background && let Err(failure) = leave(&settings.options.directory) {
        // Without this stop, the mount would stay after the failure, and nobody would
        // know of it.
        let _ = stopper.stop();
        return Err(failure);
    }
    wait(mount, stopper, signals)
}

/// Continues in the background.
fn leave(directory: &Path) -> anyhow::Result<()> {
    let cannot = |error: std::io::Error| runtime("go to the background", &error);
    let departure = Departure::prepare(&directory.join("messages")).map_err(cannot)?;
    output::line(READY)?;
    departure.leave().map_err(cannot)
}

/// Opens a local directory, or connects to another host.
fn open(place: &Place) -> anyhow::Result<Arc<dyn Source>> {
    match place {
        Place::Local(path) => match Local::new(path) {
            Ok(local) => Ok(Arc::new(local)),
            Err(error) => Err(runtime(&format!("open {}", path.display()), &error)),
        },
        Place::Remote(remote) => {
            let (address, options) = &**remote;
            let options = sftp::Options {
                notice: Arc::new(note),
                ..options.clone()
            };
            let connected = Sftp::connect(address, &options).map_err(anyhow::Error::msg)?;
            Ok(Arc::new(connected))
        }
    }
}

/// Returns an error's text, followed by the remedy if one is known.
fn explained(error: &std::io::Error) -> String {
    let why = error.to_string();
    let why = why.trim_end();
    match remedy(error, why) {
        Some(remedy) => format!("{why}; {remedy}"),
        None => why.to_owned(),
    }
}

fn remedy(error: &std::io::Error, why: &str) -> Option<String> {
    if error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) {
        return Some("this kernel cannot let reads and writes pass through".into());
    }
    // These are messages of `fusermount3`, which mounts for users other than root.
    if why.contains("user_allow_other") {
        return Some("leave out --allow-other, or have root add that line".into());
    }
    if why.contains("no write access to mountpoint") {
        return Some("choose a directory of your own".into());
    }
    fuse_obstacle()
}

fn wait(mount: Mount, stopper: Stopper, signals: Signals) -> anyhow::Result<ExitCode> {
    let (sender, ends) = channel();
    let begun = hear(signals, sender.clone()).and_then(|()| {
        let unmounted = move || sender.send(End::Unmounted(mount.wait()));
        thread::Builder::new().spawn(unmounted).map(drop)
    });
    if let Err(error) = begun {
        // Nobody else would end the mount.
        let _ = stopper.stop();
        return Err(runtime("start a thread", &error));
    }
    let files_kept = match ends.recv() {
        Ok(End::Unmounted(files_kept)) => {
            files_kept.map_err(|error| runtime("serve the mount", &error))?
        }
        Ok(End::Signal) => stopper
            .stop()
            .map_err(|error| runtime("unmount, although all changes are written back", &error))?,
        Err(_) => unreachable!("the signal thread holds the other end"),
    };
    match files_kept {
        0 => Ok(ExitCode::SUCCESS),
        kept => Err(anyhow!(
            "cannot write back {}: earlier messages say where the content is kept",
            plural(kept, "file")
        )),
    }
}

fn hear(mut signals: Signals, sender: Sender<End>) -> std::io::Result<()> {
    let hear = move || {
        for _ in signals.forever() {
            // After a second signal, the end is already under way.
            if sender.send(End::Signal).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().spawn(hear).map(drop)
}
