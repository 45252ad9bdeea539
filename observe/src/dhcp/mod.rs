//! Reads address leases from a network capture: DHCP (RFC 2131) and BOOTP (RFC 951) over
//! IPv4.

mod answers;
mod capture;
mod exchange;
mod frame;
mod meaning;
mod message;
mod message_types;
mod model;
mod observer;
mod options;

pub use frame::{Checksum, Datagram, Packet};
pub use meaning::Phase;
pub use message::Message;
pub use message_types::type_name;
pub use model::{Answer, Event, Exchange, Lease, LeaseEnd, Offer, Problem, Repeat, Report};
pub use observer::Observer;
pub use options::{DhcpOption, duration};

/// Reads a whole capture. If the file is not a capture, the error says what it is
/// instead.
pub fn observe(file: &[u8]) -> Result<Report, String> {
    let mut observer = Observer::default();
    capture::read(file, &mut observer)?;
    Ok(observer.finish())
}
