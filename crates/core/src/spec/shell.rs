//! How a command line is started.

use serde::{Deserialize, Serialize};

/// How a command line is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// Started by `sh`, but only if the line needs a shell.
    Auto,
    None,
    Program(String),
}

/// Reads a shell's name from the command line or a file.
pub fn shell(name: Option<&str>) -> Shell {
    match name {
        None | Some("auto") => Shell::Auto,
        Some("none") => Shell::None,
        Some(program) => Shell::Program(program.to_owned()),
    }
}

/// Whether a command line needs a shell. It does if it contains an operator, an expansion or
/// another character that only a shell interprets. It also does if its first word is missing, an
/// assignment or a builtin of shells.
pub fn needs_shell(command: &str) -> bool {
    const BUILTINS: &[&str] = &[
        ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval", "exec",
        "exit", "export", "fg", "for", "getopts", "hash", "if", "jobs", "local", "read",
        "readonly", "return", "set", "shift", "source", "time", "times", "trap", "type", "ulimit",
        "umask", "unalias", "unset", "until", "wait", "while", "{", "!",
    ];
    if command.contains([
        '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '#', '~', '\n',
    ]) {
        return true;
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    first.contains('=') || first.is_empty() || BUILTINS.contains(&first)
}

/// Returns the shell that starts an experiment's command line.
pub fn effective_shell(shell: &Shell, command: &str) -> toll_wire::ShellChoice {
    match shell {
        Shell::None => toll_wire::ShellChoice::None,
        Shell::Program(program) => toll_wire::ShellChoice::Program(program.into()),
        Shell::Auto if needs_shell(command) => toll_wire::ShellChoice::Program("sh".into()),
        Shell::Auto => toll_wire::ShellChoice::None,
    }
}
