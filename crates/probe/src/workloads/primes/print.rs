//! Prints as the published program did: through the C library.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;

use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::Failure;

use crate::failure::{self, OrFail};

/// A stream of the C library on a pipe, and the pipe's other end.
pub struct Printer {
    stream: NonNull<libc::FILE>,
    reader: Option<std::fs::File>,
}

impl Printer {
    /// Makes a stream on a pipe that is read after each print.
    pub fn on_pipe() -> Result<Self, Failure> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).failed_to("print the count")?;
        let mut printer = Self::on(writer)?;
        printer.reader = Some(reader.into());
        Ok(printer)
    }

    pub fn on(descriptor: OwnedFd) -> Result<Self, Failure> {
        // SAFETY: the descriptor is open, and the mode ends with a zero byte.
        let stream = unsafe { libc::fdopen(descriptor.as_raw_fd(), c"w".as_ptr()) };
        let stream = NonNull::new(stream).ok_or_else(|| cannot(&io::Error::last_os_error()))?;
        // From here on the stream closes the descriptor.
        let _ = descriptor.into_raw_fd();
        Ok(Self {
            stream,
            reader: None,
        })
    }

    /// Prints a line with a number (`fprintf`) and flushes it (`fflush`), as
    /// the C library does at a terminal.
    pub fn print(&mut self, number: u64) -> Result<(), Failure> {
        let stream = self.stream.as_ptr();
        // SAFETY: the stream is open, and the format takes one number of this
        // type.
        let printed = unsafe { libc::fprintf(stream, c"%llu\n".as_ptr(), number) };
        // SAFETY: the stream is open.
        let flushed = unsafe { libc::fflush(stream) };
        if printed > 0 && flushed == 0 {
            Ok(())
        } else {
            Err(cannot(&io::Error::last_os_error()))
        }
    }

    /// Reads the line that was printed last, untimed, and checks it.
    pub fn check(&mut self, primes: u64) -> Result<(), Failure> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let mut line = [0; 32];
        let length = reader.read(&mut line).failed_to("print the count")?;
        if line[..length] == *format!("{primes}\n").as_bytes() {
            return Ok(());
        }
        Err(failure::failed(format!(
            "cannot trust the printed count: it is {:?} instead of {primes}; see the kernel log",
            String::from_utf8_lossy(&line[..length])
        )))
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // SAFETY: the stream is open, and nothing uses it after this.
        unsafe { libc::fclose(self.stream.as_ptr()) };
    }
}

fn cannot(error: &io::Error) -> Failure {
    failure::failed_to("print the count", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let mut printer = Printer::on_pipe().unwrap();
        for primes in [0, 7, u64::MAX] {
            printer.print(primes).unwrap();
            printer.check(primes).unwrap();
        }
        printer.print(4).unwrap();
        assert!(printer.check(5).is_err());
    }
}
