//! Printing, output files, and the capabilities of the terminal.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use rustix::fs::{Access, FallocateFlags, access, fallocate, getxattr};
use rustix::io::Errno;
use serde::Serialize;
use toll_document::{Document, Paint, Style, fold, plain_json};

use crate::bounded::{open_bounded, read_bounded};
use crate::exit_code;
use crate::kept_files;
use crate::paths;

/// Columns if neither the terminal nor COLUMNS gives a width.
const WIDTH_DEFAULT: usize = 80;

/// Prints an error.
pub fn error(message: &str) {
    note(&format!("toll: {message}"));
}

/// Prints a remark, separate from the results.
pub fn note(message: &str) {
    remark(&(shown(message) + "\n"));
}

/// Prints a remark of any length, folded at the width of the terminal or 80 columns.
pub fn long_note(message: &str) {
    remark(&fold(message).show(error_style()));
}

/// Writes to standard error. If standard error is gone, full or closed, measuring continues;
/// `eprintln!` would panic.
fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints help, the version or a usage error. Uses a single write, unlike clap's own
/// printing.
pub fn instead_of_work(given: &clap::Error) -> ExitCode {
    let rendered = given.render();
    let text = |style: Style| {
        let plain = rendered.to_string();
        let shown = Document::lines(plain.lines(), Paint::Plain).show(style);
        // The text quotes the user. So clap's colours are safe only if the text needed no escaping.
        if style.color && shown == plain {
            rendered.ansi().to_string()
        } else {
            shown
        }
    };
    if given.use_stderr() {
        remark(&text(error_style()));
        return ExitCode::from(2);
    }
    match standard_output(text(style()).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error(&failure.to_string());
            exit_code(&failure)
        }
    }
}

/// A message on one line, escaped for standard error.
pub fn shown(message: &str) -> String {
    let line = Document::line(message, Paint::Plain);
    line.show(error_style()).trim_end_matches('\n').to_owned()
}

/// Prints a result. A reader that went away (`toll show | head`) is no error.
pub fn result(text: &Document) -> anyhow::Result<()> {
    standard_output(text.show(style()).as_bytes())
}

/// Prints a result after another result, with an empty line between them.
pub fn further_result(document: &Document) -> anyhow::Result<()> {
    standard_output(format!("\n{}", document.show(style())).as_bytes())
}

/// Prints a result of one line.
pub fn line(line: &str) -> anyhow::Result<()> {
    result(&Document::line(line, Paint::Plain))
}

/// Prints a document for programs, or text without foreign parts, unchanged.
pub fn document(text: &str) -> anyhow::Result<()> {
    let ending = if text.ends_with('\n') { "" } else { "\n" };
    standard_output(format!("{text}{ending}").as_bytes())
}

/// Prints lines of a listing, folded at the width of the terminal or COLUMNS. If neither gives a
/// width, as in a pipe, no line is folded, for programs that read lines.
pub fn listing(lines: &[String]) -> anyhow::Result<()> {
    result(&if is_bounded(&io::stdout()) {
        lines.iter().map(|line| fold(line)).collect()
    } else {
        Document::lines(lines, Paint::Plain)
    })
}

/// Whether a terminal or COLUMNS limits the width of lines.
pub fn is_bounded(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() || columns_set().is_some()
}

/// The value of COLUMNS, if it is a number.
fn columns_set() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn standard_output(content: &[u8]) -> anyhow::Result<()> {
    check_standard_output()?;
    write_to(io::stdout().lock(), content)
}

/// Returns an error if standard output is closed, before time is spent on a result.
pub fn check_standard_output() -> anyhow::Result<()> {
    toll_streams::check_stdout().map_err(|_| {
        anyhow!(
            "cannot write the result: standard output is closed; send it to a file or /dev/null"
        )
    })
}

fn write_to(mut stream: impl Write, content: &[u8]) -> anyhow::Result<()> {
    match stream.write_all(content).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow!("cannot write the result: {error}")),
        Ok(()) => Ok(()),
    }
}

/// Writes `text` to `path`, or else to standard error. Standard output is left to the command,
/// whose output must not mix with the text.
pub fn write_aside(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, text.as_bytes()),
        None => write_to(io::stderr().lock(), text.as_bytes()),
    }
}

/// The style for [`write_aside`].
pub fn style_aside(path: Option<&Path>) -> Style {
    match path {
        None => error_style(),
        Some(path) if path.as_os_str() == "-" => style(),
        // A file may be read later by any program, so it has no colours.
        Some(_) => Style {
            color: false,
            ..error_style()
        },
    }
}

/// Prints one JSON document.
pub fn json<T: Serialize>(document: &T) -> anyhow::Result<()> {
    self::document(&json_text(document)?)
}

/// One JSON document as text.
pub fn json_text<T: Serialize>(document: &T) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(document).context("cannot write JSON")?;
    Ok(plain_json(text))
}

/// The style for standard output.
pub fn style() -> Style {
    style_of(&io::stdout())
}

/// The style for standard error.
pub fn error_style() -> Style {
    style_of(&io::stderr())
}

