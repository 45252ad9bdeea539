//! The program `toll observe`: devices in use, terminal sessions, leases and network
//! interfaces.

mod devices;
mod dhcp;
mod input;
mod interface;
mod opened_devices;
mod session;
mod show;
mod system;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use toll_system::command_line;

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
    /// Show which processes hold which devices
    ///
    /// Counts descriptors, mapped files and controlling terminals on devices,
    /// wherever the device nodes are. Also counts everything else below /dev,
    /// such as shared memory and directories. A COMMAND is run under strace, which
    /// shows each device that it opened, even if only briefly.
    Devices(devices::DevicesArguments),
    /// Convert a terminal session that `script` recorded to plain text
    ///
    /// A model of the terminal reads the recording. The text leaves out what was typed over,
    /// erased, scrolled in a region, or shown on the alternate screen of an editor or pager. It
    /// also leaves out colours and titles. A line that the terminal wrapped is one line. Text that
    /// was cleared together with the whole screen is kept. The text is UTF-8 without control
    /// characters except the line feed. A byte that is not UTF-8 is shown by its hexadecimal
    /// digits.
    Session(session::SessionArguments),
    /// Show address leases in a capture, or on a network interface
    ///
    /// Shows each client's exchange with servers (DHCP and BOOTP over IPv4) as a timeline. Each
    /// message has its meaning, source, destination and options in words, and what would have
    /// happened if the message had been lost. Below are the leases and how they ended, and answers
    /// to the questions that are usually asked about a capture. Malformed packets are listed by
    /// number, with the reason.
    Dhcp(dhcp::DhcpArguments),
    /// Show addresses, netmasks and gateways of network interfaces
    ///
    /// Shows for each interface of this network namespace whether it can carry
    /// packets, its link-layer address and MTU, its IPv4 and IPv6 addresses with
    /// their netmasks, and the gateways of default routes through it.
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
