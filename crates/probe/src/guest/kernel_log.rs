//! Messages of the guest's kernel during a trial.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Longest record that the kernel returns (`PRINTKRB_RECORD_MAX` in
/// kernel/printk/printk.c).
const RECORD_BYTES_MAX: usize = 8192;

/// Maximum number of records to search; a kernel that logs more has other
/// problems.
const RECORDS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct KernelLog {
    file: Option<File>,
}

impl KernelLog {
    /// Starts at the present end of the log. A kernel without a log yields no
    /// lines.
    pub fn from_now() -> Self {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        Self { file: file.ok() }
    }

    /// Returns the first line since [`Self::from_now`] that reports a process killed for lack of
    /// memory.
    pub fn out_of_memory(self) -> Option<String> {
        self.lines().find(|line| tells_of_kill_for_memory(line))
    }

    /// Returns the last line since [`Self::from_now`].
    pub fn last_line(self) -> Option<String> {
        self.lines().last()
    }

    fn lines(mut self) -> impl Iterator<Item = String> {
        let mut record = vec![0_u8; RECORD_BYTES_MAX];
        let read = move |_| match self.file.as_mut()?.read(&mut record) {
            Ok(count) => Some(message_of(&String::from_utf8_lossy(&record[..count]))),
            // Records were overwritten before they were read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => Some(None),
            Err(_) => None,
        };
        (0..RECORDS_MAX).map_while(read).flatten()
    }
}

/// Returns the message of a record `priority,number,time,flags;message`
/// (Documentation/ABI/testing/dev-kmsg).
fn message_of(record: &str) -> Option<String> {
    let (_, message) = record.lines().next()?.split_once(';')?;
    Some(message.to_owned())
}

/// Whether a message is the one that `__oom_kill_process` in mm/oom_kill.c
/// prints.
fn tells_of_kill_for_memory(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("out of memory: killed process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_for_memory_is_found_among_records() {
        let record = "3,412,9001,-;Out of memory: Killed process 74 (init) total-vm:9kB\n SUB=x\n";
        let message = message_of(record).unwrap();
        assert_eq!(
            message,
            "Out of memory: Killed process 74 (init) total-vm:9kB"
        );
        assert!(tells_of_kill_for_memory(&message));
        assert!(!tells_of_kill_for_memory("Linux version 6.12"));
        assert_eq!(message_of(""), None);
        let group = "Memory cgroup out of memory: Killed process 3 (x)";
        assert!(tells_of_kill_for_memory(group));
    }
}
