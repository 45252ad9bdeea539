//! The connection that a source has at the moment, and the next one after it
//! is lost.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::session::Session;
use crate::source::{Error, Result};

/// The first pause after an attempt that failed; each further one is twice as
/// long, up to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(30);

/// How a session is made. An error is in words.
pub(super) type Connect = Box<dyn Fn() -> std::result::Result<Arc<Session>, String> + Send + Sync>;

/// One session at a time.
pub(super) struct Link {
    connect: Connect,
    /// How long a call waits for a connection.
    patience: Duration,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Up(Arc<Session>),
    /// Somebody is connecting.
    Connecting,
    Down {
        attempts: u32,
        next: Instant,
    },
}

impl Link {
    /// A link that has its first session.
    pub fn new(
        first: Arc<Session>,
        connect: Connect,
        patience: Duration,
        tell: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        Self {
            connect,
            patience,
            tell,
            state: Mutex::new(State::Up(first)),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message for the user.
    pub fn tell(&self, message: &str) {
        (self.tell)(message);
    }

    /// A session whose end is not known, made anew if the one before has
    /// ended.
    ///
    /// # Errors
    /// `Lost` if there is none within the time that a call may wait.
    pub fn session(&self) -> Result<Arc<Session>> {
        let deadline = Instant::now() + self.patience;
        let mut state = self.lock();
        loop {
            let (attempts, next) = match &*state {
                State::Up(session) if session.is_alive() => return Ok(Arc::clone(session)),
                State::Up(_) => (0, None),
                State::Down { attempts, next } => (*attempts, Some(*next)),
                State::Connecting => {
                    state = self.wait(state, deadline)?;
                    continue;
                }
            };
            if let Some(next) = next {
                if next > deadline {
                    return Err(Error::Lost);
                }
                if next > Instant::now() {
                    state = self.wait(state, next)?;
                    continue;
                }
            }
            let before = std::mem::replace(&mut *state, State::Connecting);
            drop(state);
            state = self.reconnect(before, attempts);
        }
    }

    /// Waits for a change until some time, which is an error only if a call
    /// may not wait longer.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        until: Instant,
    ) -> Result<MutexGuard<'a, State>> {
        let is_connecting = matches!(*state, State::Connecting);
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() && is_connecting {
            return Err(Error::Lost);
        }
        let waited = self.changed.wait_timeout(state, rest);
        Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// One attempt, with nothing locked.
    fn reconnect(&self, before: State, attempts: u32) -> MutexGuard<'_, State> {
        if let State::Up(ended) = before {
            self.tell(&format!(
                "connection lost: {}; connecting again",
                ended.why_it_ended()
            ));
            drop(ended);
        }
        let after = match (self.connect)() {
            Ok(session) => {
                self.tell("connected again");
                State::Up(session)
            }
            Err(why) => {
                if attempts == 0 {
                    self.tell(&format!("{why}; trying again at the next call"));
                }
                let pause = PAUSE_FIRST
                    .saturating_mul(1 << attempts.min(16))
                    .min(PAUSE_LAST);
                State::Down {
                    attempts: attempts.saturating_add(1),
                    next: Instant::now() + pause,
                }
            }
        };
        let mut state = self.lock();
        *state = after;
        self.changed.notify_all();
        state
    }
}
