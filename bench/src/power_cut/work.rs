//! Carries out file operations that the host requests one by one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::content;

/// Line that tells the host that requests can come.
const READY: &str = "ready";

/// Carries out the request in each line of standard input, in order. Writes `ok` or the error as
/// soon as the call has returned. Nothing is buffered in between.
pub fn serve(directory: &Path) -> io::Result<()> {
    make_raw()?;
    std::env::set_current_dir(directory)?;
    let left = temporaries(Path::new("."))?;
    let mut output = io::stdout().lock();
    // Each line is one write, so that no line waits for another.
    output.write_all(format!("{READY} {left}\n").as_bytes())?;
    output.flush()?;
    let mut open = BTreeMap::new();
    for line in BufReader::new(io::stdin()).lines() {
        let answer = match perform(&line?, &mut open) {
            Ok(()) => "ok\n".to_owned(),
            Err(error) => format!("{error}\n"),
        };
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

/// Counts temporary files of an earlier mount that the current mount has not removed.
fn temporaries(directory: &Path) -> io::Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        found += usize::from(entry.file_name().as_encoded_bytes().starts_with(b".toll-"));
        if entry.file_type()?.is_dir() {
            found += temporaries(&entry.path())?;
        }
    }
    Ok(found)
}

fn perform(line: &str, open: &mut BTreeMap<u32, File>) -> io::Result<()> {
    let wrong = || io::Error::other(format!("cannot carry out {line:?}"));
    let words: Vec<&str> = line.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
    let slot = |word: &str| word.parse::<u32>().map_err(|_| wrong());
    match words[..] {
        ["open", at, flags, path] => {
            let file = File::options()
                .read(true)
                .write(true)
                .append(flags.contains('a'))
                .create(flags.contains('c'))
                .truncate(flags.contains('t'))
                .open(path)?;
            open.insert(slot(at)?, file);
            Ok(())
        }
        ["write", at, offset, bytes, seed] => {
            let file = open.get(&slot(at)?).ok_or_else(wrong)?;
            let length = usize::try_from(number(bytes)?).map_err(|_| wrong())?;
            file.write_all_at(&content(number(seed)?, length), number(offset)?)
        }
        ["truncate", at, bytes] => open
            .get(&slot(at)?)
            .ok_or_else(wrong)?
            .set_len(number(bytes)?),
        ["fsync", at] => open.get(&slot(at)?).ok_or_else(wrong)?.sync_all(),
        ["close", at] => close(open.remove(&slot(at)?).ok_or_else(wrong)?),
        // This works like sync(1), through a file descriptor that has written nothing.
        ["sync", path] => File::open(path)?.sync_all(),
        ["rename", from, to] => fs::rename(from, to),
        ["unlink", path] => fs::remove_file(path),
        _ => Err(wrong()),
    }
}

/// Calls close(2) and returns its error.
fn close(file: File) -> io::Result<()> {
    // SAFETY: this function owns the file descriptor.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the terminal pass bytes on unchanged, if standard input is a terminal.
fn make_raw() -> io::Result<()> {
    // SAFETY: the structure is plain numbers, and all zeros are numbers.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: this function owns the structure.
    if unsafe { libc::tcgetattr(0, &raw mut settings) } != 0 {
        return Ok(());
    }
    // SAFETY: as before.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: as before.
    match unsafe { libc::tcsetattr(0, libc::TCSANOW, &raw const settings) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
