//! Whether a program was started without standard output (`program >&-`).
//!
//! Rust's start-up opens `/dev/null` in the place of a closed standard stream. What is
//! written there is lost without an error, so a program must know it from before.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: the call takes no pointer, and any descriptor may be asked.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section is a list of such functions, which the C library calls before
// `main`. This one needs nothing that Rust's start-up makes.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Fails as a write would if the program was started without standard output.
pub fn check_stdout() -> io::Result<()> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}
