//! `master`: waits for a slave for each file, and sends it the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use toll_probe::clock::now_ns;
use toll_probe::device::{Access, Connection, Device, End, read_full};
use toll_probe::program::complain;
use toll_probe::workloads::copy::mover::CallError;

use crate::message::{Answer, Message, Offer, Receipt};
use crate::options::Options;
use crate::signals::{Alarm, tell_of_source};
use crate::transmission::tell;
use crate::trouble::{of_connection, of_device, of_file, of_stranger, of_transfer};

struct Source {
    path: PathBuf,
    file: File,
}

pub fn run(options: &Options) -> Result<(), String> {
    tell_of_source();
    // All files are opened before a slave comes, so that a wrong name costs nothing.
    let sources: Vec<Source> = options
        .files
        .iter()
        .map(|path| open(path))
        .collect::<Result<_, _>>()?;
    for (index, source) in sources.iter().enumerate() {
        let files_left = u32::try_from(sources.len() - index).unwrap_or(u32::MAX);
        send(options, source, files_left)?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<Source, String> {
    let opened = OpenOptions::new()
        .read(true)
        // Opening a pipe that has no writer would block.
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    match opened {
        Ok((file, metadata)) if metadata.is_file() => Ok(Source {
            path: path.to_owned(),
            file,
        }),
        Ok(_) => Err(format!(
            "cannot send {}: it is not a regular file; name one that is",
            path.display()
        )),
        Err(error) => Err(of_file("open", path, &error)),
    }
}

fn send(options: &Options, source: &Source, files_left: u32) -> Result<(), String> {
    let cannot = |error: &CallError| of_transfer("send", &source.path, "slave", error);
    let offer = offer(source, files_left, options.verifies)
        .map_err(|error| of_file("read", &source.path, &error))?;
    let device = Device::open(End::Master).map_err(|error| of_device(End::Master, &error))?;
    device
        .configure(&options.setup)
        .map_err(|errno| of_connection("set up /dev/master_device", errno))?;
    let address = listen(&device, options)?;
    if options.address.port() == 0 {
        let port = address.port();
        complain(
            End::Master.module_name(),
            &format!("waiting on port {port}"),
        );
    }
    device
        .accept(options.timeout)
        .map_err(|errno| of_connection("wait for a slave", errno))?;
    let mut sender =
        Connection::new(device, &options.setup, Access::Read).map_err(|error| cannot(&error))?;

    let alarm = Alarm::every(options.timeout);
    Message::Offer(offer)
        .say(sender.device())
        .map_err(|error| cannot(&error))?;
    hear_answer(&sender, source, files_left)?;
    let started_ns = now_ns();
    sender
        .send_all(source.file.as_fd(), offer.size_bytes)
        .map_err(|error| cannot(&error))?;
    let duration_ns = now_ns() - started_ns;
    let page = sender.page();
    hear_receipt(&sender, source)?;
    drop(alarm);
    tell(End::Master, options, duration_ns, offer.size_bytes, page)
}

fn offer(source: &Source, files_left: u32, verifies: bool) -> io::Result<Offer> {
    let (size_bytes, xxh3) = if verifies {
        let content = toll_probe::verify::hash_file(&source.file)?;
        (content.bytes, content.xxh3)
    } else {
        (source.file.metadata()?.len(), None)
    };
    Ok(Offer {
        size_bytes,
        xxh3,
        files_left,
    })
}

/// Listens on the given address. The unspecified address means both address families,
/// or IPv4 alone if the kernel has no other.
fn listen(device: &Device, options: &Options) -> Result<SocketAddr, String> {
    let (address, port) = (options.address, options.address.port());
    let listening = match device.listen(address) {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::OPNOTSUPP)
            if address.ip().is_unspecified() =>
        {
            device.listen((Ipv4Addr::UNSPECIFIED, port).into())
        }
        other => other,
    };
    listening.map_err(|errno| of_connection(&format!("wait on port {port}"), errno))
}

fn hear_answer(sender: &Connection, source: &Source, files_left: u32) -> Result<(), String> {
    let path = source.path.display();
    match Message::hear(|bytes| read_full(sender.device(), bytes)) {
        Ok(Some(Message::Answer(Answer::Ready))) => Ok(()),
        Ok(Some(Message::Answer(Answer::FilesDiffer { files_left: its }))) => Err(format!(
            "cannot send {path}: {files_left} left to send, but the slave has names for {its}; \
             give both programs the same number of files"
        )),
        Ok(Some(Message::Answer(Answer::NoFile))) => Err(format!(
            "cannot send {path}: the slave cannot take it; see the slave's message"
        )),
        Ok(_) => Err(of_stranger(&format!("send {path}"), "slave")),
        Err(error) => Err(of_transfer("send", &source.path, "slave", &error)),
    }
}

fn hear_receipt(sender: &Connection, source: &Source) -> Result<(), String> {
    let path = source.path.display();
    match Message::hear(|bytes| read_full(sender.device(), bytes)) {
        Ok(Some(Message::Receipt(Receipt::Kept))) => Ok(()),
        Ok(Some(Message::Receipt(Receipt::Differs))) => Err(format!(
            "cannot trust the copy of {path}: the slave's copy has different content; check \
             whether another program writes the file"
        )),
        Ok(Some(Message::Receipt(Receipt::Lost))) => Err(format!(
            "cannot send {path}: the slave could not complete its file; see the slave's message"
        )),
        Ok(_) => Err(of_stranger(&format!("send {path}"), "slave")),
        Err(error) => Err(of_transfer("send", &source.path, "slave", &error)),
    }
}
