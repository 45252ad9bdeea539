//! Runs a program whose calls of fsync(2) and related system calls return 0 and do nothing.
//!
//! The module shows that the power-cut test detects losses. It uses ptrace(2), which every kernel
//! has, because the guest's kernel has no seccomp.
#![expect(
    clippy::disallowed_methods,
    reason = "it starts the program that it changes"
)]

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// Numbers of the system calls that are left out.
const LEFT_OUT: [i64; 5] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
];

/// Number that replaces the number of a call that is left out. No system call has this number.
const NO_CALL: u64 = u64::MAX;

/// Runs a command to its end.
pub fn run(program: &str, arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec the closure makes one system call.
    unsafe { command.pre_exec(|| trace(libc::PTRACE_TRACEME, 0, 0)) };
    let first = command.spawn()?.id().cast_signed();
    let (_, _) = wait(first)?;
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_EXITKILL;
    trace(libc::PTRACE_SETOPTIONS, first, options as usize)?;
    trace(libc::PTRACE_SYSCALL, first, 0)?;
    let mut inside = BTreeSet::new();
    let mut left_out = BTreeSet::new();
    loop {
        let (thread, status) = match wait(-1) {
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
            stopped => stopped?,
        };
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let signal = match libc::WSTOPSIG(status) {
            stop if stop == libc::SIGTRAP | 0x80 => {
                if inside.remove(&thread) {
                    if left_out.remove(&thread) {
                        change(thread, |registers| registers.rax = 0);
                    }
                } else {
                    inside.insert(thread);
                    change(thread, |registers| {
                        if LEFT_OUT.contains(&registers.orig_rax.cast_signed()) {
                            registers.orig_rax = NO_CALL;
                            left_out.insert(thread);
                        }
                    });
                }
                0
            }
            // A new thread begins, or this thread has created one.
            libc::SIGTRAP | libc::SIGSTOP => 0,
            signal => signal,
        };
        // The thread may have been killed in the meantime.
        let _ = trace(libc::PTRACE_SYSCALL, thread, signal as usize);
    }
}

fn wait(process: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the status is this function's own.
    match unsafe { libc::waitpid(process, &raw mut status, libc::__WALL) } {
        -1 => Err(io::Error::last_os_error()),
        thread => Ok((thread, status)),
    }
}

fn trace(request: libc::c_uint, thread: i32, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests here takes `data` as an address of this process.
    let done = unsafe { libc::ptrace(request, thread, ptr::null_mut::<u8>(), data) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Changes the registers of a stopped thread. Does nothing if the thread was killed.
fn change(thread: i32, change: impl FnOnce(&mut libc::user_regs_struct)) {
    // SAFETY: the structure is plain numbers, and all zeros are numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let at = &raw mut registers;
    let none = ptr::null_mut::<u8>();
    // SAFETY: the structure is this function's own and large enough.
    if unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, none, at) } != 0 {
        return;
    }
    change(&mut registers);
    let at = &raw mut registers;
    // SAFETY: as before.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, none, at) };
}
