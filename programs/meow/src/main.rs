//! Where the program `meow` starts.
//!
//! Rust's own start-up is left out (`no_main`): it makes eighteen system calls
//! before and after a program's own lines, more than a short copy needs in all,
//! and has SIGPIPE ignored, by which a `cat` must be ended.
#![no_main]

#[unsafe(no_mangle)]
extern "C" fn main(count: libc::c_int, words: *const *const libc::c_char) -> libc::c_int {
    // SAFETY: these are the arguments that the C library calls `main` with.
    let arguments = unsafe { meow::arguments(count, words) };
    meow::run(arguments)
}
