//! Signals that a thread sends to itself.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use toll_wire::Failure;

use super::kind::{Crossing, check};
use crate::failure::OrFail;

/// Signals handled since the program began.
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Raises signals, each of which is handled before the next one.
pub struct SelfSignal {
    handled_before: u64,
}

impl SelfSignal {
    pub fn new() -> Result<Self, Failure> {
        let handler: extern "C" fn(libc::c_int) = count;
        // SAFETY: the handler only adds to an atomic, which is signal-safe.
        let previous = unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
        if previous == libc::SIG_ERR {
            return Err(io::Error::last_os_error()).failed_to("measure a crossing by signal");
        }
        Ok(Self { handled_before: 0 })
    }
}

impl Crossing for SelfSignal {
    fn prepare(&mut self, _calls: u64) -> Result<(), Failure> {
        self.handled_before = HANDLED.load(Ordering::Relaxed);
        Ok(())
    }

    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        let (process, thread) = (rustix::process::getpid(), rustix::thread::gettid());
        let (process, thread) = (
            process.as_raw_nonzero().get(),
            thread.as_raw_nonzero().get(),
        );
        for _ in 0..calls {
            // `raise` would block all signals around the same call.
            // SAFETY: tgkill(2) takes plain integers.
            let status = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
            if status != 0 {
                return Err(io::Error::last_os_error()).failed_to("measure a crossing by tgkill");
            }
        }
        Ok(())
    }

    fn settle(&mut self, calls: u64) -> Result<(), Failure> {
        let handled = HANDLED.load(Ordering::Relaxed) - self.handled_before;
        let what = format!("{handled} of {calls} signals were handled");
        check(handled == calls, &what)
    }
}
