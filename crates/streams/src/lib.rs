//! Whether a program can use the standard streams that it was started with.
//!
//! Rust's start-up opens `/dev/null` in the place of a closed standard stream (`program
//! <&-`), and its `Stdin` and `Stdout` take EBADF of one that is open the other way
//! (`program 0>file`) for an end of input or a success. What is read there is empty, and
//! what is written there is lost, both without an error. So a program must look before.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

static STDIN_IS_USELESS: AtomicBool = AtomicBool::new(false);
static STDOUT_IS_USELESS: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    let stdin = is_useless(libc::STDIN_FILENO, libc::O_WRONLY);
    STDIN_IS_USELESS.store(stdin, Ordering::Relaxed);
    let stdout = is_useless(libc::STDOUT_FILENO, libc::O_RDONLY);
    STDOUT_IS_USELESS.store(stdout, Ordering::Relaxed);
}

/// Whether a descriptor is closed, or only open in the wrong mode.
fn is_useless(descriptor: libc::c_int, wrong_mode: libc::c_int) -> bool {
    // SAFETY: the call takes no pointer, and any descriptor may be asked.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    flags == -1 || flags & libc::O_PATH != 0 || flags & libc::O_ACCMODE == wrong_mode
}

// SAFETY: the section is a list of such functions, which the C library calls before
// `main`. This one needs nothing that Rust's start-up makes.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Fails as a read would if the program was started without a standard input to read.
pub fn check_stdin() -> io::Result<()> {
    check(&STDIN_IS_USELESS)
}

/// Fails as a write would if the program was started without a standard output to write.
pub fn check_stdout() -> io::Result<()> {
    check(&STDOUT_IS_USELESS)
}

fn check(is_useless: &AtomicBool) -> io::Result<()> {
    if is_useless.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}

/// Closes a file and returns the error that dropping it would hide: NFS and FUSE report
/// here what they could not keep (close(2)).
pub fn close(file: impl Into<OwnedFd>) -> io::Result<()> {
    let descriptor = file.into().into_raw_fd();
    // SAFETY: the descriptor was owned, so nothing else closes or uses it.
    if unsafe { libc::close(descriptor) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
