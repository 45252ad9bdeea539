//! The links of the virtual device. Each end inserts its module for the trial,
//! and reopens its device for each iteration, because a connection belongs to
//! an open device.
//!
//! The report's methods are the device's own ways. Methods that work with any file descriptor
//! (sendfile, splice, io_uring) also work with the device's.

use std::ffi::CStr;
use std::net::SocketAddr;

use toll_wire::{Failure, PageLog, ReceiveMethod, SendMethod, TransferRequest};

use super::channel::{Metrics, waiting_address};
use super::control::PARTNER_DEADLINE;
use crate::buffer::checked_length;
use crate::device::{Access, Connection, Device, End, Setup, Way};
use crate::driver::Module;
use crate::failure::OrFail;

/// Present, writable, user mode, accessed, dirty (x86-64 page-table entries,
/// Intel SDM volume 3, 4.5): the bits of an entry that are compared with the
/// report's.
const PAGE_STATE: u64 = 0x67;

/// Returns the parameter for inserting the module. By default the module logs nothing, since a line
/// in the kernel log would add to the time of each ioctl.
fn log_parameter(page_log: PageLog) -> &'static CStr {
    match page_log {
        PageLog::Off => c"log=0",
        PageLog::On => c"log_published=1",
    }
}

const SEE_LOG: &str = "see the kernel log";

fn way_to_send(method: SendMethod) -> Way {
    match method {
        SendMethod::ReadWrite => Way::ReadWrite,
        SendMethod::Mmap => Way::Mmap,
        SendMethod::PublishedMmap => Way::PublishedMmap,
        SendMethod::MendedMmap => Way::MendedMmap,
        _ => Way::Foreign,
    }
}

fn way_to_receive(method: ReceiveMethod) -> Way {
    match method {
        ReceiveMethod::ReadWrite => Way::ReadWrite,
        ReceiveMethod::Mmap => Way::Mmap,
        ReceiveMethod::PublishedMmap => Way::PublishedMmap,
        ReceiveMethod::Splice => Way::Foreign,
    }
}

fn open(end: End, setup: &Setup) -> Result<Device, Failure> {
    let opening = format!("open {}", end.path());
    let device = Device::open(end).failed_by(&opening, SEE_LOG)?;
    device.configure(setup).failed_by(&opening, SEE_LOG)?;
    Ok(device)
}

enum State {
    Closed,
    Waiting(Device),
    Connected(Connection),
}

/// The master's end, which sends, or the slave's, which receives.
pub struct DeviceLink {
    // Declared first, so that the device is closed before the module is
    // removed.
    state: State,
    end: End,
    setup: Setup,
    /// The address on which a master waits.
    address: SocketAddr,
    _module: Module,
}

impl DeviceLink {
    pub fn new(end: End, transfer: &TransferRequest) -> Result<Self, Failure> {
        let (way, buffer_bytes) = match end {
            End::Master => (way_to_send(transfer.sender), transfer.buffer_bytes),
            End::Slave => (
                way_to_receive(transfer.receiver),
                transfer.receiver_buffer_bytes,
            ),
        };
        Ok(Self {
            state: State::Closed,
            end,
            setup: Setup {
                mode: transfer.mode,
                way,
                buffer_bytes: u32::try_from(buffer_bytes).expect("its limits were checked"),
                window_bytes: checked_length(transfer.window_bytes)?,
            },
            address: waiting_address(transfer),
            _module: Module::insert(end.module(), log_parameter(transfer.page_log))?,
        })
    }

    pub fn has_own_way(&self) -> bool {
        self.setup.way != Way::Foreign
    }

    /// Describes how the device's own ways move a file.
    pub fn describe(&self) -> String {
        let Setup {
            way,
            buffer_bytes,
            window_bytes,
            ..
        } = self.setup;
        match (way, self.end) {
            (Way::Mmap, _) => self.setup.describe_mapped(),
            (Way::PublishedMmap | Way::MendedMmap, End::Master) => format!(
                "copies of at most {buffer_bytes} bytes from pages of the file to pages of the \
                 device, and an ioctl for each"
            ),
            (Way::PublishedMmap | Way::MendedMmap, End::Slave) => {
                format!(
                    "reads of at most {buffer_bytes} bytes, copied into windows of {window_bytes}"
                )
            }
            (Way::ReadWrite | Way::Foreign, _) => format!("buffer of {buffer_bytes} bytes"),
        }
    }

    /// Starts to wait for the slave, and returns the address.
    pub fn listen(&mut self) -> Result<SocketAddr, Failure> {
        let device = open(self.end, &self.setup)?;
        let address = device
            .listen(self.address)
            .failed_by(format_args!("wait on {}", self.address), SEE_LOG)?;
        self.state = State::Waiting(device);
        Ok(address)
    }

    pub fn accept(&mut self) -> Result<(), Failure> {
        let State::Waiting(device) = std::mem::replace(&mut self.state, State::Closed) else {
            unreachable!("an iteration begins with an offer");
        };
        device
            .accept(Some(PARTNER_DEADLINE))
            .failed_by("accept the slave's connection", SEE_LOG)?;
        self.connected(device)
    }

    pub fn connect(&mut self, to: SocketAddr) -> Result<(), Failure> {
        let device = open(self.end, &self.setup)?;
        device
            .connect(to, Some(PARTNER_DEADLINE))
            .failed_by(format_args!("connect to {to}"), SEE_LOG)?;
        self.connected(device)
    }

    fn connected(&mut self, device: Device) -> Result<(), Failure> {
        let access = match self.end {
            End::Master => Access::Read,
            End::Slave => Access::Write,
        };
        let connection = Connection::new(device, &self.setup, access)
            .map_err(|error| error.into_failure("the driver's buffer", "memory"))?;
        self.state = State::Connected(connection);
        Ok(())
    }

    pub fn connection(&self) -> &Connection {
        match &self.state {
            State::Connected(connection) => connection,
            _ => unreachable!("it is connected"),
        }
    }

    pub fn connection_mut(&mut self) -> &mut Connection {
        match &mut self.state {
            State::Connected(connection) => connection,
            _ => unreachable!("it is connected"),
        }
    }

    /// Returns the number of the kernel's calls. With a mapped file also returns how many pages
    /// have an entry, and the state of that page.
    pub fn metrics(&self) -> Result<Metrics, Failure> {
        let connection = self.connection();
        let (asking, advice) = ("read the device statistics", "use modules of this version");
        let statistics = connection.device().statistics();
        let statistics = statistics.instrument_by(asking, advice)?;
        let (calls, pages, page_state) = match self.end {
            End::Master => (
                ("sender_kernel_calls", statistics.sends),
                "sender_pages",
                "sender_page_state",
            ),
            End::Slave => (
                ("receiver_kernel_calls", statistics.receives),
                "receiver_pages",
                "receiver_page_state",
            ),
        };
        let mut metrics = vec![calls];
        if self.setup.way.maps_file() {
            match connection.page().instrument_by(asking, advice)? {
                None => metrics.push((pages, 0)),
                Some(page) => {
                    metrics.extend([(pages, 1), (page_state, page.entry & PAGE_STATE)]);
                }
            }
        }
        Ok(metrics)
    }

    pub fn close(&mut self) {
        self.state = State::Closed;
    }
}
