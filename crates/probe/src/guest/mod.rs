//! The probe as process 1 of a guest: prepares the guest for trials and starts
//! a fresh probe for each trial that the host requests.
//!
//! Architecture invariant: the init measures nothing. The same program runs a
//! trial in a guest as on the host, and is started in the same way.

mod command;
mod count;
mod facts;
mod kernel_log;
mod mounts;
mod network;
mod path_length;
mod port;
mod processes;
mod setup;
mod symbols;
mod trial;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::system::RebootCommand;
use toll_wire::guest::{
    GuestAction, GuestAnswer, GuestCommand, GuestEnd, GuestEvent, INIT_COUNT, INIT_ICOUNT,
    INIT_VARIABLE, PORT, decode_guest_request,
};

use crate::clock::now_ns;
use crate::idle::{self, IdleTime};
use crate::workloads::boot::{Booted, slab_bytes};
use port::Port;
use processes::end_processes;

/// Whether this process is a guest's init. Process 1 of a container is not.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::var_os(INIT_VARIABLE).is_some()
}

/// Serves requests until the guest is to end, and ends it.
///
/// # Panics
/// If the guest's file systems cannot be mounted, or there is no port to answer
/// on. The kernel then panics, too, which ends the guest, with the reason in
/// its log.
pub fn run() -> ! {
    if std::env::var_os(INIT_VARIABLE).is_some_and(|value| value == INIT_COUNT) {
        count_once();
    }
    let is_icount = std::env::var_os(INIT_VARIABLE).is_some_and(|value| value == INIT_ICOUNT);
    let passed_ns = if is_icount {
        instructions_since_reset()
    } else {
        now_ns()
    };
    setup::file_systems().expect("a guest has its own file systems");
    // Reads `/proc`, which is mounted only now. Nothing has waited since
    // `passed_ns` was read.
    let idle_ns = IdleTime::now().and_then(IdleTime::since_start);
    let start_ns = idle_ns.ok().map(|idle| passed_ns.saturating_sub(idle));
    let modules = setup::boot_modules();
    let mut port = Port::open(PORT).expect("a guest has a port to its host");
    match modules
        .and_then(|()| network::loopback())
        .and_then(|()| network::card())
        .and_then(|()| setup::disks())
    {
        Ok(file_systems) => {
            // Swapped-out pages of the init would be read back during the
            // trials. Without the right to lock them, that may happen.
            let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
            if is_icount {
                idle::wait_for_rest();
            }
            let facts = facts::facts(file_systems);
            say(&mut port, GuestEvent::Ready(Box::new(facts)));
            let booted = Booted {
                start_ns,
                slab_bytes: slab_bytes().unwrap_or(0),
            };
            serve(&mut port, is_icount, booted);
        }
        Err(reason) => say(&mut port, GuestEvent::Refused(reason)),
    }
    end(port)
}

/// Returns the time-stamp counter. Where the clock counts instructions, this
/// counts them from the machine's start.
fn instructions_since_reset() -> u64 {
    // SAFETY: the instruction reads a counter that every x86-64 CPU has.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Counts one command, sends the result, and ends the guest once the host has
/// received everything.
fn count_once() -> ! {
    mounts::mount_kernel().expect("a guest has the kernel's file systems");
    let counted = setup::boot_modules()
        .and_then(|()| network::loopback())
        .and_then(|()| count::run());
    let mut port = Port::open(PORT).expect("a guest has a port to its host");
    let event = match counted {
        Ok(counted) => GuestEvent::Counted(Box::new(counted)),
        Err(reason) => GuestEvent::Refused(reason),
    };
    let is_counted = matches!(event, GuestEvent::Counted(_));
    say(&mut port, event);
    if is_counted {
        // If output is missing, the host reports it.
        let _ = count::send_output();
    }
    // The host ends the guest once it has everything.
    port.line();
    end(port)
}

fn serve(port: &mut Port, is_icount: bool, booted: Booted) {
    while let Some(line) = port.line() {
        let request =
            line.and_then(|line| decode_guest_request(&line).map_err(|error| error.to_string()));
        let event = match request.map(|request| request.action) {
            Ok(GuestAction::End) => return,
            Ok(GuestAction::Trial(asked)) => {
                let (outcome, symbols) = trial::run(&asked, booted);
                let outcome = if is_icount {
                    path_length::in_instructions(outcome)
                } else {
                    outcome
                };
                GuestEvent::Trial { outcome, symbols }
            }
            Ok(GuestAction::Run(command)) => match with_trial_modules(&command) {
                Ok(end) => GuestEvent::Ended(end),
                Err(reason) => GuestEvent::Refused(reason),
            },
            Ok(GuestAction::Count(_)) => {
                GuestEvent::Refused("cannot count: the guest has already received a request".into())
            }
            Err(reason) => GuestEvent::Refused(reason),
        };
        // Processes that a trial left running would disturb the next one.
        end_processes();
        say(port, event);
    }
}

fn with_trial_modules(command: &GuestCommand) -> Result<GuestEnd, String> {
    let modules = setup::TrialModules::insert()?;
    let end = command::run(command);
    // Processes that the command left running may use the modules.
    end_processes();
    drop(modules);
    end
}

fn say(port: &mut Port, event: GuestEvent) {
    // If the host is gone, no further request arrives, which ends the guest.
    let _ = port.say(&toll_wire::encode(&GuestAnswer::new(event)));
}

fn end(port: Port) -> ! {
    end_processes();
    mounts::unmount_work();
    drop(port);
    // Without ACPI a guest cannot switch itself off. QEMU's `-no-reboot` ends
    // one that restarts.
    let _ = rustix::system::reboot(RebootCommand::Restart);
    unreachable!("a kernel that does not restart loses its init and panics")
}
