//! Requests of a mount to its server, from the server's log: each request when it begins,
//! and its result before that is sent.

use std::fs;
use std::path::PathBuf;

use toll_sshd::{Settings, Subsystem};

use crate::mounts::common::{Mounted, Setting};

/// A mount whose server writes a log. The attribute timeout is longer than the test.
pub struct Recorded {
    pub mounted: Mounted,
    log: PathBuf,
}

impl Recorded {
    fn new(setting: &Setting) -> Self {
        let mut log = PathBuf::new();
        let setting = Setting {
            lifetime_ms: 1_000_000,
            ..setting.clone()
        };
        let mounted = Mounted::with(&setting, |place| {
            log = place.join("log");
            let server = "exec /usr/lib/openssh/sftp-server -e -l DEBUG3";
            Settings {
                subsystem: Subsystem::Command(format!("{server} 2>>{}", log.display())),
                ..Settings::default()
            }
        });
        Self { mounted, log }
    }

    /// Returns the words of each line so far, without its level: `request 7: open flags 1`
    /// begins a request, `request 7: sent status 0` answers it, and lines between them have
    /// the names that it concerns.
    pub fn lines(&self) -> Vec<Vec<String>> {
        let log = fs::read_to_string(&self.log).unwrap();
        let words = |line: &str| {
            let words = line.split_whitespace().map(str::to_owned);
            words.skip_while(|word| word.starts_with("debug")).collect()
        };
        log.lines().map(words).collect()
    }
}

/// Runs a test in each setting that this machine can mount.
pub fn each(settings: &[Setting], test: impl Fn(&Recorded)) {
    for setting in settings.iter().filter(|setting| setting.is_possible()) {
        test(&Recorded::new(setting));
    }
}
