//! The ends of the virtual device. Each inserts its module for the trial, and
//! opens its device anew for each iteration, as a connection belongs to an open
//! device.
//!
//! The report's two ways are the device's own. What works with any descriptor
//! (sendfile, splice, io_uring) works with the device's, too.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use rustix::io::Errno;
use toll_wire::{
    CacheState, Channel, Failure, ReceiveMethod, SendMethod, TransferPart, TransferRequest,
};

use super::CHANNEL_PORT;
use super::control::PARTNER_DEADLINE;
use super::end::{Arrival, Incoming, Metrics, Outgoing};
use super::link::kind_of;
use super::receive::{Spliced, Taker};
use super::send::stream_mover;
use crate::buffer::checked_length;
use crate::copy::mover::{CallError, Job, Moved, Mover};
use crate::copy::{Input, OpenSource};
use crate::device::receive::Receiver;
use crate::device::send::Sender;
use crate::device::{Device, End, Page, Setup, Way};
use crate::driver::Module;
use crate::failure;

/// Present, writable, of user mode, accessed, dirty (x86-64 page-table entries,
/// Intel SDM volume 3, 4.5): what of an entry is compared with the report's.
const PAGE_STATE: u64 = 0x67;

/// No ioctl that is timed pays for a line in the kernel log.
const SILENT: &CStr = c"log=0";

pub fn sending_end(transfer: &TransferRequest) -> Result<Box<dyn Outgoing>, Failure> {
    let way = match transfer.sender {
        SendMethod::ReadWrite => SendBy::Own(Way::ReadWrite),
        SendMethod::Mmap => SendBy::Own(Way::Mmap),
        _ => SendBy::Stream(stream_mover(transfer)?),
    };
    let source = OpenSource::of_file(&transfer.source, transfer.size_bytes, CacheState::Warm)?;
    Ok(Box::new(Master {
        link: Link::Closed,
        way,
        source,
        input: None,
        setup: setup_of(transfer, transfer.buffer_bytes),
        address: match transfer.part {
            TransferPart::Sender { listen } => (listen, CHANNEL_PORT).into(),
            _ => (Ipv4Addr::LOCALHOST, 0).into(),
        },
        size_bytes: transfer.size_bytes,
        _module: Module::insert(End::Master.module(), SILENT)?,
    }))
}

pub fn receiving_end(transfer: &TransferRequest) -> Result<Box<dyn Incoming>, Failure> {
    let way = match transfer.receiver {
        ReceiveMethod::ReadWrite => ReceiveBy::Own(Way::ReadWrite),
        ReceiveMethod::Mmap => ReceiveBy::Own(Way::Mmap),
        ReceiveMethod::Splice => {
            let buffer_bytes = checked_length(transfer.receiver_buffer_bytes)?;
            ReceiveBy::Stream(Spliced::new(Channel::Device, buffer_bytes)?)
        }
    };
    Ok(Box::new(Slave {
        receiver: None,
        way,
        setup: setup_of(transfer, transfer.receiver_buffer_bytes),
        size_bytes: transfer.size_bytes,
        _module: Module::insert(End::Slave.module(), SILENT)?,
    }))
}

fn setup_of(transfer: &TransferRequest, buffer_bytes: u64) -> Setup {
    Setup {
        mode: transfer.mode,
        buffer_bytes: u32::try_from(buffer_bytes).expect("its limits were checked"),
    }
}

fn open(end: End, setup: &Setup) -> Result<Device, Failure> {
    let cannot = |error: &io::Error| cannot(&format!("open {}", end.path()), error);
    let device = Device::open(end).map_err(|error| cannot(&error))?;
    let configured = device.configure(setup);
    configured.map_err(|errno| cannot(&errno.into()))?;
    Ok(device)
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    failure::failed(format!(
        "cannot {what}: {}; see the kernel log",
        failure::reason(error)
    ))
}

enum SendBy {
    Own(Way),
    Stream(Box<dyn Mover>),
}

enum Link {
    Closed,
    Waiting(Device),
    Connected(Sender),
}

struct Master {
    // Closed before the module goes.
    link: Link,
    way: SendBy,
    source: OpenSource,
    input: Option<Input>,
    setup: Setup,
    address: SocketAddr,
    size_bytes: u64,
    _module: Module,
}

impl Outgoing for Master {
    fn offer(&mut self) -> Result<Option<SocketAddr>, Failure> {
        let device = open(End::Master, &self.setup)?;
        let address = device
            .listen(self.address)
            .map_err(|errno| cannot(&format!("wait on {}", self.address), &errno.into()))?;
        self.link = Link::Waiting(device);
        Ok(Some(address))
    }

    fn accept(&mut self, _from: Option<SocketAddr>) -> Result<(), Failure> {
        let Link::Waiting(device) = std::mem::replace(&mut self.link, Link::Closed) else {
            unreachable!("an iteration begins with an offer");
        };
        device
            .accept(Some(PARTNER_DEADLINE))
            .map_err(|errno| cannot("let the slave in", &errno.into()))?;
        let way = match &self.way {
            SendBy::Own(way) => *way,
            SendBy::Stream(_) => Way::Foreign,
        };
        let sender = Sender::new(device, &self.setup, way)
            .map_err(|error| error.into_failure("the driver's buffer", "memory"))?;
        let input = self.source.ready()?;
        if let SendBy::Stream(mover) = &mut self.way {
            mover.prepare(&job(&sender, &input, self.size_bytes))?;
        }
        self.input = Some(input);
        self.link = Link::Connected(sender);
        Ok(())
    }

