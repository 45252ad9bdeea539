//! The links of the virtual device. Each end inserts its module for the trial,
//! and opens its device anew for each iteration, as a connection belongs to an
//! open device.
//!
//! The report's two ways are the device's own. What works with any descriptor
//! (sendfile, splice, io_uring) works with the device's, too.

use std::ffi::CStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::io::Errno;
use toll_wire::{Failure, ReceiveMethod, SendMethod, TransferPart, TransferRequest};

use super::CHANNEL_PORT;
use super::control::PARTNER_DEADLINE;
use super::link::Metrics;
use crate::device::{Access, Connection, Device, End, Page, Setup, Way};
use crate::driver::Module;
use crate::failure;

/// Present, writable, of user mode, accessed, dirty (x86-64 page-table entries,
/// Intel SDM volume 3, 4.5): what of an entry is compared with the report's.
const PAGE_STATE: u64 = 0x67;

/// No ioctl that is timed pays for a line in the kernel log.
const SILENT: &CStr = c"log=0";

/// The device's own way to send, if it is one of its own.
pub fn way_to_send(method: SendMethod) -> Way {
    match method {
        SendMethod::ReadWrite => Way::ReadWrite,
        SendMethod::Mmap => Way::Mmap,
        _ => Way::Foreign,
    }
}

pub fn way_to_receive(method: ReceiveMethod) -> Way {
    match method {
        ReceiveMethod::ReadWrite => Way::ReadWrite,
        ReceiveMethod::Mmap => Way::Mmap,
        ReceiveMethod::Splice => Way::Foreign,
    }
}

/// How the device's own ways move a file.
fn describe(setup: &Setup, way: Way) -> String {
    match way {
        Way::Mmap => setup.describe_mapped(),
        _ => format!("buffer of {} bytes", setup.buffer_bytes),
    }
}

fn setup(transfer: &TransferRequest, buffer_bytes: u64) -> Setup {
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
    failure::failed_by(what, error, "see the kernel log")
}

fn no_facts(errno: Errno) -> Failure {
    let what = "ask the device what it did";
    failure::instrument_by(what, &errno.into(), "use modules of this version")
}

/// How many pages were described, and the state of the one that was.
fn page_metrics(page: Option<Page>, [count, state]: [&'static str; 2]) -> Metrics {
    match page {
        None => vec![(count, 0)],
        Some(page) => vec![(count, 1), (state, page.entry & PAGE_STATE)],
    }
}

/// The sender's device.
enum State {
    Closed,
    Waiting(Device),
    Connected(Connection),
}

/// The sender's end.
pub struct Master {
    // Closed before the module goes.
    state: State,
    way: Way,
    setup: Setup,
    address: SocketAddr,
    _module: Module,
}

impl Master {
    pub fn new(transfer: &TransferRequest) -> Result<Self, Failure> {
        Ok(Self {
            state: State::Closed,
            way: way_to_send(transfer.sender),
            setup: setup(transfer, transfer.buffer_bytes),
            address: match transfer.part {
                TransferPart::Sender { listen } => (listen, CHANNEL_PORT).into(),
                _ => (Ipv4Addr::LOCALHOST, 0).into(),
            },
            _module: Module::insert(End::Master.module(), SILENT)?,
        })
    }

    pub fn describe(&self) -> String {
        describe(&self.setup, self.way)
    }

    /// Waits for the slave from now on; yields where.
    pub fn listen(&mut self) -> Result<SocketAddr, Failure> {
        let device = open(End::Master, &self.setup)?;
        let address = device
            .listen(self.address)
            .map_err(|errno| cannot(&format!("wait on {}", self.address), &errno.into()))?;
        self.state = State::Waiting(device);
        Ok(address)
    }

    pub fn accept(&mut self) -> Result<(), Failure> {
        let State::Waiting(device) = std::mem::replace(&mut self.state, State::Closed) else {
            unreachable!("an iteration begins with an offer");
        };
        device
            .accept(Some(PARTNER_DEADLINE))
            .map_err(|errno| cannot("let the slave in", &errno.into()))?;
        let sender = Connection::new(device, &self.setup, self.way, Access::Read)
            .map_err(|error| error.into_failure("the driver's buffer", "memory"))?;
        self.state = State::Connected(sender);
        Ok(())
    }

    pub fn sender(&self) -> &Connection {
        match &self.state {
            State::Connected(sender) => sender,
            _ => unreachable!("the slave was let in"),
        }
    }

    pub fn sender_mut(&mut self) -> &mut Connection {
        match &mut self.state {
            State::Connected(sender) => sender,
            _ => unreachable!("the slave was let in"),
        }
    }

    pub fn metrics(&self) -> Result<Metrics, Failure> {
        let sender = self.sender();
        let statistics = sender.device().statistics().map_err(no_facts)?;
        let mut metrics = vec![("sender_kernel_calls", statistics.sends)];
        if self.way == Way::Mmap {
            let page = sender.page().map_err(no_facts)?;
            metrics.extend(page_metrics(page, ["sender_pages", "sender_page_state"]));
        }
        Ok(metrics)
    }

    pub fn close(&mut self) {
        self.state = State::Closed;
    }
}

/// The receiver's end.
pub struct Slave {
    // Closed before the module goes.
    receiver: Option<Connection>,
    way: Way,
    setup: Setup,
    _module: Module,
}

impl Slave {
    pub fn new(transfer: &TransferRequest) -> Result<Self, Failure> {
        Ok(Self {
            receiver: None,
            way: way_to_receive(transfer.receiver),
            setup: setup(transfer, transfer.receiver_buffer_bytes),
            _module: Module::insert(End::Slave.module(), SILENT)?,
        })
    }

    pub fn describe(&self) -> String {
        describe(&self.setup, self.way)
    }

    pub fn connect(&mut self, to: SocketAddr) -> Result<(), Failure> {
        let device = open(End::Slave, &self.setup)?;
        device
            .connect(to, Some(PARTNER_DEADLINE))
            .map_err(|errno| cannot(&format!("connect to {to}"), &errno.into()))?;
        let receiver = Connection::new(device, &self.setup, self.way, Access::Write)
            .map_err(|error| error.into_failure("the driver's buffer", "memory"))?;
        self.receiver = Some(receiver);
        Ok(())
    }

    pub fn receiver(&self) -> &Connection {
        self.receiver.as_ref().expect("it is connected")
    }

    pub fn receiver_mut(&mut self) -> &mut Connection {
        self.receiver.as_mut().expect("it is connected")
    }

    pub fn metrics(&self) -> Result<Metrics, Failure> {
        let receiver = self.receiver();
        let statistics = receiver.device().statistics().map_err(no_facts)?;
        let mut metrics = vec![("receiver_kernel_calls", statistics.receives)];
        if self.way == Way::Mmap {
            let page = receiver.page().map_err(no_facts)?;
            let names = ["receiver_pages", "receiver_page_state"];
            metrics.extend(page_metrics(page, names));
        }
        Ok(metrics)
    }

    pub fn close(&mut self) {
        self.receiver = None;
    }
}
