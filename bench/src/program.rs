//! How each program is told what to copy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::case::{Case, Sink, Source};

/// Name of the program that is compared with the others.
pub(crate) const MEOW: &str = "meow";
/// Name of the same program in the role of another.
pub(crate) const TWIN: &str = "meow (twin)";
/// Name of GNU `cat`, of which a claim is made.
pub(crate) const GNU_CAT: &str = "GNU cat";

/// How a program takes its source and its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Convention {
    /// `cat [FILE]`: a path or standard input, to standard output.
    Cat,
    /// `dd if=FILE of=FILE`.
    Dd,
    /// `cp FILE FILE`.
    Cp,
}

/// A program on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    /// Arguments before those that name the source.
    pub(crate) leading: &'static [&'static str],
    pub(crate) convention: Convention,
    pub(crate) version: String,
}

/// The arguments for a case, and whether standard output is the sink.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) writes_stdout: bool,
}

impl Program {
    /// How to do a case; `None` if this program cannot.
    pub(crate) fn invocation(&self, case: Case, source: &Path, sink: &Path) -> Option<Invocation> {
        let mut arguments: Vec<OsString> = self.leading.iter().map(OsString::from).collect();
        let writes_stdout = match self.convention {
            Convention::Cat => {
                if case.source() == Source::File {
                    arguments.push(source.into());
                }
                true
            }
            Convention::Dd => dd(case, source, sink, &mut arguments),
            Convention::Cp => {
                arguments.push(match case.source() {
                    Source::File => source.into(),
                    Source::Pipe => "/dev/stdin".into(),
                });
                arguments.push(match case.sink() {
                    Sink::Null => "/dev/null".into(),
                    Sink::PipeRead | Sink::PipeSplice => "/dev/stdout".into(),
                    Sink::File => sink.into(),
                    // A socket cannot be opened by its name in /proc (ENXIO).
                    Sink::Tcp => return None,
                });
                matches!(case.sink(), Sink::PipeRead | Sink::PipeSplice)
            }
        };
        Some(Invocation {
            arguments,
            writes_stdout,
        })
    }
}

/// Adds the operands of `dd` and tells whether it writes standard output.
fn dd(case: Case, source: &Path, sink: &Path, arguments: &mut Vec<OsString>) -> bool {
    let operand = |name: &str, path: &Path| {
        let mut operand = OsString::from(name);
        operand.push(path);
        operand
    };
    match case.source() {
        Source::File => arguments.push(operand("if=", source)),
        // Reads of a pipe are short, and dd writes each as it came.
        Source::Pipe => arguments.push("iflag=fullblock".into()),
    }
    match case.sink() {
        Sink::Null => arguments.push("of=/dev/null".into()),
        Sink::File => arguments.push(operand("of=", sink)),
        Sink::PipeRead | Sink::PipeSplice | Sink::Tcp => return true,
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(convention: Convention, leading: &'static [&'static str], case: Case) -> String {
        let program = Program {
            name: "it",
            path: "/bin/it".into(),
            leading,
            convention,
            version: String::new(),
        };
        match program.invocation(case, Path::new("from"), Path::new("to")) {
            None => "cannot".into(),
            Some(invocation) => {
                let arguments = invocation.arguments.join(" ".as_ref());
                let redirection = if invocation.writes_stdout { " >" } else { "" };
                format!("{}{redirection}", arguments.to_string_lossy())
            }
        }
    }

    #[test]
    fn a_cat_takes_a_path_or_standard_input_and_writes_standard_output() {
        assert_eq!(told(Convention::Cat, &[], Case::Ext4), "from >");
        assert_eq!(told(Convention::Cat, &["-q"], Case::Null), "-q from >");
        assert_eq!(told(Convention::Cat, &["cat"], Case::PipeToPipe), "cat >");
    }

    #[test]
    fn dd_takes_operands_and_full_blocks_from_a_pipe() {
        let dd = |case| told(Convention::Dd, &["bs=512K"], case);
        assert_eq!(dd(Case::Null), "bs=512K if=from of=/dev/null");
        assert_eq!(dd(Case::Xfs), "bs=512K if=from of=to");
        assert_eq!(dd(Case::Tcp), "bs=512K if=from >");
        assert_eq!(dd(Case::PipeToFile), "bs=512K iflag=fullblock of=to");
        assert_eq!(dd(Case::PipeToPipe), "bs=512K iflag=fullblock >");
    }

    #[test]
    fn cp_takes_two_paths_and_no_socket() {
        let cp = |case| told(Convention::Cp, &[], case);
        assert_eq!(cp(Case::Null), "from /dev/null");
        assert_eq!(cp(Case::PipeSplice), "from /dev/stdout >");
        assert_eq!(cp(Case::PipeToPipe), "/dev/stdin /dev/stdout >");
        assert_eq!(cp(Case::PipeToFile), "/dev/stdin to");
        assert_eq!(cp(Case::Tmpfs), "from to");
        assert_eq!(cp(Case::Tcp), "cannot");
    }
}
