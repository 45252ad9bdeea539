//! Processes that go on beside a test.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest that any one command of the tests may take. Far above what they
/// need, also emulated on a busy machine: it only keeps a hang from stopping the
/// whole suite.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// A `toll` that runs meanwhile; it does not outlive its test.
pub struct Running(pub Child);

impl Running {
    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("the process is ours");
    }

    /// Waits until it has ended, and gives its status.
    pub fn end(&mut self) -> ExitStatus {
        self.0.wait().expect("it is our child")
    }

    pub fn kill(&mut self) {
        self.0.kill().expect("it is our child");
        self.end();
    }

    /// Waits until something holds, which it must not end before.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_until(what, || {
            let ended = self.0.try_wait().expect("it is our child");
            assert_eq!(ended, None, "it ended before {what}");
            holds()
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has mostly ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Live processes with a marker in their arguments or environment, by number.
/// Zombies have neither any more and do not count.
pub fn processes_marked(marker: &str) -> Vec<i32> {
    let own = std::process::id().to_string();
    let holds = |pid: &str, file: &str| {
        let content = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        content
            .windows(marker.len())
            .any(|window| window == marker.as_bytes())
    };
    std::fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)
        .filter(|pid| holds(pid, "cmdline") || holds(pid, "environ"))
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
