//! A timer that interrupts waits, and handlers for a mapped file that lacks a page.

use std::time::Duration;

/// Interrupts every wait periodically for as long as this value lives. The device then
/// checks whether anything has moved since (`toll_probe::device::Device::retry_after`).
pub struct Alarm;

impl Alarm {
    /// Starts an alarm with this period; `None` means never.
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

/// Does nothing. A wait ends with EINTR because a handler runs.
extern "C" fn wake(_signal: libc::c_int) {}

/// Makes `master` end with a message if its mapped file lacks a page.
pub fn tell_of_source() {
    handle(libc::SIGBUS, end_master);
}

/// Makes `slave` end with a message if its mapped file lacks a page. That file has no
/// name yet and vanishes with the program.
pub fn tell_of_output() {
    handle(libc::SIGBUS, end_slave);
}

extern "C" fn end_master(_signal: libc::c_int) {
    end(
        b"master: cannot read a page of the file: the file became shorter, or reading it failed; \
          check whether another program writes the file, and see the kernel log\n",
    );
}

extern "C" fn end_slave(_signal: libc::c_int) {
    end(
        b"slave: cannot write a page of the file: probably no space left on device; free space \
          there, or see the kernel log\n",
    );
}

fn end(message: &'static [u8]) {
    // SAFETY: write(2) is async-signal-safe and reads a constant.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
    // SAFETY: _exit(2) is async-signal-safe and takes a number.
    unsafe { libc::_exit(1) };
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all zeros is a sigaction with an empty mask and without flags, so that
    // calls are not restarted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the handlers of this module call only async-signal-safe functions.
    let status = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    assert_eq!(status, 0, "the signal can be handled");
}

/// Makes SIGALRM arrive at this interval; 0 means never.
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
    assert_eq!(status, 0, "the time is valid");
}
