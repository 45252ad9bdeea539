//! The loops in which the programs of the Virtual Device report map memory. A device
//! and any other channel are sent to and received from by the same loop.

mod master;
mod slave;

pub use self::master::{Form, PageByPage, PageTarget, send_pages};
pub use self::slave::OutputWindows;
