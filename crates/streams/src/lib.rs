//! Checks whether a program can use the standard streams that it was started with.
//!
//! Rust's start-up opens `/dev/null` in place of a closed standard stream (`program <&-`).
//! For a stream that is open in the wrong direction (`program 0>file`), `Stdin` and
//! `Stdout` take EBADF for end of input or success. Reads then return nothing and written
//! data is lost, both without an error. So a program must check before Rust's start-up
//! runs.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Bit `n` is set if descriptor `n` was closed at the start.
static CLOSED: AtomicU8 = AtomicU8::new(0);
static STDIN_IS_USELESS: AtomicBool = AtomicBool::new(false);
static STDOUT_IS_USELESS: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    let stdin = is_useless(libc::STDIN_FILENO, libc::O_WRONLY);
    STDIN_IS_USELESS.store(stdin, Ordering::Relaxed);
    let stdout = is_useless(libc::STDOUT_FILENO, libc::O_RDONLY);
    STDOUT_IS_USELESS.store(stdout, Ordering::Relaxed);
    for descriptor in libc::STDIN_FILENO..=libc::STDERR_FILENO {
        if flags(descriptor) == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

fn flags(descriptor: libc::c_int) -> libc::c_int {
    // SAFETY: the call takes no pointer, and any descriptor number is allowed.
    unsafe { libc::fcntl(descriptor, libc::F_GETFL) }
}

/// Returns whether a descriptor is closed, or open only in the wrong mode.
fn is_useless(descriptor: libc::c_int, wrong_mode: libc::c_int) -> bool {
    let flags = flags(descriptor);
    flags == -1 || flags & libc::O_PATH != 0 || flags & libc::O_ACCMODE == wrong_mode
}

// SAFETY: the section is a list of such functions, which the C library calls before
// `main`. This one needs nothing that Rust's start-up makes.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Fails with EBADF, as a read would, if the program was started without a readable standard
/// input.
pub fn check_stdin() -> io::Result<()> {
    check(&STDIN_IS_USELESS)
}

/// Fails with EBADF, as a write would, if the program was started without a writable standard
/// output.
pub fn check_stdout() -> io::Result<()> {
    check(&STDOUT_IS_USELESS)
}

fn check(is_useless: &AtomicBool) -> io::Result<()> {
    if is_useless.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}

/// Closes the standard streams that were closed at the start. A program calls this before it
/// replaces this process by another, which must not find Rust's `/dev/null` in their place.
pub fn close_what_was_closed() {
    let closed = CLOSED.swap(0, Ordering::Relaxed);
    for descriptor in libc::STDIN_FILENO..=libc::STDERR_FILENO {
        if closed & (1 << descriptor) != 0 {
            // SAFETY: only `/dev/null` of Rust's start-up is there, and nobody owns it.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Closes a file and returns the error that dropping it would hide: NFS and FUSE report
/// here that they could not store data (close(2)).
pub fn close(file: impl Into<OwnedFd>) -> io::Result<()> {
    let descriptor = file.into().into_raw_fd();
    // SAFETY: the descriptor was owned, so nothing else closes or uses it.
    if unsafe { libc::close(descriptor) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
