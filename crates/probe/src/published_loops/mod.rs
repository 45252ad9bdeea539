//! The loops of the Virtual Device report's programs that map memory. The same loop sends to or
//! receives from a device and any other channel.

mod master;
mod slave;

pub use self::master::{Form, PageByPage, PageTarget, send_pages};
pub use self::slave::OutputWindows;
