//! Formats reports for a terminal.

mod devices;
mod dhcp;
mod interfaces;

pub use devices::of_report as devices;
pub use dhcp::of_report as dhcp;
pub use interfaces::of_report as interfaces;
