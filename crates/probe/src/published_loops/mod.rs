//! The loops of the Virtual Device report's programs that map memory. The same loops serve the
//! devices and all other channels.

mod master;
mod slave;

pub use self::master::{Form, PageByPage, PageTarget, send_pages};
pub use self::slave::OutputWindows;
