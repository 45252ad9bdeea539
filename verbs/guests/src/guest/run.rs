//! `toll guest run`: runs a command in a guest.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use toll_host::environment::guest::Input;
use toll_system::Failure;
use toll_system::interrupt::Interrupt;
use toll_wire::guest::GuestCommand;

use super::options::GuestOptions;

const NOTES: &str = "\
Examples:
  toll guest run -- uname -a
  toll guest run --kernel stock --memory 1GiB -- cat /proc/meminfo
  toll guest run --add selftest --log kernel.log -- /host/selftest

The command has no input; it writes to this program's standard output and standard error. The
guest has no network, and only these files: busybox programs in /bin, files of --add in /host,
this project's modules in /modules, and an empty disk at /work.

Exit status: that of the command, 128 + n if signal n ended it; 5 if a kernel, QEMU or another
prerequisite is missing, 1 if the guest does not boot, dies, stops or takes too long, 2 for wrong
usage.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct RunArguments {
    #[command(flatten)]
    options: GuestOptions,
    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let words = words(&arguments.command)?;
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    let command = GuestCommand {
        words,
        terminal: None,
        input: String::new(),
    };
    let timeout = arguments.options.timeout(false);
    arguments.options.run(&interrupt, |guest, interrupted| {
        let on_output = &mut super::output::pass_on;
        guest.run(&command, Input::None, timeout, on_output, interrupted)
    })
}

/// Returns the command as text, since messages to a guest hold only text.
fn words(command: &[OsString]) -> anyhow::Result<Vec<String>> {
    let word = |word: &OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!(
                "cannot run {}: it is not UTF-8; put it into a script, and give the script \
                 to the guest with --add",
                word.to_string_lossy()
            ))
        })
    };
    Ok(command.iter().map(word).collect::<Result<_, _>>()?)
}
