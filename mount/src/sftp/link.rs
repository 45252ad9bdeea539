//! The current connection of a source, which is replaced after it is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::options::Options;
use super::session::{Session, Transport};
use crate::source::{Error, Result};

/// Pause after the first failed attempt. Each further pause is twice as long, up to
/// `PAUSE_LAST`.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(30);

/// How long a connection waits for the user to enter a password.
const PASSWORD_TIMEOUT: Duration = Duration::from_secs(600);

/// Starts a connection. The argument says whether the connection may ask for a
/// password. The error is text for the user.
pub type Connect = Box<dyn Fn(bool) -> Result<Transport, String> + Send + Sync>;

pub(super) struct Link {
    connect: Connect,
    host: String,
    options: Options,
    state: Mutex<State>,
}

struct State {
    /// The current session; `None` after a failed attempt.
    session: Option<Arc<Session>>,
    attempts_failed: u32,
    next_attempt: Instant,
}

impl Link {
    pub fn new(connect: Connect, host: &str, options: &Options) -> Result<Self, String> {
        let link = Self {
            connect,
            host: host.to_owned(),
            options: options.clone(),
            state: Mutex::new(State {
                session: None,
                attempts_failed: 0,
                next_attempt: Instant::now(),
            }),
        };
        let first = link.establish(options.is_interactive)?;
        link.state.lock().session = Some(first);
        Ok(link)
    }

    fn establish(&self, is_interactive: bool) -> Result<Arc<Session>, String> {
        let greeting = if is_interactive {
            PASSWORD_TIMEOUT
        } else {
            self.options.connect_timeout
        };
        let timeout = (greeting, self.options.answer_timeout);
        (self.connect)(is_interactive)
            .and_then(|transport| Session::establish(transport, timeout))
            .map_err(|why| format!("cannot connect to {}: {why}", self.host))
    }

    pub fn tell(&self, message: &str) {
        (self.options.notice)(message);
    }

    /// Returns the current session, or connects again if it has ended. Callers that
    /// arrive during an attempt wait for its result. Returns `Lost` if there is no
    /// connection within the time that a call may wait.
    pub fn session(&self) -> Result<Arc<Session>> {
        let deadline = Instant::now() + self.options.reconnect_timeout;
        let mut state = self.state.lock();
        if let Some(ended) = state.session.take_if(|session| !session.is_alive()) {
            let why = ended.why_it_ended();
            self.tell(&format!("connection lost: {why}; reconnecting"));
            state.attempts_failed = 0;
        }
        loop {
            if let Some(session) = &state.session {
                return Ok(Arc::clone(session));
            }
            if state.attempts_failed > 0 {
                if state.next_attempt > deadline {
                    return Err(Error::Lost);
                }
                let pause = state.next_attempt.saturating_duration_since(Instant::now());
                std::thread::sleep(pause);
            }
            self.connect_again(&mut state);
        }
    }

    fn connect_again(&self, state: &mut State) {
        match self.establish(false) {
            Ok(session) => {
                self.tell("reconnected");
                state.session = Some(session);
            }
            Err(why) => {
                if state.attempts_failed == 0 {
                    self.tell(&format!("{why}; the next call will try again"));
                }
                let pause = PAUSE_FIRST * (1 << state.attempts_failed.min(16));
                state.attempts_failed += 1;
                state.next_attempt = Instant::now() + pause.min(PAUSE_LAST);
            }
        }
    }
}
