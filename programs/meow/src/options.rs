//! Parses the command line.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use lexopt::Arg;
use toll_probe::program::Request;
use toll_wire::{CopyMethod, from_word, words};

use crate::decorate::{Decoration, Numbering};

pub const HELP: &str = "\
Usage: meow [OPTION]... [FILE]...
Concatenate FILE(s) to standard output, by the fastest correct method for both.

With no FILE, or when FILE is -, read standard input.

  -A, --show-all           equivalent to -vET
  -b, --number-nonblank    number nonempty output lines, overrides -n
  -e                       equivalent to -vE
  -E, --show-ends          display $ or ^M$ at end of each line
  -n, --number             number all output lines
  -s, --squeeze-blank      suppress repeated empty output lines
  -t                       equivalent to -vT
  -T, --show-tabs          display TAB characters as ^I
  -u                       (ignored)
  -v, --show-nonprinting   use ^ and M- notation, except for LFD and TAB
      --copy               never hand over pages of a file, only copies of them
      --method METHOD      use only this method, and fail where it is refused
      --explain            explain on standard error how each FILE was copied
      --help               display this help and exit
      --version            output version information and exit

METHOD is one that toll measures: byte, page, page-aligned, fs-block, swept,
fcntl-dupfd, advised, advised-random, readv, mmap, sendfile, splice, vmsplice,
copy-file-range or io-uring. Called as mycat1 to mycat6, meow copies by the
first six.

Without --copy, what is sent to a pipe or a socket may be the file's own pages
in memory: if the file changes before the reader takes them, the reader gets
the change. With --copy the reader gets what meow has read.

Examples:
  meow f - g  Output f's contents, then standard input, then g's contents.
  meow        Copy standard input to standard output.
";

/// Long options, and their short letters.
const LONG: &[(&str, Option<char>)] = &[
    ("copy", None),
    ("explain", None),
    ("help", None),
    ("method", None),
    ("number", Some('n')),
    ("number-nonblank", Some('b')),
    ("show-all", Some('A')),
    ("show-ends", Some('E')),
    ("show-nonprinting", Some('v')),
    ("show-tabs", Some('T')),
    ("squeeze-blank", Some('s')),
    ("version", None),
];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How lines are decorated; the default is plain copying.
    pub decoration: Decoration,
    /// Whether the reader must never receive pages that it would share with a file.
    pub must_copy: bool,
    pub explains: bool,
    /// The only method to try; `None` for the usual choice.
    pub method: Option<CopyMethod>,
    /// The operands in order; never empty.
    pub files: Vec<OsString>,
}

/// Parses the arguments, which begin with the program's name. If `is_posix`, the first
/// operand ends the options, as the environment variable `POSIXLY_CORRECT` requests.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    is_posix: bool,
) -> Result<Request<Options>, String> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options {
        method: method_of_program(&program),
        ..Options::default()
    };
    loop {
        let argument = match parser.next() {
            Ok(Some(argument)) => argument,
            Ok(None) => break,
            // After a letter that takes no value, the next character is another letter
            // in the same argument.
            Err(lexopt::Error::UnexpectedValue { .. }) => return Err(invalid_letter('=')),
            Err(error) => return Err(error.to_string()),
        };
        match argument {
            Arg::Short(letter) => apply_short(&mut options, letter)?,
            Arg::Long(name) => {
                let name = name.to_owned();
                let attached = parser.optional_value();
                match long_option(&name, attached.as_deref())? {
                    "help" => return Ok(Request::Print(HELP.to_owned())),
                    "version" => return Ok(Request::version("meow")),
                    "method" => {
                        let value = attached.map_or_else(|| parser.value(), Ok);
                        let value = value.map_err(|_| "option '--method' requires an argument")?;
                        options.method = Some(method(&value)?);
                    }
                    name => apply_long(&mut options, name),
                }
            }
            Arg::Value(file) => {
                options.files.push(file);
                if is_posix && let Ok(rest) = parser.raw_args() {
                    options.files.extend(rest);
                }
            }
        }
    }
    if options.files.is_empty() {
        options.files.push("-".into());
    }
    if options.method.is_some() && !options.decoration.is_plain() {
        return Err(
            "a method copies bytes unchanged; leave out --method or the formatting options".into(),
        );
    }
    Ok(Request::Run(options))
}

/// Resolves a long option, or an unambiguous prefix of one; only `method` takes a value.
fn long_option(name: &str, value: Option<&OsStr>) -> Result<&'static str, String> {
    let given = match value {
        Some(value) => format!("{name}={}", value.display()),
        None => name.to_owned(),
    };
    let full = full_name(name, &given)?;
    match value {
        Some(_) if full != "method" => Err(format!("option '--{full}' doesn't allow an argument")),
        _ => Ok(full),
    }
}

