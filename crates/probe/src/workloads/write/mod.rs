//! The write workload: writes a buffer to a file until all input is in it.

mod direct;
pub mod pass;
pub mod pattern;
mod rising;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, fsync, open};
use rustix::io::Errno;
use toll_wire::{Durability, Failure, Placement, Request, Sample, TrialData, WriteRequest};

use self::pass::write_pass;
use self::pattern::{Pattern, SEED, SEED_BEFORE, first_difference};
use self::rising::Rising;
use crate::buffer::checked_length;
use crate::clock::times_ns;
use crate::failure;
use crate::meter::{Meter, put};
use crate::scratch::{self, ScratchFile};
use crate::trial::Trial;
use crate::usage::Scope;
use crate::workloads::copy::mover::CallError;

pub fn run(request: &Request, write: &WriteRequest) -> Result<TrialData, Failure> {
    scratch::remove_left_overs(&write.directory);
    let mut writer = Writer::new(write)?;
    let trial = Trial::new(request, Scope::Thread);
    let mut data = trial.repeat(|meter| writer.sample(meter))?;
    writer.verify()?;
    let length = writer.pattern.length();
    data.notes
        .push(format!("random content that repeats after {length} bytes"));
    Ok(data)
}

/// Calls made in a timed region.
struct Calls {
    writes: u64,
    syncs: u64,
}

struct Writer<'a> {
    request: &'a WriteRequest,
    pattern: Pattern,
    /// Passes that each iteration writes before its timed pass.
    rising: Option<Rising>,
    /// The file of the last iteration, or the file that all iterations overwrite.
    scratch: ScratchFile,
}

impl<'a> Writer<'a> {
    fn new(request: &'a WriteRequest) -> Result<Self, Failure> {
        let length = checked_length(request.buffer_bytes)?;
        let scratch = ScratchFile::create(&request.directory)?;
        if request.durability == Durability::ODirect {
            direct::check_alignment(scratch.file(), request)?;
        }
        let writer = Self {
            request,
            pattern: Pattern::new(length, request.input_bytes, SEED),
            rising: match request.placement {
                Placement::Rising => Some(Rising::new(request)?),
                Placement::Overwrite | Placement::Append => None,
            },
            scratch,
        };
        if request.placement == Placement::Overwrite {
            writer.allocate()?;
        }
        Ok(writer)
    }

    /// Fills the file, so that its blocks exist and are on the device.
    fn allocate(&self) -> Result<(), Failure> {
        let before = Pattern::new(1 << 20, self.request.input_bytes, SEED_BEFORE);
        let file = self.scratch.file();
        before
            .lay(file, self.request.input_bytes)
            .map_err(|error| self.failed("fill", &error))?;
        if self.request.durability == Durability::ODirect {
            // A direct write would pay for evicting cached pages.
            fadvise(file, 0, None, Advice::DontNeed)
                .map_err(|errno| self.failed("fill", &errno.into()))?;
        }
        Ok(())
    }

    fn sample(&mut self, meter: &mut Meter) -> Result<Sample, Failure> {
        if self.request.placement != Placement::Overwrite {
            self.scratch.renew()?;
        }
        let fd = self.open()?;
        if let Some(rising) = &self.rising {
            let written = rising.write(fd.as_fd());
            written.map_err(|error| self.pass_failure(error))?;
        }
        let started_ns = times_ns();
        let (calls, measured) = meter.measure(|| self.write_all(&fd))?;
        let tick_duration_ns = times_ns() - started_ns;
        let calls = calls?;
        // A wait would count as work: `times` counts whole ticks, from which it cannot be
        // subtracted.
        let has_ticks = self.rising.is_some() && measured.idle_ns == 0;
        if matches!(
            self.request.durability,
            Durability::None | Durability::ODirect
        ) {
            // The next iteration must not pay for this one's dirty pages.
            fdatasync(&fd).map_err(|errno| self.failed("sync", &errno.into()))?;
        }
        self.check_length()?;
        let mut sample = measured.into_sample_of("bytes_written", self.request.input_bytes);
        put(&mut sample, "calls", calls.writes as f64);
        put(&mut sample, "sync_calls", calls.syncs as f64);
        if has_ticks {
            put(&mut sample, "tick_duration_ns", tick_duration_ns as f64);
        }
        Ok(sample)
    }

