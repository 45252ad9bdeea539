//! Options for starting ssh, and timeouts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives one line for the user: a message of ssh, or the news that the connection is
/// lost or back. The line contains no control characters.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub struct Options {
    pub program: PathBuf,
    /// Port of the server (`ssh -p`).
    pub port: Option<u16>,
    /// File with the private key (`ssh -i`).
    pub identity: Option<PathBuf>,
    /// Configuration file of ssh (`ssh -F`).
    pub config: Option<PathBuf>,
    /// Options of ssh (`ssh -o`), each `NAME=VALUE`. They take precedence over those
    /// set here.
    pub settings: Vec<String>,
    /// Whether ssh may ask for passwords and about unknown hosts at the terminal, for
    /// the first connection. Later connections never ask.
    pub is_interactive: bool,
    pub connect_timeout: Duration,
    /// How long the server may be silent while a request is pending. After that, the
    /// connection counts as lost.
    pub answer_timeout: Duration,
    /// How long a call waits for a new connection after one was lost.
    pub reconnect_timeout: Duration,
    pub notice: Notice,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: "ssh".into(),
            port: None,
            identity: None,
            config: None,
            settings: Vec::new(),
            is_interactive: false,
            connect_timeout: Duration::from_secs(20),
            answer_timeout: Duration::from_secs(60),
            reconnect_timeout: Duration::from_secs(10),
            notice: Arc::new(|_| {}),
        }
    }
}