/// Returns the methods by their names in experiments, except the method that is another
/// program.
fn methods() -> impl Iterator<Item = &'static str> {
    words::<CopyMethod>()
        .iter()
        .copied()
        .filter(|name| *name != "system-cat")
}

fn method(name: &OsStr) -> Result<CopyMethod, String> {
    let found = methods().find(|known| name == *known);
    found.and_then(from_word).ok_or_else(|| {
        format!(
            "there is no method '{}'; choose one of {}",
            name.display(),
            methods().collect::<Vec<_>>().join(", ")
        )
    })
}

/// Returns the method of a program that MeowLab names. `mycat1` to `mycat6` are the
/// first six methods, in this order.
fn method_of_program(program: &OsStr) -> Option<CopyMethod> {
    let name = Path::new(program).file_name()?.to_str()?;
    let number: usize = name.strip_prefix("mycat")?.parse().ok()?;
    from_word(methods().take(6).nth(number.checked_sub(1)?)?)
}

fn full_name(name: &str, given: &str) -> Result<&'static str, String> {
    let names = || LONG.iter().map(|(long, _)| *long);
    if let Some(exact) = names().find(|long| *long == name) {
        return Ok(exact);
    }
    let candidates: Vec<&str> = names().filter(|long| long.starts_with(name)).collect();
    match candidates[..] {
        [] => Err(format!("unrecognized option '--{given}'")),
        [single] => Ok(single),
        _ => {
            let listed = candidates.iter().map(|long| format!("'--{long}'"));
            let listed = listed.collect::<Vec<_>>().join(" ");
            Err(format!(
                "option '--{given}' is ambiguous; possibilities: {listed}"
            ))
        }
    }
}

fn apply_short(options: &mut Options, letter: char) -> Result<(), String> {
    match letter {
        'e' => {
            apply_short(options, 'v')?;
            apply_short(options, 'E')
        }
        't' => {
            apply_short(options, 'v')?;
            apply_short(options, 'T')
        }
        // Output is never held back, so this option changes nothing.
        'u' => Ok(()),
        _ => {
            let long = LONG.iter().find(|(_, short)| *short == Some(letter));
            let (long, _) = long.ok_or_else(|| invalid_letter(letter))?;
            apply_long(options, long);
            Ok(())
        }
    }
}

fn invalid_letter(letter: char) -> String {
    format!("invalid option -- '{letter}'")
}

fn apply_long(options: &mut Options, name: &str) {
    let decoration = &mut options.decoration;
    match name {
        "copy" => options.must_copy = true,
        "explain" => options.explains = true,
        "number" if decoration.numbering == Numbering::None => {
            decoration.numbering = Numbering::All;
        }
        "number" => {}
        "number-nonblank" => decoration.numbering = Numbering::NonBlank,
        "show-all" => {
            decoration.shows_nonprinting = true;
            decoration.shows_ends = true;
            decoration.shows_tabs = true;
        }
        "show-ends" => decoration.shows_ends = true,
        "show-nonprinting" => decoration.shows_nonprinting = true,
        "show-tabs" => decoration.shows_tabs = true,
        "squeeze-blank" => decoration.squeezes_blank = true,
        _ => unreachable!("every long option has an effect"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        let arguments = ["meow"].iter().chain(arguments);
        match parse(arguments.map(OsString::from), false).unwrap() {
            Request::Run(options) => options,
            Request::Print(text) => panic!("{text}"),
        }
    }

    fn complaint(argument: &str) -> String {
        parse(["meow", argument].map(OsString::from), false).unwrap_err()
    }

    #[test]
    fn a_method_is_given_by_an_option_or_by_the_programs_name() {
        assert_eq!(
            options(&["--method", "mmap"]).method,
            Some(CopyMethod::Mmap)
        );
        assert_eq!(options(&["--meth=byte"]).method, Some(CopyMethod::Byte));
        assert!(complaint("--method=fast").contains("choose one of byte, page, "));
        let of = |program: &str| method_of_program(OsStr::new(program));
        assert_eq!(of("./mycat1"), Some(CopyMethod::Byte));
        assert_eq!(of("/usr/bin/mycat6"), Some(CopyMethod::FcntlDupfd));
        for other in ["meow", "mycat", "mycat0", "mycat7", "cat2"] {
            assert_eq!(of(other), None, "{other}");
        }
        let both = ["mycat2", "-n"].map(OsString::from);
        assert!(parse(both, false).unwrap_err().contains("leave out"));
    }

    #[test]
    fn every_long_option_and_method_is_in_the_help() {
        for (long, _) in LONG {
            assert!(HELP.contains(&format!("--{long} ")), "{long}");
        }
        let (_, named) = HELP.split_once("METHOD is one").unwrap();
        let named: Vec<&str> = named.split([' ', ',', '.', '\n']).collect();
        for method in methods() {
            assert!(named.contains(&method), "{method}");
        }
    }
}
