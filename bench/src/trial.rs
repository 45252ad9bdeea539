//! One run of one program.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use toll_probe::clock;

use crate::case::{Case, Sink, Source};
use crate::program::Program;
use crate::sink::{self, Reading};
use crate::source_file::SourceFile;
use crate::watchdog::Watchdog;
use crate::{feeder, process};

/// Where trials of a case and size are made.
pub(crate) struct Bench {
    pub(crate) case: Case,
    pub(crate) source: SourceFile,
    /// File that the program writes, if the sink is one.
    pub(crate) sink: PathBuf,
    /// The directory of `sink`, for syncfs(2).
    pub(crate) directory: File,
    /// What programs complain with.
    pub(crate) complaints: PathBuf,
    pub(crate) watchdog: Watchdog,
}

impl Bench {
    /// Runs a program once and yields the nanoseconds from just before it is
    /// spawned until it has exited and the reader of its sink has seen the end.
    ///
    /// # Errors
    /// If it fails or delivers wrong bytes. Bytes are looked at only if
    /// `verify`; else they are counted.
    pub(crate) fn run(&self, program: &Program, verify: bool) -> Result<u64, String> {
        let reading = match verify {
            true => Reading::Verify(self.source.seed),
            false => Reading::Count,
        };
        if self.case.sink() == Sink::File {
            self.clear_sink()?;
        }
        let duration_ns = self.timed(program, reading)?;
        if self.case.sink() == Sink::File {
            sink::check_file(&self.sink, self.source.size_bytes, reading)?;
        }
        Ok(duration_ns)
    }

    /// Removes the last copy, with its dirty pages, and has the file system
    /// write what else is left to write: it is not the next program's cost.
    fn clear_sink(&self) -> Result<(), String> {
        let wrong = |error| format!("cannot remove {}: {error}", self.sink.display());
        // XFS gives back the blocks of a removed file in the background ("deferred
        // inode inactivation", since Linux 5.14), those of a truncated one at once.
        match File::options().write(true).truncate(true).open(&self.sink) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrong(error)),
            Ok(_) => fs::remove_file(&self.sink).map_err(wrong)?,
        }
        rustix::fs::syncfs(&self.directory).map_err(|error| wrong(error.into()))
    }

    fn timed(&self, program: &Program, reading: Reading) -> Result<u64, String> {
        let size_bytes = self.source.size_bytes;
        let wrong = |error| format!("cannot open source or sink: {error}");
        let invocation = program
            .invocation(self.case, &self.source.path, &self.sink)
            .ok_or("cannot do this case")?;
        let (near, far) =
            sink::open(self.case.sink(), &self.sink, size_bytes, reading).map_err(wrong)?;
        let mut command = process::command(&program.path);
        command.args(invocation.arguments).stderr(self.stderr()?);
        // The C locale, so that no program spends its start on finding one.
        command.env_clear().env("LC_ALL", "C");
        command.stdout(match invocation.writes_stdout {
            true => Stdio::from(near),
            false => Stdio::null(),
        });
        let feeder = match self.case.source() {
            Source::File => {
                command.stdin(Stdio::null());
                None
            }
            Source::Pipe => {
                let exact = reading != Reading::Count;
                let (stdin, thread) =
                    feeder::start(size_bytes, self.source.seed, exact).map_err(wrong)?;
                command.stdin(stdin);
                thread
            }
        };
        let begin_ns = clock::now_ns();
        let status = self.spawn_and_wait(command);
        let exit_ns = clock::now_ns();
        let end = far.join();
        if let Some(feeder) = feeder {
            feeder.join().map_err(|_| "the feeder failed")?;
        }
        self.judge(status?)?;
        let end_ns = end?.map_or(exit_ns, |end_ns| end_ns.max(exit_ns));
        Ok(end_ns - begin_ns)
    }

    /// Takes the command by value: with it go this process's ends of the pipes,
    /// without which no reader would ever see the end.
    fn spawn_and_wait(&self, mut command: Command) -> Result<Child, String> {
        let spawned = command.spawn();
        drop(command);
        let child = spawned.map_err(|error| format!("cannot be started: {error}"))?;
        let pid = Pid::from_child(&child);
        self.watchdog.watch(pid);
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), exited) {}
        Ok(child)
    }

    fn judge(&self, mut child: Child) -> Result<(), String> {
        self.watchdog.release();
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.success() {
            return Ok(());
        }
        Err(self.complaint(status))
    }

    fn stderr(&self) -> Result<File, String> {
        File::options()
            .append(true)
            .create(true)
            .open(&self.complaints)
            .map_err(|error| format!("cannot open {}: {error}", self.complaints.display()))
    }

    fn complaint(&self, status: ExitStatus) -> String {
        let last = last_line_and_empty(&self.complaints).unwrap_or_default();
        format!("failed ({status}): {last}")
            .trim_end_matches(": ")
            .to_owned()
    }
}

