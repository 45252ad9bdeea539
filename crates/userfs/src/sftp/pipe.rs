//! The pipe to ssh, on which a write that makes no progress at all ends
//! after a time: a server that has stopped reading fills every buffer on the
//! way, and the writer would wait for ever.

use std::fs::File;
use std::io::{IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

/// Bytes of a file that are copied at a time where the kernel cannot pass its
/// pages on.
const COPY_BYTES: usize = 128 << 10;

/// Where what is sent goes.
pub(super) trait Output: Write + Send {
    /// Writes a part of a file, and zeros where that ends before.
    fn write_file(&mut self, file: &File, offset: u64, bytes: usize) -> std::io::Result<()> {
        let mut buffer = vec![0; bytes.min(COPY_BYTES)];
        let mut done = 0;
        while done < bytes {
            let length = buffer.len().min(bytes - done);
            let piece = &mut buffer[..length];
            let read = file.read_at(piece, offset + done as u64)?;
            if read == 0 {
                piece.fill(0);
            }
            let written = if read == 0 { length } else { read };
            self.write_all(&piece[..written])?;
            done += written;
        }
        Ok(())
    }
}

/// The writing end of a pipe.
pub(super) struct PatientPipe {
    pipe: OwnedFd,
    patience: Duration,
}

impl PatientPipe {
    pub fn new(pipe: OwnedFd, patience: Duration) -> std::io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe, patience })
    }

    fn wait_for_room(&self) -> std::io::Result<()> {
        let timeout = Timespec::try_from(self.patience).ok();
        let mut polled = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::OUT)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => Err(std::io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Output for PatientPipe {
    /// Lets the pipe have the file's pages, without a copy.
    fn write_file(&mut self, file: &File, offset: u64, bytes: usize) -> std::io::Result<()> {
        let (mut at, end) = (offset, offset + bytes as u64);
        while at < end {
            let left = usize::try_from(end - at).expect("it is no more than all");
            let flags = SpliceFlags::NONBLOCK;
            match splice(file, Some(&mut at), &self.pipe, None, left, flags) {
                Ok(0) => return self.write_all(&vec![0; left]),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room()?,
                // The file system of the file has no such way.
                Err(Errno::INVAL) => return Copying(self).write_file(file, at, left),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A pipe into which files are copied.
struct Copying<'a>(&'a mut PatientPipe);

impl Output for Copying<'_> {}

impl Write for Copying<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Write for PatientPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
        loop {
            match rustix::io::writev(&self.pipe, slices) {
                Ok(written) => return Ok(written),
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_write_waits_for_room_and_goes_on() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut pipe = PatientPipe::new(writer.into(), Duration::from_secs(60)).unwrap();
        let content = vec![7; 1 << 20];
        let expected = content.len();
        let thread = std::thread::spawn(move || pipe.write_all(&content));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        thread.join().unwrap().unwrap();
        assert_eq!(read.len(), expected);
    }

    #[test]
    fn a_part_of_a_file_arrives_with_zeros_behind_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        file.write_all(&content).unwrap();
        let mut expected = content[5..].to_vec();
        expected.resize(2 << 20, 0);
        for copies in [false, true] {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut pipe = PatientPipe::new(writer.into(), Duration::from_secs(60)).unwrap();
            let file = file.try_clone().unwrap();
            let thread = std::thread::spawn(move || match copies {
                false => pipe.write_file(&file, 5, 2 << 20),
                true => Copying(&mut pipe).write_file(&file, 5, 2 << 20),
            });
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            thread.join().unwrap().unwrap();
            assert!(read == expected, "{copies}");
        }
    }

    #[test]
    fn a_write_that_nobody_reads_ends() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut pipe = PatientPipe::new(writer.into(), Duration::from_millis(1)).unwrap();
        let error = pipe.write_all(&vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(reader);
    }
}
