//! A clock that interrupts waits, and what happens where a mapped file lacks a
//! page.

use std::time::Duration;

/// Interrupts whatever waits, over and over, for as long as this value lives. The
/// device then sees whether anything has moved since
/// (`toll_probe::device::Device::retry_after`).
pub struct Alarm;

impl Alarm {
    /// An alarm so often; `None` is never.
    pub fn every(limit: Option<Duration>) -> Self {
        if let Some(limit) = limit {
            handle(libc::SIGALRM, wake);
            set_timer(limit);
        }
        Self
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        set_timer(Duration::ZERO);
    }
}

/// Does nothing: that it runs is what ends a wait with EINTR.
extern "C" fn wake(_signal: libc::c_int) {}

/// Has `master` end with a message where its mapped file lacks a page.
pub fn tell_of_source() {
    handle(libc::SIGBUS, end_master);
}

/// The same of `slave`, whose file has no name yet and goes with the program.
pub fn tell_of_output() {
    handle(libc::SIGBUS, end_slave);
}

extern "C" fn end_master(_signal: libc::c_int) {
    end(
        b"master: cannot read a page of the file: it has become shorter, or cannot be read; see \
          whether another program writes it, and the kernel log\n",
    );
}

extern "C" fn end_slave(_signal: libc::c_int) {
    end(
        b"slave: cannot write a page of the file: no space left on device, most likely; free \
          space there, or see the kernel log\n",
    );
}

fn end(message: &'static [u8]) {
    // SAFETY: write(2) is async-signal-safe and reads a constant.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
    // SAFETY: _exit(2) is async-signal-safe and takes a number.
    unsafe { libc::_exit(1) };
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all zeros is a sigaction without flags, so that calls are not made
    // again by themselves, and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the handlers of this module call nothing that is not safe in one.
    let status = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    assert_eq!(status, 0, "the signal can be handled");
}

/// Has SIGALRM come in these steps; 0 is never.
fn set_timer(step: Duration) {
    let time = libc::timeval {
        tv_sec: libc::time_t::try_from(step.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_usec: libc::suseconds_t::from(step.subsec_micros()),
    };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: it reads `timer` and writes nothing.
    let status =
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    assert_eq!(status, 0, "the time is one");
}
