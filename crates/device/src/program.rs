//! What both programs do around their work: arguments, output, exit statuses.

use std::process::ExitCode;

use toll_probe::device::{End, Page};
use toll_probe::program::{self, complain, print};

use crate::clock::Transmission;
use crate::options::{self, Options};

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
    run(End::Master, crate::master::run)
}

/// Runs `slave` on the process's arguments.
pub fn slave() -> ExitCode {
    run(End::Slave, crate::slave::run)
}

fn run(end: End, work: fn(&Options, &mut Teller) -> Result<(), String>) -> ExitCode {
    let name = end.module_name();
    let request = options::parse(end, std::env::args_os().skip(1));
    let request = request.map_err(|complaint| format!("{complaint}; see {name} --help"));
    program::run(name, request, |options| {
        work(&options, &mut Teller { end }).map_err(|complaint| (1, complaint))
    })
}
