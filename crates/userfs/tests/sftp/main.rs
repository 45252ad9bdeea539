//! The source over SFTP against OpenSSH's own server on the loopback
//! interface.

mod address;
mod begin;
mod common;
mod errors;
mod faults;
mod finish;
mod hostile;
mod lost;
mod methods;
mod protocol;
mod proxy;
mod scripted;
