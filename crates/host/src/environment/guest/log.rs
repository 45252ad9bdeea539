//! Collects the output of a guest's console, and of QEMU.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes of a log that are kept, from its end.
const LOG_BYTES_MAX: usize = 256 << 10;

/// Maximum number of bytes of a log that are written to a file.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Number of log lines that are shown for a guest that died.
const LAST_LINES: usize = 6;

/// Number of lines that are searched for the cause of a death.
const SEARCHED_LINES: usize = 400;

/// What the kernel prints about serious faults, the worst first.
const CAUSES: [&str; 5] = [
    "Kernel panic",
    "BUG: ",
    "Oops: ",
    "KASAN: ",
    "Out of memory",
];

/// How a guest's kernel was stopped from within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    PoweredOff,
    Halted,
    Rebooted,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PoweredOff => "the guest was powered off",
            Self::Halted => "the guest's kernel was halted",
            Self::Rebooted => "the guest was rebooted",
        })
    }
}

/// Last lines of a kernel that stops (kernel/reboot.c). microvm has no ACPI to power the machine
/// off, so QEMU keeps running with a CPU that waits forever.
const STOPS: [(&[u8], Stop); 4] = [
    (b"reboot: Power off not available", Stop::PoweredOff),
    (b"reboot: Power down", Stop::PoweredOff),
    (b"reboot: System halted", Stop::Halted),
    (b"reboot: Restarting system", Stop::Rebooted),
];

/// Length of the longest text in [`STOPS`].
const STOP_BYTES_MAX: usize = 31;

/// What the kernel prints when it has killed a process for lack of memory (mm/oom_kill.c).
const OUT_OF_MEMORY: &str = "ut of memory: Killed process";

/// Longest wait for the rest of a log whose writer has ended.
const REST_PATIENCE: Duration = Duration::from_secs(10);

/// A growing log, of which a limited part is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    kept: Arc<Mutex<VecDeque<u8>>>,
    is_complete: Arc<AtomicBool>,
    stop: Arc<OnceLock<Stop>>,
}

impl Log {
    /// Collects the content of a stream until it ends, in a thread, so that the writer never waits.
    /// If there is a file, all content up to a limit is also written there.
    pub fn collect(mut stream: impl Read + Send + 'static, file: Option<File>) -> Self {
        let log = Self::default();
        let kept = log.clone();
        std::thread::spawn(move || {
            let mut chunk = [0_u8; 4096];
            let mut written = 0;
            while let Ok(count @ 1..) = stream.read(&mut chunk) {
                kept.push(&chunk[..count]);
                if let Some(mut file) = file.as_ref().filter(|_| written < FILE_BYTES_MAX) {
                    written += count;
                    // A full disk does not end the guest.
                    let _ = file.write_all(&chunk[..count]);
                }
            }
            kept.is_complete.store(true, Ordering::Release);
        });
        log
    }

    /// Returns the whole text, once the writer has ended.
    pub fn complete_text(&self) -> String {
        let deadline = Instant::now() + REST_PATIENCE;
        while !self.is_complete.load(Ordering::Acquire) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.text()
    }

    /// How the kernel was stopped, if the log reports that.
    pub fn stop(&self) -> Option<Stop> {
        self.stop.get().copied()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        // The line may have begun in earlier bytes.
        let begin = kept.len().saturating_sub(bytes.len() + STOP_BYTES_MAX);
        let recent: Vec<u8> = kept.range(begin..).copied().collect();
        let has = |words: &[u8]| recent.windows(words.len()).any(|here| here == words);
        if let Some((_, stop)) = STOPS.iter().find(|(words, _)| has(words)) {
            self.stop.get_or_init(|| *stop);
        }
        let excess = kept.len().saturating_sub(LOG_BYTES_MAX);
        kept.drain(..excess);
    }

    /// The text so far, without carriage returns and other control characters.
    pub fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes)
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect()
    }
}

/// Whether the kernel killed a process because no memory was left.
pub fn names_lack_of_memory(log: &str) -> bool {
    log.contains(OUT_OF_MEMORY)
}

/// Whether a log reports a panic.
pub(super) fn names_panic(log: &str) -> bool {
    log.contains(CAUSES[0])
}

/// Joins the last lines of a log, preceded by the earlier line that names the
/// cause, if there is one.
pub(super) fn last_words(log: &str) -> String {
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let before = &lines[..lines.len() - last.len()];
    let searched = &before[before.len().saturating_sub(SEARCHED_LINES)..];
    let cause = CAUSES
        .iter()
        .find_map(|word| searched.iter().find(|line| line.contains(word)));
    let mut shown: Vec<&str> = Vec::new();
    if let Some(cause) = cause {
        shown.extend([*cause, "…"]);
    }
    shown.extend(last);
    if shown.is_empty() {
        "nothing".into()
    } else {
        shown.join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_end() {
        let log = Log::default();
        log.push(b"the beginning\n");
        for _ in 0..100 {
            log.push(&[b'x'; 4096]);
        }
        log.push(b"\r\n\x1b[7mthe end\n");
        let text = log.text();
        assert!(text.len() <= LOG_BYTES_MAX);
        assert!(!text.contains("the beginning"));
        assert!(
            text.ends_with("\n[7mthe end\n"),
            "{}",
            &text[text.len() - 20..]
        );
    }

    #[test]
    fn how_a_kernel_was_stopped_is_noticed_however_its_line_comes() {
        let log = Log::default();
        log.push(b"[    3.2] reboot: Sys");
        assert_eq!(log.stop(), None);
        log.push(b"tem halted\r\n");
        assert_eq!(log.stop(), Some(Stop::Halted));
        for (line, stop) in [
            ("reboot: Power down", Stop::PoweredOff),
            (
                "reboot: Power off not available: System halted instead",
                Stop::PoweredOff,
            ),
            ("reboot: Restarting system", Stop::Rebooted),
        ] {
            let log = Log::default();
            log.push(line.as_bytes());
            assert_eq!(log.stop(), Some(stop), "{line}");
        }
    }

    #[test]
    fn the_cause_of_a_death_is_among_its_last_words() {
        assert_eq!(last_words(""), "nothing");
        assert_eq!(last_words("one\n\ntwo\n"), "one | two");
        let mut text = String::from("[1] Kernel panic - not syncing: no init\n[1] BUG: x\n");
        for number in 0..20 {
            text.push_str(&format!("[2] trace {number}\n"));
        }
        let words = last_words(&text);
        assert!(words.starts_with("[1] Kernel panic - not syncing: no init | … | [2] trace 14"));
        assert!(words.ends_with("[2] trace 19"), "{words}");
    }
}