/// The style for a stream: with colours if it is a terminal that is not dumb, and
/// NO_COLOR is unset or empty.
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
    let columns = of_terminal().or_else(columns_set).unwrap_or(WIDTH_DEFAULT);
    // The C locale promises ASCII only. If no locale is set (containers, cron), UTF-8 is the better
    // guess.
    let unicode = !is_dumb && locale.is_none_or(|name| name != "C" && name != "POSIX");
    let color = is_terminal && !is_dumb && !set("NO_COLOR");
    Style::new(color, columns.clamp(20, 200), unicode)
}

/// Writes a whole file, or leaves its old content.
pub fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return standard_output(content);
    }
    kept_files::check(path)?;
    replace(path, content).map_err(|error| cannot_write(path, &error))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Replaces the target of a link, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let there = match fs::metadata(&target) {
        // A device or a pipe is written directly.
        Ok(found) if !found.is_file() => return fs::write(&target, content),
        Ok(found) => Some(found),
        Err(_) => None,
    };
    if let Some(found) = &there
        && (found.nlink() > 1 || has_access_list(&target))
    {
        return rewrite(&target, content);
    }
    let temporary = target.with_file_name(format!(".toll-{}", std::process::id()));
    let mut file = match File::create_new(&temporary) {
        // A user who may write a file need not have write permission for its directory.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && there.is_some() => {
            return rewrite(&target, content);
        }
        made => made?,
    };
    // A file that cannot get the owner of the old file must not replace it.
    if let Some(found) = &there
        && take_over(&file, found).is_err()
    {
        let _ = fs::remove_file(&temporary);
        return rewrite(&target, content);
    }
    let written = file.write_all(content);
    let written = written.and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Gives a file the owner and the mode of another file.
fn take_over(file: &File, of: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (of.uid(), of.gid()) {
        fchown(file, Some(of.uid()), Some(of.gid()))?;
    }
    // Comes after the change of owner, which clears set-user-ID.
    file.set_permissions(of.permissions())
}

/// Whether a file has an access control list, which a new file in its place would lack.
fn has_access_list(path: &Path) -> bool {
    let mut none = [0_u8; 0];
    getxattr(path, "system.posix_acl_access", &mut none).is_ok_and(|bytes| bytes > 0)
}

/// Writes into a file that must keep its inode. Allocates the blocks before it overwrites the old
/// content, so that a full disk loses nothing.
fn rewrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    let length = content.len() as u64;
    if length > 0 {
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, length) {
            Err(error) if ![Errno::OPNOTSUPP, Errno::NOSYS].contains(&error) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    file.write_all(content)?;
    file.set_len(length)
}

/// Reads a file that the command line names, or standard input for `-`, and protects the file from
/// being overwritten by a result.
pub fn read_file(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let read =
            toll_streams::check_stdin().and_then(|()| read_bounded(io::stdin().lock(), bytes_max));
        return read.map_err(|error| cannot_read(path, &error));
    }
    kept_files::keep(path, "it is read");
    let read = open_bounded(path, bytes_max).and_then(|file| read_bounded(file, bytes_max));
    read.map_err(|error| cannot_read(path, &error))
}

/// The error message for a file that cannot be read.
pub fn cannot_read(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("cannot read {path}: there is no such file"),
        io::ErrorKind::IsADirectory => {
            anyhow!("cannot read {path}: it is a directory; name a file")
        }
        _ => anyhow!("cannot read {path}: {error}; choose another file"),
    }
}

/// Creates a file that is written piece by piece.
pub fn create_file(path: &Path) -> anyhow::Result<File> {
    kept_files::check(path)?;
    File::create(path).map_err(|error| cannot_write(path, &error))
}

/// Creates a directory, but not its parents.
pub fn create_directory(path: &Path) -> anyhow::Result<()> {
    check_directory(path)?;
    if path.is_dir() {
        Ok(())
    } else {
        fs::create_dir(path).map_err(|error| cannot_write(path, &error))
    }
}

/// Returns an error if a directory cannot be created, before time is spent on its content.
pub fn check_directory(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        Ok(())
    } else if path.exists() {
        Err(cannot_write(path, &io::ErrorKind::NotADirectory.into()))
    } else {
        check_file(path)
    }
}

/// Returns an error if a file cannot be written, before time is spent on its content.
pub fn check_file(path: &Path) -> anyhow::Result<()> {
    let place = paths::store_directory().ok();
    if let Some(place) = place.filter(|place| path.parent() == Some(&place.unchecked_path())) {
        place.make().map_err(anyhow::Error::msg)?;
    }
    kept_files::check(path)?;
    let directory = path.parent().filter(|one| !one.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let error = if !directory.is_dir() {
        io::ErrorKind::NotFound.into()
    } else if path.is_dir() {
        io::ErrorKind::IsADirectory.into()
    } else {
        let written = if path.exists() { path } else { directory };
        match access(written, Access::WRITE_OK) {
            Ok(()) => return Ok(()),
            Err(errno) => errno.into(),
        }
    };
    Err(cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            anyhow!("cannot write {path}: its directory does not exist; make the directory first")
        }
        io::ErrorKind::IsADirectory => {
            anyhow!("cannot write {path}: it is a directory; choose another file")
        }
        io::ErrorKind::NotADirectory => {
            anyhow!("cannot write {path}: it is not a directory; choose another path")
        }
        io::ErrorKind::StorageFull => {
            anyhow!("cannot write {path}: the disk is full; free some space")
        }
        _ => anyhow!("cannot write {path}: {error}; choose another file"),
    }
}
