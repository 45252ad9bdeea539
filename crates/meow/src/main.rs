//! `meow`: `cat`, by the fastest right way for its source and sink.
//!
//! What is copied goes through the probe's own methods, the ones that toll
//! measures. This program adds what `cat` is beyond copying: options, several
//! files, formatted output, messages and exit codes; and the choice.
//!
//! Rust's own start-up is left out (`no_main`): it makes a dozen system calls
//! before the first line of a program, as many as a short copy needs in all,
//! and has SIGPIPE ignored, by which a `cat` must be ended.
#![cfg_attr(not(test), no_main)]

mod carry;
mod decorate;
mod ends;
mod options;
mod program;
mod route;

/// Where the C library starts the program.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn main(_count: libc::c_int, _arguments: *const *const libc::c_char) -> libc::c_int {
    program::run()
}
