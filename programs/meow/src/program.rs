//! `cat` as its users know it: operands in order, messages and exit codes.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use os_display::Quotable;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::stdio::{dup2_stderr, stderr, stdin, stdout};
use toll_probe::buffer::Buffer;
use toll_probe::failure::text;
use toll_probe::program::Request;
use toll_probe::workloads::copy::mover::{CallError, wait_for, write_all};
use toll_wire::CopyMethod;

use crate::by_method;
use crate::copier::{Copier, Step};
use crate::decorate::Decorator;
use crate::ends::End;
use crate::options::{self, Options};
use crate::route::{self, BUFFER_BYTES, Method, Route};

const SUCCESS: i32 = 0;
/// Explanation for a source that ended while its first bytes went through the buffer.
const LEAD_SUFFICED: &str = "too few bytes came for another method";
/// Exit code of `cat` after an error. The only other one is 0.
const FAILURE: i32 = 1;

/// Returns the arguments of a C `main`. `std::env::args_os` has them only if the C
/// library also passes them to the functions of .init_array. glibc does that, musl does
/// not.
///
/// # Safety
/// `words` points to `count` pointers to C strings, or to none if `count` is 0.
pub unsafe fn arguments(count: c_int, words: *const *const c_char) -> Vec<OsString> {
    let count = usize::try_from(count).unwrap_or(0);
    let word = |index| {
        // SAFETY: `index` is below `count`.
        let word = unsafe { words.add(index) };
        // SAFETY: the caller provides `count` pointers.
        let word = unsafe { word.read() };
        // SAFETY: the caller promises that it points to a C string.
        let word = unsafe { CStr::from_ptr(word) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    };
    (0..count).map(word).collect()
}

pub fn run(arguments: Vec<OsString>) -> i32 {
    guard_standard_error();
    let is_posix = std::env::var_os("POSIXLY_CORRECT").is_some();
    let status = match options::parse(arguments, is_posix) {
        Ok(Request::Print(text)) => match write_all(stdout(), text.as_bytes(), &mut 0) {
            Ok(()) => SUCCESS,
            Err(error) => cannot_write(&error),
        },
        Ok(Request::Run(options)) => copy_all(&options),
        Err(complaint) => {
            complain(&format!(
                "{complaint}\nTry 'meow --help' for more information."
            ));
            FAILURE
        }
    };
    // Some file systems report only on close that they could not keep what was written
    // (close(2)).
    match close_standard_output() {
        Err(errno) if status == SUCCESS => cannot_write(&CallError::new("close", errno)),
        _ => status,
    }
}

/// Opens /dev/null in place of a closed standard error. Otherwise the first file opened
/// would take its descriptor and get the messages.
fn guard_standard_error() {
    if fcntl_getfd(stderr()) == Err(Errno::BADF)
        && let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty())
    {
        if null.as_raw_fd() == stderr().as_raw_fd() {
            let _ = rustix::io::fcntl_setfd(&null, FdFlags::empty());
            std::mem::forget(null);
        } else {
            let _ = dup2_stderr(&null);
        }
    }
}

