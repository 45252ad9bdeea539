//! `toll guest shell`: opens a shell in a guest.

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use toll_host::environment::guest::{GuestFailure, Input, kvm_state, shell_obstacle};
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, output};
use toll_wire::guest::{GuestCommand, GuestEnd, TerminalSize};

use super::options::GuestOptions;
use super::terminal::{self, RawMode};

/// Size of the largest script on standard input, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// Size for a terminal that does not report its size.
const SIZE_DEFAULT: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

const NOTES: &str = "\
Examples:
  toll guest shell
  toll guest shell --kernel stock --swap 1GiB
  toll guest shell --kernel toll-debug --add selftest

The shell is busybox's. `exit` and ^D end it and the guest; `poweroff -f` does, too. If standard
input is not a terminal, it is the shell's script. This project's modules are in /modules, files of
--add in /host, and an empty disk at /work.

Exit status: that of the shell; 0 if a user at a terminal powers the guest off, halts or reboots it;
5 if a kernel, QEMU or another prerequisite is missing, 1 if the guest does not boot, dies or is
stopped by a script, 2 for wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ShellArguments {
    #[command(flatten)]
    options: GuestOptions,
}

pub fn run(arguments: &ShellArguments) -> anyhow::Result<ExitCode> {
    if let Some(reason) = shell_obstacle() {
        bail!(Failure::Prerequisite(format!(
            "cannot open a shell in a guest: {reason}"
        )));
    }
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    let script = if io::stdin().is_terminal() {
        None
    } else {
        Some(script()?)
    };
    output::note("booting a guest …");
    arguments.options.run(&interrupt, |guest, interrupted| {
        let accelerator = guest.accelerator();
        let why = match (accelerator.has_meaningful_times(), kvm_state()) {
            (false, Err(why)) => format!(" (KVM: {why})"),
            _ => String::new(),
        };
        output::note(&format!(
            "kernel {} under {}{why}; `exit` ends it",
            guest.facts().kernel_release,
            accelerator.word()
        ));
        let stdin = io::stdin();
        let mut command = GuestCommand {
            words: vec!["/bin/sh".into()],
            terminal: None,
            input: String::new(),
        };
        if let Some(script) = script {
            command.input = script;
            let timeout = arguments.options.timeout(false);
            let on_output = &mut super::output::pass_on;
            return guest.run(&command, Input::None, timeout, on_output, interrupted);
        }
        command.words.push("-l".into());
        command.terminal = Some(terminal::size(&stdin).unwrap_or(SIZE_DEFAULT));
        // From now on every key goes to the guest, until this value is dropped.
        let raw = RawMode::enter(&stdin);
        let input = Input::From(stdin.as_fd());
        let timeout = arguments.options.timeout(true);
        let end = guest.run(
            &command,
            input,
            timeout,
            &mut super::output::pass_on,
            interrupted,
        );
        drop(raw);
        match (end, guest.stop()) {
            // A user at a terminal may end the guest in this way, as with `exit`.
            (Err(GuestFailure::Failed(_)), Some(stop)) => {
                output::note(&stop.to_string());
                Ok(GuestEnd {
                    status: Some(0),
                    ..GuestEnd::default()
                })
            }
            (end, _) => end,
        }
    })
}

/// Reads the script of a shell that is not interactive: all of standard input.
fn script() -> anyhow::Result<String> {
    let mut script = String::new();
    let limit = SCRIPT_BYTES_MAX + 1;
    toll_streams::check_stdin()
        .and_then(|()| io::stdin().lock().take(limit).read_to_string(&mut script))
        .map_err(|error| Failure::Usage(format!("cannot read the input: {error}")))?;
    match script.len() as u64 {
        length if length < limit => Ok(script),
        _ => Err(Failure::Usage(format!(
            "cannot read the input: it is over {SCRIPT_BYTES_MAX} bytes; put it into a file and \
             copy that into the guest with --add"
        ))
        .into()),
    }
}
