//! Entry point of the program `meow`.
//!
//! The program leaves out Rust's own start-up (`no_main`). That start-up makes eighteen
//! system calls before and after a program's own code, more than a short copy needs in
//! all. It also ignores SIGPIPE, which must end a `cat`.
#![no_main]

#[unsafe(no_mangle)]
extern "C" fn main(count: libc::c_int, words: *const *const libc::c_char) -> libc::c_int {
    // SAFETY: these are the arguments that the C library passes to `main`.
    let arguments = unsafe { meow::arguments(count, words) };
    meow::run(arguments)
}
