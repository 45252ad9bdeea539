//! Processes that run alongside a test.

use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Longest time that any one command of the tests may take. It is far above what they need, even
/// emulated on a busy machine; it only keeps a hang from stopping the whole suite.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// A `toll` that runs in the background; it does not outlive its test.
pub struct Running(pub Child);

impl Running {
    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("the process is ours");
    }

    /// Waits until the process has ended, and returns its status.
    pub fn end(&mut self) -> ExitStatus {
        self.0.wait().expect("it is our child")
    }

    pub fn kill(&mut self) {
        self.0.kill().expect("it is our child");
        self.end();
    }

    /// Waits until a condition holds; fails if the process ends before that.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_until(what, || {
            let ended = self.0.try_wait().expect("it is our child");
            assert_eq!(ended, None, "the process ended before {what}");
            holds()
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Usually it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program with empty standard input to its end; kills it and fails if it takes too long.
#[track_caller]
pub fn output_within(command: &mut Command, patience: Duration) -> Output {
    command.stdin(Stdio::null());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let process = process.expect("the process is ours");
    let (has_ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let is_late = end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if is_late {
            // The process may have just ended.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        is_late
    });
    let output = child.wait_with_output().expect("it is our child");
    drop(has_ended);
    let is_late = watch.join().expect("the watching thread does not panic");
    assert!(
        !is_late,
        "{command:?} took longer than {patience:?}: {output:?}"
    );
    output
}

/// Waits until a condition holds; fails after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the process IDs of all other live processes with a marker in their arguments or
/// environment. Zombies no longer have either, and do not count.
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
