//! Being told to stop.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether a signal asked this program to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP from now to the program's end;
    /// all who ask share one listener.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn listen() -> io::Result<Self> {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        if let Some(listener) = LISTENER.get() {
            return Ok(listener.clone());
        }
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).expect("signals are positive");
            signal_hook::flag::register_usize(signal, Arc::clone(&interrupt.signal), number)?;
        }
        Ok(LISTENER.get_or_init(|| interrupt).clone())
    }

    /// Forgets a signal that was obeyed, so that the next one is seen.
    pub fn forget(&self) {
        self.signal.store(0, Ordering::Relaxed);
    }

    /// The signal that asked, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}
