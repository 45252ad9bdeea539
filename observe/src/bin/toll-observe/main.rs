//! `toll observe`: devices in use, terminal sessions, leases and network interfaces.

mod devices;
mod dhcp;
mod interface;
mod opened_devices;
mod session;
mod show;
mod system;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use toll_system::command_line;

/// Longest file that is read into memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Show devices in use, terminal sessions, address leases and network interfaces
#[derive(Debug, Parser)]
#[command(
    name = "toll-observe",
    bin_name = "toll observe",
    version,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tell which processes hold which devices
    ///
    /// Counts are descriptors, mapped files and controlling terminals on devices,
    /// wherever their nodes lie, and what else lies below /dev: shared memory,
    /// directories. With a COMMAND, runs it and tells what it opened, however
    /// shortly: it runs under strace, and each opening is seen.
    Devices(devices::DevicesArguments),
    /// Make plain text of a terminal session that `script` recorded
    ///
    /// A model of the terminal reads it: what was typed over, erased, scrolled in a
    /// region or shown on the alternate screen of an editor or pager is not in the
    /// text, nor are colours and titles; a line that the terminal wrapped is one line.
    /// What was cleared from the whole screen stays. The text is UTF-8, and no control
    /// character but the line feed is in it; a byte that is no UTF-8 is shown by its
    /// hexadecimal digits.
    Session(session::SessionArguments),
    /// Follow leases of addresses through a capture, or on a network interface
    ///
    /// Each client's exchange with servers (DHCP and BOOTP over IPv4) is a timeline:
    /// what each message says, by what way it came, its options in words, and what
    /// would happen had it been lost; then the leases and how they ended, and answers
    /// to the questions that are usually asked of such a capture. Packets that are not
    /// what they say are told by number and reason.
    Dhcp(dhcp::DhcpArguments),
    /// Tell addresses, netmasks and gateways of network interfaces
    ///
    /// For each interface of this network namespace: whether it can carry packets,
    /// its link-layer address and MTU, its IPv4 and IPv6 addresses with their
    /// netmasks, and the gateways of default routes through it.
    Interface(interface::InterfaceArguments),
}

fn main() -> ExitCode {
    command_line::run(|arguments: Arguments| match &arguments.what {
        What::Devices(arguments) => devices::run(arguments),
        What::Session(arguments) => session::run(arguments),
        What::Dhcp(arguments) => dhcp::run(arguments),
        What::Interface(arguments) => interface::run(arguments),
    })
}
