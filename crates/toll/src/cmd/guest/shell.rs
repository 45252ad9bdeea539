//! `toll guest shell`

use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use toll_wire::guest::TerminalSize;

use super::options::{GuestOptions, exit_code};
use super::terminal::{self, RawMode};
use super::{Failure, output};
use crate::environment::guest::{Input, kvm_state, shell_obstacle};
use crate::trial::Interrupt;

/// What a shell that is no person's gets.
const SIZE_DEFAULT: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

const NOTES: &str = "\
Examples:
  toll guest shell
  toll guest shell --kernel stock --swap 1GiB
  toll guest shell --kernel toll-debug --add selftest

The shell is busybox's. It ends with `exit` or ^D, and the guest with it. This project's modules
are in /modules, what --add gave in /host, an empty disk at /work.

Exit status: that of the shell; 5 if a kernel, QEMU or another prerequisite is missing, 1 if the
guest does not boot or dies, 2 for wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct ShellArguments {
    #[command(flatten)]
    options: GuestOptions,
}

pub(super) fn run(arguments: &ShellArguments) -> Result<ExitCode, Failure> {
    if let Some(reason) = shell_obstacle() {
        return Err(Failure::Prerequisite(format!(
            "cannot open a shell in a guest: {reason}"
        )));
    }
    let interrupt = Interrupt::listen()
        .map_err(|error| Failure::Runtime(format!("cannot listen for signals: {error}")))?;
    output::note("booting a guest …");
    let booted = match arguments.options.boot(&interrupt) {
        Ok(booted) => booted,
        Err(stopped) => return exit_code(Err(stopped)),
    };
    let accelerator = booted.guest.accelerator();
    let why = match (accelerator.has_meaningful_times(), kvm_state()) {
        (false, Err(why)) => format!(" (KVM: {why})"),
        _ => String::new(),
    };
    output::note(&format!(
        "kernel {} under {}{why}; `exit` ends it",
        booted.guest.facts().kernel_release,
        accelerator.word()
    ));
    let stdin = std::io::stdin();
    let size = terminal::size(&stdin).unwrap_or(SIZE_DEFAULT);
    // From here on every key is the guest's, until this value goes.
    let raw = RawMode::enter(&stdin);
    let end = booted.run(
        &["/bin/sh".to_owned(), "-l".to_owned()],
        Some(size),
        Input::From(stdin.as_fd()),
        &mut |_, bytes| output::pass_on(bytes),
        &interrupt,
    );
    drop(raw);
    exit_code(end)
}
