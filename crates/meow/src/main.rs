//! Where the program `meow` starts.
//!
//! Rust's own start-up is left out (`no_main`): it makes eighteen system calls
//! before and after a program's own lines, more than a short copy needs in all,
//! and has SIGPIPE ignored, by which a `cat` must be ended.
#![no_main]

#[unsafe(no_mangle)]
extern "C" fn main(_count: libc::c_int, _arguments: *const *const libc::c_char) -> libc::c_int {
    meow::run()
}
