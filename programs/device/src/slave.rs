//! `slave`: connects to a master for each file, and receives the file.

use std::os::fd::AsFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use toll_probe::clock::now_ns;
use toll_probe::device::{Access, Connection, Device, End};
use toll_probe::workloads::copy::mover::CallError;

use crate::message::{Answer, Message, Offer, Receipt};
use crate::options::Options;
use crate::output::Output;
use crate::signals::{Alarm, tell_of_output};
use crate::transmission::tell;
use crate::trouble::{of_connection, of_device, of_file, of_stranger, of_transfer};

const PAUSE: Duration = Duration::from_millis(20);

/// Minimum time limit within which a master must listen again for its next file.
const NEXT_FILE: Duration = Duration::from_secs(10);

pub fn run(options: &Options) -> Result<(), String> {
    tell_of_output();
    let files = &options.files;
    for (index, path) in files.iter().enumerate() {
        let files_left = u32::try_from(files.len() - index).unwrap_or(u32::MAX);
        let met = meet(options, path, index == 0)?;
        receive(options, path, met, files_left)?;
    }
    Ok(())
}

enum Missing {
    NotYet(String),
    Never(String),
}

struct Met {
    receiver: Connection,
    offer: Offer,
    _alarm: Alarm,
}

fn meet(options: &Options, path: &Path, is_first: bool) -> Result<Met, String> {
    let patience = options.timeout.unwrap_or_default();
    // Between two files, a master briefly does not listen.
    let patience = if is_first {
        patience
    } else {
        patience.max(NEXT_FILE)
    };
    let deadline = Instant::now() + patience;
    loop {
        match try_to_meet(options, path, is_first) {
            Ok(met) => return Ok(met),
            Err(Missing::NotYet(_)) if Instant::now() < deadline => sleep(PAUSE),
            Err(Missing::NotYet(complaint) | Missing::Never(complaint)) => return Err(complaint),
        }
    }
}

fn try_to_meet(options: &Options, path: &Path, is_first: bool) -> Result<Met, Missing> {
    let address = options.address;
    let cannot = |error: &CallError| {
        let complaint = of_transfer("receive", path, "master", error);
        let is_away = !is_first && matches!(error.errno, None | Some(Errno::CONNRESET));
        if is_away {
            Missing::NotYet(complaint)
        } else {
            Missing::Never(complaint)
        }
    };
    let device =
        Device::open(End::Slave).map_err(|error| Missing::Never(of_device(End::Slave, &error)))?;
    device
        .configure(&options.setup)
        .map_err(|errno| Missing::Never(of_connection("set up /dev/slave_device", errno)))?;
    match device.connect(address, options.timeout) {
        Ok(()) => {}
        Err(errno @ Errno::CONNREFUSED) => {
            let complaint = of_connection(&format!("connect to {address}"), errno);
            return Err(Missing::NotYet(complaint));
        }
        Err(errno) => {
            let complaint = of_connection(&format!("connect to {address}"), errno);
            return Err(Missing::Never(complaint));
        }
    }
    let alarm = Alarm::every(options.timeout);
    let mut receiver =
        Connection::new(device, &options.setup, Access::Write).map_err(|error| cannot(&error))?;
    match Message::hear(|bytes| receiver.receive_first(bytes)).map_err(|error| cannot(&error))? {
        Some(Message::Offer(offer)) => Ok(Met {
            receiver,
            offer,
            _alarm: alarm,
        }),
        _ => Err(Missing::Never(of_stranger(
            &format!("receive from {address}"),
            "master",
        ))),
    }
}

fn receive(options: &Options, path: &Path, mut met: Met, files_left: u32) -> Result<(), String> {
    let cannot = |error: &CallError| of_transfer("receive", path, "master", error);
    let (receiver, offer) = (&mut met.receiver, met.offer);
    let output = accept(receiver, &offer, path, files_left, options.verifies)?;
    let started_ns = now_ns();
    let received = receiver.receive_all(output.file().as_fd(), offer.size_bytes, &mut || {});
    let duration_ns = now_ns() - started_ns;
    if let Err(error) = received {
        // The master may be gone already, so an error here does not matter.
        let _ = say_last(receiver, Message::Receipt(Receipt::Lost));
        return Err(cannot(&error));
    }
    let page = receiver.page();
    let released = receiver.release();
    released.map_err(|errno| cannot(&CallError::new("munmap", errno)))?;
    let kept = keep(output, &offer, path);
    let receipt = match &kept {
        Ok(()) => Receipt::Kept,
        Err((receipt, _)) => *receipt,
    };
    let said = say_last(receiver, Message::Receipt(receipt));
    kept.map_err(|(_, complaint)| complaint)?;
    said.map_err(|error| cannot(&error))?;
    tell(End::Slave, options, duration_ns, offer.size_bytes, page)
}

/// Sends a last message, and waits until the socket has taken it. Data that is still
/// queued when a device is closed is lost.
fn say_last(receiver: &Connection, message: Message) -> Result<(), CallError> {
    message.say(receiver.device())?;
    let finished = receiver.device().finish();
    finished.map_err(|errno| CallError::new("finish", errno))
}

fn accept(
    receiver: &Connection,
    offer: &Offer,
    path: &Path,
    files_left: u32,
    insists: bool,
) -> Result<Output, String> {
    let refuse = |answer: Answer, complaint: String| {
        // The message of this program is what the user needs, so an error here is
        // ignored.
        let _ = say_last(receiver, Message::Answer(answer));
        Err(complaint)
    };
    if offer.files_left != files_left {
        let complaint = format!(
            "cannot receive {}: {files_left} left to receive, but the master has {} to send; give \
             both programs the same number of files",
            path.display(),
            offer.files_left
        );
        return refuse(Answer::FilesDiffer { files_left }, complaint);
    }
    if insists && offer.xxh3.is_none() {
        let complaint = format!(
            "cannot verify {}: the master sends no hash; give --verify to the master, too",
            path.display()
        );
        return refuse(Answer::NoFile, complaint);
    }
    let output = match Output::create(path) {
        Ok(output) => output,
        Err(error) => return refuse(Answer::NoFile, of_file("create", path, &error)),
    };
    Message::Answer(Answer::Ready)
        .say(receiver.device())
        .map_err(|error| of_transfer("receive", path, "master", &error))?;
    Ok(output)
}

/// Checks the content if the offer has a hash, and gives the file its name.
fn keep(output: Output, offer: &Offer, path: &Path) -> Result<(), (Receipt, String)> {
    if let Some(expected) = offer.xxh3 {
        let content = toll_probe::verify::hash_file(output.file())
            .map_err(|error| (Receipt::Lost, of_file("read", path, &error)))?;
        if content.xxh3 != Some(expected) || content.bytes != offer.size_bytes {
            let complaint = format!(
                "cannot trust {}: its hash differs from the hash of the master's file; \
                 check whether another program writes either file",
                path.display()
            );
            return Err((Receipt::Differs, complaint));
        }
    }
    output
        .keep()
        .map_err(|error| (Receipt::Lost, of_file("create", path, &error)))
}
