//! The transfer workload: a file goes from one process into a file of another,
//! over a channel, each end by a method of its own.
//!
//! Both ends are processes, as the published pair of programs was: two threads
//! would share page tables and descriptors. In an iteration the receiver makes
//! its file and connects, then the sender's clock starts. It stops when the
//! receiver has all bytes in its file. What the ends have to tell each other
//! goes over a control channel beside the measured one.

mod control;
mod device;
mod disk;
mod end;
mod link;
mod mapped;
mod receive;
mod receiver;
mod send;
mod sender;
mod window;
mod zerocopy;

use std::cell::Cell;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use toll_wire::{
    Channel, Failure, Request, TRANSFER_BUFFER_BYTES_MAX, TRANSFER_BUFFER_BYTES_MIN, TransferPart,
    TransferRequest, TrialData,
};

use self::control::Control;
use self::end::{Incoming, Outgoing};
use self::link::Pair;
use self::receive::StreamReceiver;
use self::receiver::Receiver;
use self::send::StreamSender;
use self::sender::{Clock, Sender};
use crate::copy::mover::CALL_BYTES_MAX;
use crate::fork::Child;
use crate::{failure, scratch};

/// Port on which the sender's side of a channel waits, where the two ends are on
/// two hosts.
pub const CHANNEL_PORT: u16 = 2325;
pub const CONTROL_PORT: u16 = 2326;

/// A call moves a buffer at most, which no call cuts short, however long the file.
const _: () = assert!(TRANSFER_BUFFER_BYTES_MAX <= CALL_BYTES_MAX as u64);

pub fn run(request: &Request, transfer: &TransferRequest) -> Result<TrialData, Failure> {
    check(transfer)?;
    match transfer.part {
        TransferPart::Both => run_both(request, transfer),
        TransferPart::Sender { listen } => run_sender(request, transfer, listen),
        TransferPart::Receiver { connect } => run_receiver(transfer, connect),
    }
}

fn check(transfer: &TransferRequest) -> Result<(), Failure> {
    let range = TRANSFER_BUFFER_BYTES_MIN..=TRANSFER_BUFFER_BYTES_MAX;
    let both = [transfer.buffer_bytes, transfer.receiver_buffer_bytes];
    if let Some(wrong) = both.iter().find(|bytes| !range.contains(bytes)) {
        return Err(failure::instrument(format!(
            "cannot transfer through a buffer of {wrong} bytes: it has {TRANSFER_BUFFER_BYTES_MIN} to \
             {TRANSFER_BUFFER_BYTES_MAX}; choose another"
        )));
    }
    match transfer.contradiction() {
        Some(why) => Err(failure::unsupported(why.to_owned())),
        None => Ok(()),
    }
}

fn run_both(request: &Request, transfer: &TransferRequest) -> Result<TrialData, Failure> {
    scratch::remove_left_overs(&transfer.directory);
    let (near_control, far_control) = Control::pair()?;
    let Pair { writer, reader } = Pair::open(transfer.channel)?;
    // The receiver lets go of the sender's ends, else it would never see that
    // the sender has gone.
    let near = Cell::new(Some((near_control, writer)));
    let receive = || {
        drop(near.take());
        // What went wrong is with the sender already.
        let _ = Receiver::new(transfer, far_control).serve(|| receiving_end(transfer, reader));
    };
    // Before there are buffers: memory shared with a child is copied at its
    // first use.
    let receiver = Child::start(receive).map_err(|error| {
        failure::failed(format!(
            "cannot start the receiver's process: {}; free resources",
            failure::reason(&error)
        ))
    })?;
    let (control, writer) = near.take().expect("only the receiver's process took them");
    let mut sender = Sender::new(transfer, control, Clock::Shared);
    let outcome = sender.run(request, || sending_end(transfer, writer));
    drop(receiver);
    // A receiver that was ended has left its file.
    scratch::remove_left_overs(&transfer.directory);
    outcome
}

fn run_sender(
    request: &Request,
    transfer: &TransferRequest,
    listen: IpAddr,
) -> Result<TrialData, Failure> {
    let control = Control::wait_for_receiver((listen, CONTROL_PORT).into())?;
    let mut sender = Sender::new(transfer, control, Clock::Foreign);
    sender.run(request, || sending_end(transfer, None))
}

fn run_receiver(transfer: &TransferRequest, connect: IpAddr) -> Result<TrialData, Failure> {
    scratch::remove_left_overs(&transfer.directory);
    let control = Control::reach_sender((connect, CONTROL_PORT).into())?;
    Receiver::new(transfer, control).serve(|| receiving_end(transfer, None))?;
    Ok(TrialData::default())
}

/// The sender's end of a channel, with its method. `pair` is what was made
/// before the processes split, for channels that have no addresses.
fn sending_end(
    transfer: &TransferRequest,
    pair: Option<OwnedFd>,
) -> Result<Box<dyn Outgoing>, Failure> {
    match transfer.channel {
        Channel::Device => device::sending_end(transfer),
        Channel::Tcp | Channel::Unix | Channel::Pipe => {
            Ok(Box::new(StreamSender::new(transfer, pair)?))
        }
    }
}

fn receiving_end(
    transfer: &TransferRequest,
    pair: Option<OwnedFd>,
) -> Result<Box<dyn Incoming>, Failure> {
    match transfer.channel {
        Channel::Device => device::receiving_end(transfer),
        Channel::Tcp | Channel::Unix | Channel::Pipe => {
            Ok(Box::new(StreamReceiver::new(transfer, pair)?))
        }
    }
}
