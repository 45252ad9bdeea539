//! Trials from request to response, by the built program.

mod command;
mod common;
mod copy;
mod protocol;
mod write;