/// The last line of a file, which is empty from then on.
fn last_line_and_empty(path: &Path) -> std::io::Result<String> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    file.rewind()?;
    file.set_len(0)?;
    Ok(text.trim().lines().last().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Convention;

    fn bench(directory: &Path, case: Case, size_bytes: u64) -> Bench {
        let source = SourceFile::create(&directory.join("source"), size_bytes, 1)
            .expect("a file can be written");
        Bench {
            case,
            source,
            sink: directory.join("copy"),
            directory: File::open(directory).expect("it is there"),
            complaints: directory.join("complaints"),
            watchdog: Watchdog::start(),
        }
    }

    fn program(name: &'static str, leading: &'static [&'static str]) -> Program {
        Program {
            name,
            path: process::find(name).expect("coreutils has it"),
            leading,
            convention: Convention::Cat,
            version: String::new(),
        }
    }

    const CASES: [Case; 6] = [
        Case::Null,
        Case::PipeRead,
        Case::PipeSplice,
        Case::PipeToPipe,
        Case::PipeToFile,
        Case::Tcp,
    ];

    #[test]
    fn cat_delivers_the_right_bytes_in_every_case() {
        for case in CASES {
            for size_bytes in [0, 1024, 3_000_001] {
                let directory = tempfile::tempdir().expect("a directory can be made");
                let bench = bench(directory.path(), case, size_bytes);
                for verify in [true, false] {
                    let duration_ns = bench.run(&program("cat", &[]), verify);
                    assert!(duration_ns.expect("cat copies") > 0, "{case:?}");
                }
            }
        }
    }

    #[test]
    fn a_program_that_drops_or_invents_a_byte_is_found_out() {
        for case in CASES.into_iter().filter(|&case| case != Case::Null) {
            let directory = tempfile::tempdir().expect("a directory can be made");
            let bench = bench(directory.path(), case, 1_000_001);
            for verify in [true, false] {
                let short = bench.run(&program("tail", &["-c", "+2"]), verify);
                let error = short.expect_err("a byte is missing");
                assert!(error.contains("delivered"), "{case:?}: {error}");
            }
        }
        let directory = tempfile::tempdir().expect("a directory can be made");
        let bench = bench(directory.path(), Case::PipeRead, 1_000_001);
        let reversed = bench.run(&program("tac", &[]), true);
        assert!(reversed.expect_err("lines are reversed").contains("offset"));
    }

    #[test]
    fn a_program_that_fails_tells_what_it_complained_with() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let bench = bench(directory.path(), Case::PipeRead, 10);
        let failed = bench.run(&program("cat", &["/no/such/file"]), false);
        let error = failed.expect_err("there is no such file");
        assert!(error.contains("/no/such/file"), "{error}");
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let bench = bench(directory.path(), Case::PipeToPipe, 10_000_000);
        let mut missing = program("cat", &[]);
        missing.path = "/no/such/program".into();
        assert!(bench.run(&missing, false).is_err());
    }
}
