//! Arguments and exit statuses of `master` and `slave`.

use std::process::ExitCode;

use toll_probe::device::End;
use toll_probe::program;

use crate::options::{self, Options};

pub fn master() -> ExitCode {
    run(End::Master, crate::master::run)
}

pub fn slave() -> ExitCode {
    run(End::Slave, crate::slave::run)
}

fn run(end: End, work: fn(&Options) -> Result<(), String>) -> ExitCode {
    let name = end.module_name();
    let request = options::parse(end, std::env::args_os().skip(1));
    let request = request.map_err(|complaint| format!("{complaint}; see {name} --help"));
    program::run(name, request, |options| {
        work(&options).map_err(|complaint| (1, complaint))
    })
}