    fn send_all(&mut self) -> Result<Moved, CallError> {
        let (Link::Connected(sender), Some(input)) = (&mut self.link, &self.input) else {
            unreachable!("the slave was let in");
        };
        match &mut self.way {
            SendBy::Own(_) => sender.send_all(input.as_fd(), self.size_bytes),
            SendBy::Stream(mover) => {
                let moved = mover.run(&job(sender, input, self.size_bytes))?;
                sender.finish()?;
                Ok(moved)
            }
        }
    }

    fn metrics(&mut self) -> Result<Metrics, Failure> {
        let Link::Connected(sender) = &self.link else {
            unreachable!("a file was sent");
        };
        let statistics = sender.device().statistics();
        let statistics = statistics.map_err(no_facts)?;
        let mut metrics = vec![("sender_kernel_calls", statistics.sends)];
        if let SendBy::Own(Way::Mmap) = self.way {
            let page = sender.page().map_err(no_facts)?;
            metrics.extend(page_metrics(page, ["sender_pages", "sender_page_state"]));
        }
        Ok(metrics)
    }

    fn close(&mut self) {
        self.link = Link::Closed;
        self.input = None;
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = match &self.way {
            SendBy::Own(Way::Mmap) => {
                vec![format!("sender: {}", self.setup.describe_mapped())]
            }
            SendBy::Own(_) => vec![format!(
                "sender: buffer of {} bytes",
                self.setup.buffer_bytes
            )],
            SendBy::Stream(mover) => mover
                .notes()
                .iter()
                .map(|note| format!("sender: {note}"))
                .collect(),
        };
        notes.extend(self.source.note());
        notes
    }
}

fn job<'a>(sender: &'a Sender, input: &'a Input, size_bytes: u64) -> Job<'a> {
    Job {
        source: input.as_fd(),
        sink: sender.device().as_fd(),
        sink_kind: kind_of(Channel::Device),
        size_bytes,
    }
}

fn no_facts(errno: Errno) -> Failure {
    failure::instrument(format!(
        "cannot ask the device what it did: {}; use modules of this version",
        failure::reason(&errno.into())
    ))
}

/// How many pages were described, and the state of the one that was.
fn page_metrics(page: Option<Page>, [count, state]: [&'static str; 2]) -> Metrics {
    match page {
        None => vec![(count, 0)],
        Some(page) => vec![(count, 1), (state, page.entry & PAGE_STATE)],
    }
}

enum ReceiveBy {
    Own(Way),
    Stream(Spliced),
}

struct Slave {
    // Closed before the module goes.
    receiver: Option<Receiver>,
    way: ReceiveBy,
    setup: Setup,
    size_bytes: u64,
    _module: Module,
}

impl Slave {
    fn receiver(&mut self) -> &mut Receiver {
        self.receiver.as_mut().expect("it is connected")
    }
}

impl Incoming for Slave {
    fn connect(&mut self, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Failure> {
        let to = to.expect("a master has an address");
        let device = open(End::Slave, &self.setup)?;
        device
            .connect(to, Some(PARTNER_DEADLINE))
            .map_err(|errno| cannot(&format!("connect to {to}"), &errno.into()))?;
        let way = match &self.way {
            ReceiveBy::Own(way) => *way,
            ReceiveBy::Stream(_) => Way::Foreign,
        };
        let receiver = Receiver::new(device, &self.setup, way)
            .map_err(|error| error.into_failure("the driver's buffer", "memory"))?;
        self.receiver = Some(receiver);
        Ok(None)
    }

    fn receive_all(&mut self, file: &File, arrival: &mut Arrival) -> Result<Moved, CallError> {
        let size_bytes = self.size_bytes;
        let receiver = self.receiver.as_mut().expect("it is connected");
        match &mut self.way {
            ReceiveBy::Own(_) => {
                receiver.receive_all(file.as_fd(), size_bytes, &mut || arrival.note())
            }
            ReceiveBy::Stream(spliced) => {
                let device = receiver.device().as_fd();
                spliced.take(device, file, size_bytes, arrival)
            }
        }
    }

    fn metrics(&mut self) -> Result<Metrics, Failure> {
        let statistics = self.receiver().device().statistics();
        let statistics = statistics.map_err(no_facts)?;
        let mut metrics = vec![("receiver_kernel_calls", statistics.receives)];
        if let ReceiveBy::Own(Way::Mmap) = self.way {
            let page = self.receiver().page().map_err(no_facts)?;
            metrics.extend(page_metrics(
                page,
                ["receiver_pages", "receiver_page_state"],
            ));
        }
        Ok(metrics)
    }

    fn close(&mut self) {
        self.receiver = None;
    }

    fn notes(&self) -> Vec<String> {
        vec![match &self.way {
            ReceiveBy::Own(Way::Mmap) => {
                format!("receiver: {}", self.setup.describe_mapped())
            }
            ReceiveBy::Own(_) => {
                format!("receiver: buffer of {} bytes", self.setup.buffer_bytes)
            }
            ReceiveBy::Stream(spliced) => format!("receiver: {}", spliced.note()),
        }]
    }
}
