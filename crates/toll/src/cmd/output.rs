//! Printing, and what the terminal can show.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use serde::Serialize;

use super::failure;
use crate::claim::Run;
use crate::environment::guest::Stream;
use crate::report::sanitize::{plain_json, sanitize};
use crate::report::terminal::{Style, fit, fold};
use crate::store::{Store, StoreError};

/// Columns where nothing tells.
const WIDTH_DEFAULT: usize = 80;

/// Prints an error.
pub(super) fn error(message: &str) {
    remark(&format!("toll: {}\n", shown(message)));
}

/// Prints a remark beside the results.
pub(super) fn note(message: &str) {
    remark(&format!("{}\n", shown(message)));
}

/// Writes to standard error. One that is gone, full or closed keeps nothing from
/// being measured; `eprintln!` would panic.
fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints what a command line comes to that asks for no work: help, the version,
/// or what is wrong with it. In one write, as clap's own printing is not.
pub(super) fn instead_of_work(told: &clap::Error) -> ExitCode {
    let text = |style: Style| match style.color {
        true => told.render().ansi().to_string(),
        false => told.render().to_string(),
    };
    if told.use_stderr() {
        remark(&text(error_style()));
        return ExitCode::from(2);
    }
    match standard_output(text(style()).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error(&failure.to_string());
            failure::exit_code(&failure)
        }
    }
}

/// A message as standard error can show it.
fn shown(message: &str) -> String {
    fit(sanitize(message), error_style())
}

/// A line of a result, ended, without what a terminal would obey: names, levels
/// and messages are other people's text.
pub(super) fn line(text: &str) -> String {
    sanitize(text) + "\n"
}

/// Prints a result. A reader that went away (`toll show | head`) is no error.
///
/// # Errors
/// If standard output cannot be written for another reason.
pub(super) fn result(text: &str) -> anyhow::Result<()> {
    let ending = if text.ends_with('\n') { "" } else { "\n" };
    standard_output(format!("{text}{ending}").as_bytes())
}

/// Prints lines of a listing, folded where the terminal, or COLUMNS, is too
/// narrow for them. Where neither says how wide it is, as in a pipe, each stays
/// one line, for programs that read lines.
///
/// # Errors
/// As [`result`].
pub(super) fn listing(text: &str) -> anyhow::Result<()> {
    let style = style();
    let folded = match is_bounded(&io::stdout()) {
        true => fold(text, style),
        false => text.to_owned(),
    };
    result(&fit(folded, style))
}

/// Whether a terminal, or COLUMNS, says how wide lines may be.
pub(super) fn is_bounded(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() || columns_set().is_some()
}

/// What COLUMNS says.
fn columns_set() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn standard_output(content: &[u8]) -> anyhow::Result<()> {
    write_to(io::stdout().lock(), content)
}

fn write_to(mut stream: impl Write, content: &[u8]) -> anyhow::Result<()> {
    match stream.write_all(content).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow!("cannot write the result: {error}")),
        Ok(()) => Ok(()),
    }
}

/// Passes on what a command in a guest writes. A reader that went away does not
/// end the command.
pub(super) fn pass_on(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Output => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        Stream::Error => io::stderr().lock().write_all(bytes),
    };
}

/// Prints what belongs on standard error, beside the output of a command that
/// has standard output to itself. The text is safe to show already.
///
/// # Errors
/// As [`result`].
pub(super) fn aside(text: &str) -> anyhow::Result<()> {
    write_to(io::stderr().lock(), text.as_bytes())
}

/// Prints one JSON document.
///
/// # Errors
/// As [`result`].
pub(super) fn json<T: Serialize>(document: &T) -> anyhow::Result<()> {
    result(&json_text(document)?)
}

/// One JSON document as text.
///
/// # Errors
/// If it cannot be written as JSON.
pub(super) fn json_text<T: Serialize>(document: &T) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(document).context("cannot write JSON")?;
    Ok(plain_json(text))
}

/// How to write to standard output.
pub(super) fn style() -> Style {
    style_of(&io::stdout())
}

/// How to write to standard error.
pub(super) fn error_style() -> Style {
    style_of(&io::stderr())
}

/// How to write to a stream: colours unless NO_COLOR, a dumb terminal or a
/// file says otherwise.
fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_terminal = stream.is_terminal();
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let of_terminal = || {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    Style {
        color: is_terminal && !is_dumb && !set("NO_COLOR"),
        width: of_terminal()
            .or_else(columns_set)
            .unwrap_or(WIDTH_DEFAULT)
            .clamp(20, 200),
        // The C locale promises ASCII only; where none is set (containers,
        // cron) UTF-8 is by now the better guess.
        unicode: !is_dumb && locale.is_none_or(|name| name != "C" && name != "POSIX"),
    }
}

/// Writes a file, with an error that names it.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return standard_output(content);
    }
    let written = create_file(path)?.write_all(content);
    written.with_context(|| cannot_write(path))
}

/// Makes a file, and the directories above it.
///
/// # Errors
/// If it cannot be made; the error names it.
pub(super) fn create_file(path: &Path) -> anyhow::Result<File> {
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        std::fs::create_dir_all(directory).with_context(|| cannot_write(path))?;
    }
    File::create(path).with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Opens a store to read it; `None` if there is none yet. That a file is there
/// and empty is told, since there may have been something in it.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read_if_any(path: &Path) -> anyhow::Result<Option<Store>> {
    match Store::read(path) {
        Ok(store) => Ok(Some(store)),
        Err(error) => match error.kind() {
            StoreError::Empty => Ok(None),
            StoreError::Blank => {
                note(&format!("note: {error}"));
                Ok(None)
            }
            _ => Err(error.into()),
        },
    }
}

/// Loads and analyses the run that a text names.
pub(super) fn load_run(store: &Store, name: &str) -> anyhow::Result<Run> {
    Ok(store.load(store.find_run(name)?)?.into())
}

/// Loads and analyses several runs.
pub(super) fn load_runs(store: &Store, names: &[String]) -> anyhow::Result<Vec<Run>> {
    names.iter().map(|name| load_run(store, name)).collect()
}
