//! `toll guest shell`

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use toll_wire::guest::{GuestCommand, GuestEnd, TerminalSize};
use toll_system::{Failure, output};
use toll_system::interrupt::Interrupt;
use toll_host::environment::guest::{GuestFailure, Input, kvm_state, shell_obstacle};

use super::options::GuestOptions;
use super::terminal::{self, RawMode};

/// Most bytes of an input that is no terminal.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// For a terminal that does not tell.
const SIZE_DEFAULT: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

const NOTES: &str = "\
Examples:
  toll guest shell
  toll guest shell --kernel stock --swap 1GiB
  toll guest shell --kernel toll-debug --add selftest

The shell is busybox's. It ends with `exit` or ^D, and the guest with it; so it does with
`poweroff -f`. If the input is no terminal, all of it is what the shell is to do. This project's modules
are in /modules, what --add gave in /host, an empty disk at /work.

Exit status: that of the shell; 0 if a person at a terminal powers the guest off, halts or reboots
it; 5 if a kernel, QEMU or another prerequisite is missing, 1 if the guest does not boot, dies or
is stopped by an input that is no terminal, 2 for wrong usage.";

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
    let script = match io::stdin().is_terminal() {
        true => None,
        false => Some(script()?),
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
            let on_output = &mut super::pass_on;
            return guest.run(&command, Input::None, timeout, on_output, interrupted);
        }
        command.words.push("-l".into());
        command.terminal = Some(terminal::size(&stdin).unwrap_or(SIZE_DEFAULT));
        // From here on every key is the guest's, until this value goes.
        let raw = RawMode::enter(&stdin);
        let input = Input::From(stdin.as_fd());
        let timeout = arguments.options.timeout(true);
        let end = guest.run(&command, input, timeout, &mut super::pass_on, interrupted);
        drop(raw);
        match (end, guest.stop()) {
            // A person at a terminal may end the guest so, as with `exit`.
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

/// What a shell is to do that is no person's: all of this program's input.
fn script() -> anyhow::Result<String> {
    let mut script = String::new();
    let limit = SCRIPT_BYTES_MAX + 1;
    toll_streams::check_stdin()
        .and_then(|()| io::stdin().lock().take(limit).read_to_string(&mut script))
        .map_err(|error| Failure::Usage(format!("cannot read the input: {error}")))?;
    match script.len() as u64 {
        length if length < limit => Ok(script),
        _ => Err(Failure::Usage(format!(
            "cannot read the input: it is over {SCRIPT_BYTES_MAX} bytes; put it into a file, and \
             that into the guest with --add"
        ))
        .into()),
    }
}
