//! The transfer workload: a file goes from one process into a file of another,
//! over a channel. Each end has its own method.
//!
//! Both ends are processes, like the published pair of programs: two threads would share page
//! tables and file descriptors. In an iteration the receiver makes its file and connects, then the
//! sender's clock starts. The clock stops when the receiver has all bytes in its file. The ends
//! exchange messages over a control channel, separate from the measured one.

mod channel;
mod control;
mod defects;
mod device;
mod disk;
mod link;
mod receive;
mod receiver;
mod sender;
mod zerocopy;

use std::cell::Cell;
use std::net::IpAddr;

use toll_wire::{
    Failure, Request, TRANSFER_BUFFER_BYTES_MAX, TransferPart, TransferRequest, TrialData,
};

use self::channel::CONTROL_PORT;
use self::control::Control;
use self::sender::Clock;
use crate::failure::{self, OrFail};
use crate::fork::Child;
use crate::scratch;
use crate::workloads::copy::mover::CALL_BYTES_MAX;

/// A call moves at most one buffer, and the largest buffer is within the limit of one call,
/// whatever the length of the file.
const _: () = assert!(TRANSFER_BUFFER_BYTES_MAX <= CALL_BYTES_MAX as u64);

pub fn run(request: &Request, transfer: &TransferRequest) -> Result<TrialData, Failure> {
    if let Some(why) = transfer.contradiction() {
        return Err(failure::unsupported(why));
    }
    match transfer.part {
        TransferPart::Both => run_both(request, transfer),
        TransferPart::Sender { listen } => run_sender(request, transfer, listen),
        TransferPart::Receiver { connect } => run_receiver(transfer, connect),
    }
}

fn run_both(request: &Request, transfer: &TransferRequest) -> Result<TrialData, Failure> {
    scratch::remove_left_overs(&transfer.directory);
    let (near_control, far_control) = Control::pair()?;
    let (writer, reader) = link::pair(transfer.channel)?;
    // The receiver drops the sender's ends. Otherwise it would never see that
    // the sender has gone.
    let near = Cell::new(Some((near_control, writer)));
    let receive = || {
        drop(near.take());
        // The sender has already received the error.
        let _ = receiver::serve(transfer, far_control, reader);
    };
    // Forked before there are buffers: memory shared with a child is copied at
    // its first use.
    let receiver =
        Child::start(receive).failed_by("start the receiver's process", "free resources")?;
    let (control, writer) = near.take().expect("only the receiver's process took them");
    let outcome = sender::run(request, transfer, control, Clock::Shared, writer);
    drop(receiver);
    // A receiver that was killed has left its file behind.
    scratch::remove_left_overs(&transfer.directory);
    outcome
}

fn run_sender(
    request: &Request,
    transfer: &TransferRequest,
    listen: IpAddr,
) -> Result<TrialData, Failure> {
    let control = Control::wait_for_receiver((listen, CONTROL_PORT).into())?;
    sender::run(request, transfer, control, Clock::Foreign, None)
}

/// Returns no samples: the sender has them.
fn run_receiver(transfer: &TransferRequest, connect: IpAddr) -> Result<TrialData, Failure> {
    scratch::remove_left_overs(&transfer.directory);
    let control = Control::reach_sender((connect, CONTROL_PORT).into())?;
    receiver::serve(transfer, control, None)?;
    Ok(TrialData::default())
}