fn close_standard_output() -> Result<(), Errno> {
    // SAFETY: the program ends here and nothing uses the descriptor again.
    if unsafe { libc::close(libc::STDOUT_FILENO) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn copy_all(options: &Options) -> i32 {
    let sink = match End::sink(stdout()) {
        Ok(sink) => sink,
        Err(errno) => {
            complain(&format!("standard output: {}", text_of(errno)));
            return FAILURE;
        }
    };
    let mut cat = Cat {
        options,
        copier: Copier::new(),
        decorator: (!options.decoration.is_plain()).then(|| Decorator::new(options.decoration)),
        sink,
        status: SUCCESS,
    };
    for file in &options.files {
        if let Err(error) = cat.copy_operand(file) {
            return cannot_write(&error);
        }
    }
    match cat.finish() {
        Ok(()) => cat.status,
        Err(error) => cannot_write(&error),
    }
}

struct Cat<'a> {
    options: &'a Options,
    copier: Copier<'a>,
    /// The decorator; `None` if the output equals the input.
    decorator: Option<Decorator>,
    sink: End<'a>,
    status: i32,
}

impl Cat<'_> {
    /// Copies one operand. An error of the operand is reported, so that the next one
    /// can follow.
    fn copy_operand(&mut self, name: &OsStr) -> Result<(), CallError> {
        if name == "-" {
            return self.copy_descriptor(name, stdin());
        }
        match open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => self.copy_descriptor(name, file.as_fd()),
            Err(errno) => {
                self.complain_of(name, text_of(errno));
                Ok(())
            }
        }
    }

    fn copy_descriptor(&mut self, name: &OsStr, fd: BorrowedFd<'_>) -> Result<(), CallError> {
        let source = match End::source(fd) {
            Ok(source) => source,
            Err(errno) => {
                self.complain_of(name, text_of(errno));
                return Ok(());
            }
        };
        if self.sink.would_read_its_own_output(&source) {
            self.complain_of(name, "input file is output file".to_owned());
            return Ok(());
        }
        let copied = match &mut self.decorator {
            None => self.copy_plain(name, &source),
            Some(decorator) => copy_decorated(decorator, &source, &self.sink).map(|()| {
                if self.options.explains {
                    let how = "read and write: the options change what is copied";
                    self.explain(name, &source, how);
                }
            }),
        };
        match copied {
            Err(error) if error.call == "read" => {
                self.complain_of(name, text_of(error.errno.unwrap_or(Errno::IO)));
                Ok(())
            }
            result => result,
        }
    }

    /// Copies one operand by one method. An error is reported, so that the next operand
    /// can follow.
    fn copy_by(&mut self, method: CopyMethod, name: &OsStr, source: &End<'_>) {
        let quoted = name.maybe_quote().to_string();
        match by_method::copy(method, &quoted, source, &self.sink) {
            Ok(how) if self.options.explains => self.explain(name, source, &how),
            Ok(_) => {}
            Err(why) => {
                self.status = FAILURE;
                complain(&why);
            }
        }
    }

    fn copy_plain(&mut self, name: &OsStr, source: &End<'_>) -> Result<(), CallError> {
        if let Some(method) = self.options.method {
            self.copy_by(method, name, source);
            return Ok(());
        }
        let size_bytes = source.size_bytes();
        let route = route::choose(
            source.kind,
            self.sink.kind,
            size_bytes,
            self.options.must_copy,
        );
        let steps = self.copier.copy(source, &self.sink, &route)?;
        if self.options.explains {
            self.explain(name, source, &explanation(&route, &steps));
        }
        Ok(())
    }

    /// Writes what was held back until the next byte.
    fn finish(&mut self) -> Result<(), CallError> {
        let mut output = Vec::new();
        if let Some(decorator) = &mut self.decorator {
            decorator.finish(&mut output);
        }
        write_all(self.sink.fd, &output, &mut 0)
    }

    fn explain(&self, name: &OsStr, source: &End<'_>, how: &str) {
        complain(&format!(
            "{} ({}) to standard output ({}): {how}",
            name.maybe_quote(),
            source.kind.name(),
            self.sink.kind.name()
        ));
    }

    fn complain_of(&mut self, name: &OsStr, why: String) {
        self.status = FAILURE;
        complain(&format!("{}: {why}", name.maybe_quote()));
    }
}

fn copy_decorated(
    decorator: &mut Decorator,
    source: &End<'_>,
    sink: &End<'_>,
) -> Result<(), CallError> {
    // The buffer is page-aligned, as a file opened with O_DIRECT requires (open(2)).
    let mut input = Buffer::untouched(BUFFER_BYTES);
    let mut output = Vec::new();
    let mut calls = 0;
    loop {
        let length = match rustix::io::read(source.fd, input.bytes_mut()) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => {
                wait_for(source.fd, PollFlags::IN);
                continue;
            }
            Err(errno) => return Err(CallError::new("read", errno)),
        };
        output.clear();
        decorator.decorate(&input.bytes()[..length], &mut output);
        write_all(sink.fd, &output, &mut calls)?;
    }
}

/// Describes the chosen route and its reason, what each step moved, and what was
/// refused.
fn explanation(route: &Route, steps: &[Step]) -> String {
    let is_lead_alone = route.lead_bytes > 0 && steps.len() == 1;
    let mut text = if is_lead_alone {
        format!("{}: {LEAD_SUFFICED}", Method::Buffer.name())
    } else {
        format!("{}: {}", route.methods[0].name(), route.why)
    };
    for step in steps {
        // A buffer that moved nothing has only found the source's end.
        let is_check = step.method == Method::Buffer && step.moved.bytes == 0;
        if let Some(errno) = step.refusal {
            let reason = text_of(errno);
            text.push_str(&format!("; {} stopped: {reason}", step.method.name()));
        } else if !is_check || steps.len() == 1 {
            text.push_str(&format!(
                "; {} bytes by {} in {} call{}",
                step.moved.bytes,
                step.method.name(),
                step.moved.calls,
                if step.moved.calls == 1 { "" } else { "s" }
            ));
        }
    }
    text
}

fn cannot_write(error: &CallError) -> i32 {
    let reason = text_of(error.errno.unwrap_or(Errno::IO));
    complain(&format!("write error: {reason}"));
    FAILURE
}

fn complain(message: &str) {
    // The message is written in one call, so that lines of several programs are not
    // mixed. A failure here cannot be reported anywhere.
    let _ = write_all(stderr(), format!("meow: {message}\n").as_bytes(), &mut 0);
}

/// Returns the system's text for an error, without the number that Rust adds.
fn text_of(errno: Errno) -> String {
    text(&errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_c_main_and_not_those_of_the_process() {
        let words = [c"meow", c"-n", c"a\xffb"].map(CStr::as_ptr);
        // SAFETY: there are three pointers to C strings.
        let found = unsafe { arguments(3, words.as_ptr()) };
        let expected = [&b"meow"[..], b"-n", b"a\xffb"].map(OsStr::from_bytes);
        assert_eq!(found, expected);
        // SAFETY: there are no pointers.
        assert!(unsafe { arguments(0, std::ptr::null()) }.is_empty());
    }
}
