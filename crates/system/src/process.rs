//! Runs programs for their effect, such as `mkfs.ext4`.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use crate::Cannot;
use crate::bounded::read_bounded;

/// Maximum number of bytes that are read from each output of a program.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// Runs a program to its end and returns its standard output.
pub fn run(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    run_on(Stdio::null(), program, arguments)
}

/// Runs a program as [`run`] does, with a standard input.
pub fn run_on(stdin: Stdio, program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let path = find(program)
        .ok_or_else(|| format!("cannot run {program}: it is in no absolute directory of PATH"))?;
    let mut command = Command::new(path);
    command.args(arguments).stdin(stdin);
    if program == "git" {
        forget_repository(&mut command);
    }
    let output =
        bounded_output(&mut command).map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!(
        "{program} failed: {}",
        last.unwrap_or("no message").trim()
    ))
}

/// Runs a program to its end and returns its output. Kills a program that prints too much.
fn bounded_output(command: &mut Command) -> io::Result<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().expect("it is piped");
    let errors = thread::Builder::new().spawn(move || read_bounded(stderr, OUTPUT_BYTES_MAX));
    let stdout = read_bounded(child.stdout.take().expect("it is piped"), OUTPUT_BYTES_MAX);
    if stdout.is_err() || errors.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let errors = errors?.join().expect("reading does not panic");
    Ok(Output {
        status,
        stdout: stdout?,
        stderr: errors?,
    })
}

/// Removes the variables by which git names a repository to its hooks. Otherwise git would act on
/// that repository, and not on the repository in whose directory it runs.
pub fn forget_repository(command: &mut Command) {
    for name in [
        "DIR",
        "WORK_TREE",
        "INDEX_FILE",
        "PREFIX",
        "COMMON_DIR",
        "OBJECT_DIRECTORY",
        "ALTERNATE_OBJECT_DIRECTORIES",
        "QUARANTINE_PATH",
        "IMPLICIT_WORK_TREE",
        "GRAFT_FILE",
        "SHALLOW_FILE",
        "NAMESPACE",
    ] {
        command.env_remove(format!("GIT_{name}"));
    }
}

/// Overrides user settings that would run programs or change the output that is read. These are
/// hooks and a file system monitor, recursion into submodules, and the encoding of commits.
const PLAIN_GIT: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "i18n.logOutputEncoding=UTF-8",
    "-c",
    "advice.detachedHead=false",
];

/// Runs git in a directory, without hooks. git writes there only if the arguments say so.
pub fn git(repository: &Path, arguments: &[&str]) -> Result<String, String> {
    git_of_user(repository, &[&PLAIN_GIT, arguments].concat())
}

/// Runs git in a user's repository, with its hooks and settings.
pub fn git_of_user(repository: &Path, arguments: &[&str]) -> Result<String, String> {
    if find("git").is_none() {
        return Err("git is missing; install the package git".into());
    }
    let mut all = ["--no-optional-locks", "-C"].map(OsStr::new).to_vec();
    all.push(repository.as_os_str());
    all.extend(arguments.iter().map(OsStr::new));
    run("git", &all).map_err(|why| format!("{}: {why}", repository.display()))
}

/// Starts a program that stays in the foreground. Discards its output, but writes standard error to
/// `log` if there is one. The program is killed when this program dies, however that happens.
pub fn start(line: &[OsString], log: Option<&Path>) -> Result<Child, String> {
    let errors = match log {
        Some(log) => std::fs::File::create(log).cannot("make", log)?.into(),
        None => Stdio::null(),
    };
    // setpriv kills the server when this program dies. It is in util-linux, which Debian always
    // has. Without it, the next start ends the server.
    let setpriv = find("setpriv").map(PathBuf::into_os_string);
    let mut words = Vec::from_iter(setpriv);
    if !words.is_empty() {
        words.extend(["--pdeathsig", "KILL"].map(OsString::from));
    }
    words.extend_from_slice(line);
    Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", line[0].display()))
}

/// Finds a program in `PATH` and in Debian's directories for root's programs, which an ordinary
/// user's `PATH` leaves out. Searches only absolute entries. Other entries lead below the current
/// directory, where a file may be anybody's.
pub fn find(program: &str) -> Option<PathBuf> {
    find_in(program, &std::env::var_os("PATH").unwrap_or_default())
}

fn find_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_current_directory_is_not_found() {
        // Tests run in the directory of the crate.
        let file = "Cargo.toml";
        assert!(Path::new(file).is_file());
        for path in [".", "", ":", "./", "src/..", ":/nowhere:"] {
            assert_eq!(find_in(file, OsStr::new(path)), None, "{path:?}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(find_in(file, here.as_os_str()), Some(here.join(file)));
    }
}
