//! `toll kernel build`: builds kernels.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;
use toll_driver::kernel_builds::build_all;
use toll_host::environment::kernel::{names, require};
use toll_system::{Failure, exit_code_of, output};

const NOTES: &str = "\
Examples:
  toll kernel build
  toll kernel build toll mine
  toll kernel build toll-debug --jobs 2
  toll kernel build bullseye sid

The source comes from Debian's archive through apt. Nothing is installed and no step needs root;
everything is below $XDG_CACHE_HOME/toll. A build from source takes a few minutes and 2 GB, stock a
few seconds. An interrupted build continues where it stopped. A kernel is rebuilt if its
configuration, patches or compiler change, or the archive has a newer point release; a changed
module takes seconds. A kernel that is based on another compiles only what its patches change.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct BuildArguments {
    /// Kernels to build [default: toll]. toll: the pinned source, patched and
    /// configured for guests; toll-debug: the same with the kernel's own checks,
    /// not for measuring; stock: Debian's kernel, unchanged; bullseye, bookworm,
    /// trixie, sid: those of other suites; or a kernel of `toll kernel add`
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Compile with N threads [default: one per CPU]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl BuildArguments {
    /// Returns the requested kernels, each once, in the order of `toll kernel list`.
    fn asked(&self) -> anyhow::Result<Vec<String>> {
        for name in &self.names {
            require(name).map_err(Failure::Usage)?;
        }
        let mut asked = names();
        if self.names.is_empty() {
            asked.truncate(1)
        } else {
            asked.retain(|name| self.names.contains(name))
        }
        Ok(asked)
    }
}

pub fn run(arguments: &BuildArguments) -> anyhow::Result<ExitCode> {
    Ok(
        match build_all(&arguments.asked()?, arguments.jobs, &|text| {
            output::line(text)
        })? {
            Some(signal) => exit_code_of(signal),
            None => ExitCode::SUCCESS,
        },
    )
}
