//! Captures of a network and a recording of a terminal that were made by other programs.

mod captures;
mod session;
