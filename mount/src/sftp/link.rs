//! The connection that a source has at the moment, and the next one after it
//! is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::options::Options;
use super::session::{Session, Transport};
use crate::source::{Error, Result};

/// The first pause after an attempt that failed; each further one is twice as
/// long, up to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(30);

/// How long people may take to find a password.
const PASSWORD_TIMEOUT: Duration = Duration::from_secs(600);

/// Begins a connection, which may ask for a password if it is told so. An error
/// is in words.
pub type Connect = Box<dyn Fn(bool) -> Result<Transport, String> + Send + Sync>;

pub(super) struct Link {
    connect: Connect,
    host: String,
    options: Options,
    state: Mutex<State>,
}

struct State {
    /// None after an attempt that failed.
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
        let greeting = match is_interactive {
            true => PASSWORD_TIMEOUT,
            false => self.options.connect_timeout,
        };
        let timeout = (greeting, self.options.answer_timeout);
        (self.connect)(is_interactive)
            .and_then(|transport| Session::establish(transport, timeout))
            .map_err(|why| format!("cannot connect to {}: {why}", self.host))
    }

    pub fn tell(&self, message: &str) {
        (self.options.notice)(message);
    }

    /// A session whose end is not known, made anew if the one before has
    /// ended. Who comes while somebody else connects waits for that attempt. `Lost`
    /// if there is none within the time that a call may wait.
    pub fn session(&self) -> Result<Arc<Session>> {
        let deadline = Instant::now() + self.options.reconnect_timeout;
        let mut state = self.state.lock();
        if let Some(ended) = state.session.take_if(|session| !session.is_alive()) {
            let why = ended.why_it_ended();
            self.tell(&format!("connection lost: {why}; connecting again"));
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
                self.tell("connected again");
                state.session = Some(session);
            }
            Err(why) => {
                if state.attempts_failed == 0 {
                    self.tell(&format!("{why}; trying again at the next call"));
                }
                let pause = PAUSE_FIRST * (1 << state.attempts_failed.min(16));
                state.attempts_failed += 1;
                state.next_attempt = Instant::now() + pause.min(PAUSE_LAST);
            }
        }
    }
}
