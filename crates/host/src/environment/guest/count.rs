//! A guest that counts the instructions of one command.

use std::path::Path;
use std::time::{Duration, Instant};

use toll_wire::guest::{CountedEnd, GuestEvent};

use super::boot::{Boot, Card};
use super::command::{Input, Stream};
use super::disk::{GuestDisk, INITRAMFS};
use super::initramfs;
use super::life::{Gone, Guest, GuestFailure};
use super::machine::{self, Machine};
use super::plugin;
use super::port::Wait;
use super::spec::{Accelerator, GuestSpec};

/// Longest wait for output that a guest has announced.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of bytes of the command's standard error that are kept.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// What a guest counted.
#[derive(Debug)]
pub struct Counted {
    pub end: CountedEnd,
    /// What the plugin wrote.
    pub records: Vec<u8>,
    /// The end of the command's standard error.
    pub errors: Vec<u8>,
}

/// Boots a guest that counts its command, and waits for the result.
pub fn count(
    spec: &GuestSpec,
    directory: &Path,
    timeout: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Counted, GuestFailure> {
    let failed = |why: &dyn std::fmt::Display| {
        GuestFailure::Failed(format!("cannot count in a guest: {why}"))
    };
    let program = machine::program().map_err(GuestFailure::Missing)?;
    let disk = GuestDisk::none(directory);
    initramfs::write(spec, &directory.join(INITRAMFS)).map_err(GuestFailure::Failed)?;
    let boot = Boot {
        spec,
        disk: &disk,
        log: None,
        card: Card::None,
        interrupted,
    };
    let wait = Wait {
        deadline: Instant::now() + timeout,
        interrupted,
    };
    let started = Machine::start(&program, &boot, Accelerator::Icount);
    let (machine, ports) = started.map_err(|error| failed(&error))?;
    let guest = Guest::new(machine, ports, Accelerator::Icount);
    let mut guest = guest.map_err(|error| failed(&error))?;
    let end = match guest.event(&wait) {
        Ok(GuestEvent::Counted(end)) => *end,
        Ok(GuestEvent::Refused(reason)) => return Err(GuestFailure::Failed(reason)),
        Ok(_) => return Err(failed(&"unexpected reply from the guest")),
        Err(Gone::Interrupted) => return Err(GuestFailure::Interrupted),
        Err(Gone::Dead(why)) => return Err(failed(&why)),
        Err(Gone::Silent(why)) => {
            let seconds = timeout.as_secs();
            let advice = "give it longer with --timeout";
            return Err(failed(&format!(
                "it took over {seconds} s; {advice}; {why}"
            )));
        }
    };
    let mut errors = Vec::new();
    let mut taken = [0_u64; 2];
    let deadline = Instant::now() + OUTPUT_PATIENCE;
    while (taken[0] < end.end.output_bytes || taken[1] < end.end.error_bytes)
        && Instant::now() < deadline
        && !interrupted()
    {
        guest.wait_for_something(&Input::None);
        guest.take_output(&mut taken, &mut |stream, bytes| {
            if stream == Stream::Error {
                keep_end(&mut errors, bytes);
            }
        });
    }
    Ok(Counted {
        end,
        records: plugin::take_counts(directory).map_err(|error| failed(&error))?,
        errors,
    })
}

/// Adds bytes and drops the oldest beyond the limit: the guest decides how many it sends.
fn keep_end(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    kept.drain(..kept.len().saturating_sub(ERROR_BYTES_MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_command_writes_without_an_end_the_end_is_kept() {
        let mut kept = Vec::new();
        keep_end(&mut kept, b"begin");
        assert_eq!(kept, b"begin");
        for number in 0..100_u8 {
            keep_end(&mut kept, &[number; 5000]);
            assert!(kept.len() <= ERROR_BYTES_MAX);
        }
        assert_eq!(kept.len(), ERROR_BYTES_MAX);
        assert!(kept.ends_with(&[99; 5000]));
        keep_end(&mut kept, &[7; ERROR_BYTES_MAX + 1]);
        assert_eq!(kept, [7; ERROR_BYTES_MAX]);
    }
}
