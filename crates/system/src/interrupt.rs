//! Requests to stop, or to pause, by signals.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::{flag, low_level};

/// Tells whether a signal asked this program to stop, or to pause.
#[derive(Debug, Clone)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    /// Whether a signal to stop ends the program at once.
    ends_at_once: Arc<AtomicBool>,
    pause: Arc<AtomicBool>,
    /// Whether SIGTSTP stops the program at once.
    pauses_at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP from now until [`Self::let_signals_end`]. All callers
    /// share one listener. A signal that is ignored at the program's start, such as SIGHUP under
    /// nohup(1), stays ignored.
    pub fn listen() -> io::Result<Self> {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        if let Some(listener) = LISTENER.get() {
            listener.ends_at_once.store(false, Ordering::SeqCst);
            return Ok(listener.clone());
        }
        let interrupt = Self {
            signal: Arc::default(),
            ends_at_once: Arc::default(),
            pause: Arc::default(),
            pauses_at_once: Arc::new(AtomicBool::new(true)),
        };
        let ignored = ignored_signals();
        let is_heard = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard) {
            let number = usize::try_from(signal).expect("signals are positive");
            flag::register_conditional_default(signal, Arc::clone(&interrupt.ends_at_once))?;
            flag::register_usize(signal, Arc::clone(&interrupt.signal), number)?;
        }
        if is_heard(&SIGTSTP) {
            flag::register_conditional_default(SIGTSTP, Arc::clone(&interrupt.pauses_at_once))?;
            flag::register(SIGTSTP, Arc::clone(&interrupt.pause))?;
        }
        Ok(LISTENER.get_or_init(|| interrupt).clone())
    }

    /// Forgets a signal that was handled, so that the next signal is seen.
    pub fn forget(&self) {
        self.signal.store(0, Ordering::Relaxed);
    }

    /// Lets a signal end the program at once from now on, since nothing is left to undo.
    pub fn let_signals_end(&self) {
        self.ends_at_once.store(true, Ordering::SeqCst);
    }

    /// The signal that was received, if one was.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    /// Whether the running trial must end, because of a request to stop or to pause.
    pub fn ends_trial(&self) -> bool {
        self.signal().is_some() || self.wants_pause()
    }

    /// Defers pauses to [`Self::pause`] from now on, so that no trial
    /// is measured meanwhile.
    pub fn defer_pauses(&self) {
        self.pause.store(false, Ordering::Relaxed);
        self.pauses_at_once.store(false, Ordering::SeqCst);
    }

    /// Lets SIGTSTP stop the program from now on, as usual.
    pub fn let_pauses(&self) {
        self.pauses_at_once.store(true, Ordering::SeqCst);
    }

    pub fn wants_pause(&self) -> bool {
        self.pause.load(Ordering::Relaxed) && !self.pauses_at_once.load(Ordering::SeqCst)
    }

    /// Stops this program until somebody continues it, as requested, and returns
    /// how long that took.
    pub fn pause(&self) -> Duration {
        self.pause.store(false, Ordering::Relaxed);
        let begin = Instant::now();
        // The call cannot fail for a signal that this program may send to itself.
        let _ = low_level::emulate_default_handler(SIGTSTP);
        begin.elapsed()
    }
}

/// The signals that this program ignores, one bit each (SigIgn of
/// proc_pid_status(5)).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
