//! What this machine says: its devices, its network and its interfaces.

pub mod capture;
pub mod devices;
pub mod interfaces;
