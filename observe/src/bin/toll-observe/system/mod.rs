//! Queries this machine for devices, captured packets and network interfaces.

pub mod capture;
pub mod devices;
pub mod interfaces;
