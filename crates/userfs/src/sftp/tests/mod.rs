//! Servers that do not keep to the protocol, or fail at a chosen moment. A
//! real one does neither, so these are scripted, byte for byte.

mod hostile;
mod lost;
mod server;
