//! The command `toll observe dhcp`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use toll_observe::dhcp::{Observer, Report, observe};
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, output};

use crate::show;
use crate::system::capture::{Capture, Deaf, Limits, is_interface};

const NOTES: &str = "\
Examples:
  tcpdump -i eth0 -w lease.pcap port 67 or port 68; toll observe dhcp lease.pcap
  toll observe dhcp eth0                  listens until ^C
  toll observe dhcp eth0 --seconds 60 --json

Captures are pcap or pcapng files with packets of Ethernet (with VLAN tags), Linux cooked, raw IP or
the loopback of BSD. Listening needs root or the capability NET_RAW. DHCPv6 is ignored. The exit
status is 0 even if packets are malformed; the report lists them.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct DhcpArguments {
    /// A file of captured packets (`-`: standard input), or a network interface to
    /// listen to; a file takes precedence
    #[arg(value_name = "CAPTURE|INTERFACE")]
    of: OsString,
    /// Listen for N seconds [default: until a signal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Listen until N packets of any kind have arrived
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &DhcpArguments) -> anyhow::Result<ExitCode> {
    let shown = arguments.of.to_string_lossy();
    let path = Path::new(&arguments.of);
    let has_limits = arguments.seconds.is_some() || arguments.packets.is_some();
    let report = if arguments.of == "-" || path.exists() {
        if has_limits {
            bail!(Failure::Usage(format!(
                "cannot listen to {shown}: it is a file; --seconds and --packets are for interfaces"
            )));
        }
        let wrong = |error| anyhow!("cannot read {shown}: {error}");
        observe(&super::input::read(path)?).map_err(wrong)?
    } else if is_interface(&shown) {
        listen(arguments, &shown)?
    } else {
        bail!(
            "cannot observe {shown}: there is neither a file nor a network interface of this name"
        );
    };
    if arguments.json {
        output::json(&report)?
    } else {
        output::result(&show::dhcp(&report, &shown))?
    }
    Ok(ExitCode::SUCCESS)
}

fn listen(arguments: &DhcpArguments, name: &str) -> anyhow::Result<Report> {
    let deaf = |deaf| match deaf {
        Deaf::NotPermitted(message) => Failure::Prerequisite(message).into(),
        Deaf::Failed(message) => anyhow::Error::msg(message),
    };
    let mut capture = Capture::open(name).map_err(deaf)?;
    let cannot = "cannot listen for signals";
    let interrupt = Interrupt::listen().context(cannot)?;
    output::note(&format!("listening to {name}; ^C ends it"));
    let limits = Limits {
        time: arguments
            .seconds
            .map(|seconds| Duration::from_secs(seconds.into())),
        packets: arguments.packets,
    };
    let mut observer = Observer::default();
    let end = capture.run(
        limits,
        &mut || interrupt.signal().is_some(),
        &mut |packet| {
            observer.take(packet);
        },
    );
    // The packets that arrived before the error are still reported.
    if let Err(error) = end {
        output::note(&format!(
            "note: cannot continue to listen to {name}: {error}"
        ));
    }
    let lost = capture.lost();
    let mut report = observer.finish();
    if lost > 0 {
        let lost = toll_document::plural(usize::try_from(lost).unwrap_or(usize::MAX), "packet");
        let note = format!("{lost} lost, because packets came faster than they were read");
        report.notes.push(note);
    }
    Ok(report)
}
