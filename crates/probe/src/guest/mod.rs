//! The probe as process 1 of a guest: it makes the guest fit for trials and
//! starts a fresh probe for each that is asked for.
//!
//! Architecture invariant: the init measures nothing. A trial in a guest is run
//! by the same program, started in the same way, as one on the host.

mod command;
mod facts;
mod kernel_log;
mod mounts;
mod network;
mod path_length;
mod port;
mod setup;
mod trial;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::system::RebootCommand;
use toll_wire::guest::{
    GuestAction, GuestAnswer, GuestEvent, INIT_ICOUNT, INIT_VARIABLE, PORT, decode_guest_request,
};

use port::Port;

/// Whether this process is a guest's init. Process 1 of a container is not.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::var_os(INIT_VARIABLE).is_some()
}

/// Serves until the guest is to end, and ends it.
///
/// # Panics
/// If there is nobody to answer to. The kernel then panics, too, which is what
/// ends the guest, with the reason in its log.
pub fn run() -> ! {
    setup::file_systems().expect("a guest has its own file systems");
    let is_icount = std::env::var_os(INIT_VARIABLE).is_some_and(|value| value == INIT_ICOUNT);
    let modules = setup::boot_modules();
    let mut port = Port::open(PORT).expect("a guest has a port to its host");
    match modules
        .and_then(|()| network::loopback())
        .and_then(|()| network::card())
        .and_then(|()| setup::disks())
    {
        Ok(file_systems) => {
            // Pages of the init that are swapped out would come back in between
            // the trials' own. Without the right to lock them they may.
            let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
            let facts = facts::facts(file_systems);
            say(&mut port, GuestEvent::Ready(Box::new(facts)));
            serve(&mut port, is_icount);
        }
        Err(reason) => say(&mut port, GuestEvent::Refused(reason)),
    }
    end(port)
}

fn serve(port: &mut Port, is_icount: bool) {
    while let Some(line) = port.line() {
        let request =
            line.and_then(|line| decode_guest_request(&line).map_err(|error| error.to_string()));
        let event = match request.map(|request| request.action) {
            Ok(GuestAction::End) => return,
            Ok(GuestAction::Trial(asked)) => match trial::run(&asked) {
                outcome if is_icount => GuestEvent::Trial(path_length::in_instructions(outcome)),
                outcome => GuestEvent::Trial(outcome),
            },
            Ok(GuestAction::Run(command)) => match command::run(&command) {
                Ok(end) => GuestEvent::Ended(end),
                Err(reason) => GuestEvent::Refused(reason),
            },
            Err(reason) => GuestEvent::Refused(reason),
        };
        // Whatever a trial leaves running would disturb the next one.
        end_processes();
        say(port, event);
    }
}

/// Ends every process but the init itself, and those of the kernel. Call it only
/// where no child is waited for.
///
/// Whatever runs here descends from the init, and becomes its child when its own
/// parent goes: where there is no child, there is no process.
fn end_processes() {
    crate::children::end(|| {
        // SAFETY: kill(2) takes plain integers; -1 names every process but process
        // 1, which the caller is.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    });
}

fn say(port: &mut Port, event: GuestEvent) {
    // A host that went away ends the guest by ending its requests.
    let _ = port.say(&toll_wire::encode(&GuestAnswer::new(event)));
}

fn end(port: Port) -> ! {
    end_processes();
    mounts::unmount_work();
    drop(port);
    // Without ACPI a guest cannot switch itself off; one that restarts is ended
    // by `-no-reboot`.
    let _ = rustix::system::reboot(RebootCommand::Restart);
    unreachable!("a kernel that does not restart goes on without an init, and panics")
}
