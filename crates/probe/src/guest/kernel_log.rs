//! What the guest's kernel said during a trial.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Longest record that the kernel gives (`PRINTKRB_RECORD_MAX` in
/// kernel/printk/printk.c).
const RECORD_BYTES_MAX: usize = 8192;

/// Most records looked through; a kernel that says more has other troubles.
const RECORDS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct KernelLog {
    file: Option<File>,
}

impl KernelLog {
    /// From now on. Kernels without a log give none.
    pub fn from_now() -> Self {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        Self { file: file.ok() }
    }

    /// The first line since then that tells of a process killed for memory.
    pub fn out_of_memory(mut self) -> Option<String> {
        let file = self.file.as_mut()?;
        let mut record = vec![0_u8; RECORD_BYTES_MAX];
        for _ in 0..RECORDS_MAX {
            let count = match file.read(&mut record) {
                Ok(count) => count,
                // Records that were overwritten before they were read.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
                Err(_) => return None,
            };
            let text = String::from_utf8_lossy(&record[..count]);
            if let Some(line) = killed_for_memory(&text) {
                return Some(line.to_owned());
            }
        }
        None
    }
}

/// The message of a record `priority,number,time,flags;message`
/// (Documentation/ABI/testing/dev-kmsg), if it tells of a process killed for
/// memory (`__oom_kill_process` in mm/oom_kill.c).
fn killed_for_memory(record: &str) -> Option<&str> {
    let (_, message) = record.lines().next()?.split_once(';')?;
    message
        .to_ascii_lowercase()
        .contains("out of memory: killed process")
        .then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_for_memory_is_found_among_records() {
        let record = "3,412,9001,-;Out of memory: Killed process 74 (init) total-vm:9kB\n SUB=x\n";
        assert_eq!(
            killed_for_memory(record),
            Some("Out of memory: Killed process 74 (init) total-vm:9kB")
        );
        assert_eq!(killed_for_memory("6,1,2,-;Linux version 6.12\n"), None);
        assert_eq!(killed_for_memory(""), None);
        let group = "3,1,2,-;Memory cgroup out of memory: Killed process 3 (x)";
        assert!(killed_for_memory(group).is_some());
    }
}