    fn open(&self) -> Result<OwnedFd, Failure> {
        let flag = match self.request.durability {
            Durability::None | Durability::Fsync | Durability::Fdatasync => OFlags::empty(),
            Durability::OSync => OFlags::SYNC,
            Durability::ODsync => OFlags::DSYNC,
            Durability::ODirect => OFlags::DIRECT,
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | flag;
        open(self.scratch.path(), flags, Mode::empty()).map_err(|errno| {
            if errno == Errno::INVAL && self.request.durability == Durability::ODirect {
                return failure::unsupported(format!(
                    "cannot open a file in {} with O_DIRECT: the file system does not \
                     support it; choose another durability",
                    self.request.directory.display()
                ));
            }
            self.failed("open", &errno.into())
        })
    }

    fn write_all(&self, fd: &OwnedFd) -> Result<Calls, Failure> {
        let input_bytes = self.request.input_bytes;
        let written = write_pass(fd.as_fd(), input_bytes, |offset| {
            self.pattern.piece(offset, input_bytes - offset)
        });
        let mut calls = Calls {
            writes: written.map_err(|error| self.pass_failure(error))?,
            syncs: 0,
        };
        let synced = match self.request.durability {
            Durability::Fsync => fsync(fd),
            Durability::Fdatasync => fdatasync(fd),
            _ => return Ok(calls),
        };
        synced.map_err(|errno| self.failed("sync", &errno.into()))?;
        calls.syncs = 1;
        Ok(calls)
    }

    fn pass_failure(&self, error: CallError) -> Failure {
        let is_direct = self.request.durability == Durability::ODirect;
        if is_direct && error.is_refusal && error.errno == Some(Errno::INVAL) {
            return failure::unsupported(format!(
                "cannot write {} bytes at a time with O_DIRECT in {}: invalid argument; \
                 choose a multiple of the device's block size",
                self.request.buffer_bytes,
                self.request.directory.display()
            ));
        }
        self.failed(error.call, &error.into())
    }

    fn check_length(&self) -> Result<(), Failure> {
        let metadata = self.scratch.file().metadata();
        let length = metadata
            .map_err(|error| self.failed("check", &error))?
            .len();
        if length == self.request.input_bytes {
            return Ok(());
        }
        Err(self.distrust(&format!(
            "it has {length} bytes instead of {}",
            self.request.input_bytes
        )))
    }

    fn verify(&self) -> Result<(), Failure> {
        let (file, bytes) = (self.scratch.file(), self.request.input_bytes);
        match first_difference(file, bytes, |_| &self.pattern) {
            Ok(None) => Ok(()),
            Ok(Some(at)) => Err(self.distrust(&format!("its content differs after byte {at}"))),
            Err(error) => Err(self.failed("read back", &error)),
        }
    }

    fn distrust(&self, why: &str) -> Failure {
        failure::failed(format!(
            "cannot trust the written file: {why}; the kernel or a device loses data"
        ))
    }

    fn failed(&self, action: &str, error: &io::Error) -> Failure {
        failure::failed_to(
            &format!("{action} a file in {}", self.request.directory.display()),
            error,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn content_that_changed_on_the_way_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let request = WriteRequest {
            directory: directory.path().to_owned(),
            buffer_bytes: 1_000,
            input_bytes: 10_001,
            ..WriteRequest::default()
        };
        let writer = Writer::new(&request).unwrap();
        assert!(
            writer.verify().is_err(),
            "the previous content was accepted as new"
        );
        writer.write_all(&writer.open().unwrap()).unwrap();
        writer.verify().unwrap();
        let file = writer.scratch.file();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 10_000).unwrap();
        file.write_all_at(&[!byte[0]], 10_000).unwrap();
        let failure = writer.verify().unwrap_err();
        assert!(
            failure.message.starts_with("cannot trust the written file"),
            "{failure:?}"
        );
        file.set_len(10_000).unwrap();
        assert!(writer.check_length().is_err());
    }
}
