//! The source over SFTP against OpenSSH's own server on the loopback
//! interface.

mod address;
mod clock;
mod common;
mod errors;
mod faults;
mod hostile;
mod lost;
mod methods;
mod protocol;
mod scripted;
