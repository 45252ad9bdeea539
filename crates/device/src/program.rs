//! What both programs do around their work: arguments, output, exit statuses.

use std::ffi::OsString;
use std::process::ExitCode;

use toll_probe::device::{End, Page};
use toll_probe::program::{complain, print};

use crate::clock::Transmission;
use crate::options::{self, Request};

const USAGE_ERROR: u8 = 2;

/// Says what there is to say, in the name of one of the programs.
pub struct Teller {
    end: End,
}

impl Teller {
    pub fn transmission(&mut self, transmission: &Transmission) -> Result<(), String> {
        print(&transmission.to_string())
    }

    /// Prints a page-table entry as the published driver did to the kernel's log.
    pub fn page(&mut self, page: &Page) {
        self.remark(&format!("{:X}", page.entry));
    }

    pub fn remark(&mut self, text: &str) {
        complain(self.end.module_name(), text);
    }
}

/// Runs `master` on the process's arguments.
pub fn master() -> ExitCode {
    run(
        End::Master,
        options::master(arguments()),
        crate::master::run,
    )
}

/// Runs `slave` on the process's arguments.
pub fn slave() -> ExitCode {
    run(End::Slave, options::slave(arguments()), crate::slave::run)
}

fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

fn run<T>(
    end: End,
    request: Result<Request<T>, String>,
    work: impl FnOnce(&T, &mut Teller) -> Result<(), String>,
) -> ExitCode {
    let mut teller = Teller { end };
    let result = match request {
        Ok(Request::Print(text)) => print(&text),
        Ok(Request::Run(options)) => work(&options, &mut teller),
        Err(complaint) => {
            teller.remark(&format!("{complaint}; see {} --help", end.module_name()));
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            teller.remark(&complaint);
            ExitCode::FAILURE
        }
    }
}
