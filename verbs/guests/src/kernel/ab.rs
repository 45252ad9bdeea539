//! `toll kernel ab`: compares two kernels.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_core::claim::blocks_needed;
use toll_core::plan::Plan;
use toll_core::spec::BLOCKS_MAX;
use toll_core::spec::Experiment;
use toll_core::spec::builtin::KERNEL;
use toll_driver::baseline::BaselineArguments;
use toll_driver::gate::GateArguments;
use toll_driver::{
    GuestOptions, Limits, NewRun, ResultOptions, RunArguments, RunOptions, WorkDirectories,
};
use toll_host::environment::guest::kvm_state;
use toll_host::environment::kernel::require;
use toll_system::Failure;

pub const NOTES: &str = "\
Examples:
  toll kernel ab toll mine
  toll kernel ab toll mine primes --fail-on regression=2%
  toll kernel ab toll mine 'busybox sort /proc/kallsyms' 'busybox find /'

Each block boots both kernels, side by side if there are two CPUs, and runs trials in random order.
A guest's clock counts instructions, which are not time. One error budget of 5 % covers all
comparisons together and determines the number of blocks. Below each path length that differs are
the kernel functions that cause the difference, under the same budget. Missing kernels are built
first. A comparison is a run: `toll show`, `toll export` and `toll run --resume` accept it like any
other.

toll count --kernel BASE,NEW --by function COMMAND shows the functions in which a difference lies.";

#[derive(Debug, Args)]
pub struct AbArguments {
    /// Kernel to compare with (see `toll kernel list`)
    base: String,
    /// Kernel to compare; the same name again shows what differs by chance
    new: String,
    /// Work to run under both kernels: experiments by name, experiment files (*.toml), or commands
    /// of the guest [default: the experiment kernel, which makes most system calls]
    #[arg(value_name = "NAME|FILE|COMMAND")]
    items: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    options: RunOptions,
    /// Show what would run, and what would not and why, but run nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait while another run measures on this machine, instead of failing
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    results: ResultOptions,
    /// Where to make the disks of guests [default: $TOLL_WORK_DIR, else
    /// $XDG_CACHE_HOME/toll/work]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    #[command(flatten)]
    against: BaselineArguments,
    #[command(flatten)]
    gate: GateArguments,
}

/// Seconds after which no new block begins. The time is so long that the number of blocks ends a
/// comparison, since fewer blocks than needed decide nothing.
const TIME_BUDGET_S: f64 = 12.0 * 3600.0;

pub fn run(arguments: &AbArguments, store: &Path) -> anyhow::Result<ExitCode> {
    for name in [&arguments.base, &arguments.new] {
        require(name).map_err(Failure::Usage)?;
    }
    let asked = arguments.asked();
    let accelerators: &[&str] = match kvm_state() {
        Ok(_) => &["icount", "kvm"],
        Err(_) => &["icount"],
    };
    let mut experiments = toll_driver::select(&asked)?;
    for experiment in &mut experiments {
        experiment.compare_kernels(&arguments.base, &arguments.new, accelerators)?;
        fix_blocks(experiment)?;
        asked.apply_settings(experiment);
        experiment.check().map_err(Failure::Usage)?;
        experiment.check_metric().map_err(Failure::Usage)?;
    }
    toll_driver::run_all(&asked, store, experiments, None)
}

impl AbArguments {
    /// Returns the run that compares the kernels.
    fn asked(&self) -> RunArguments {
        let items = match self.items.as_slice() {
            [] => vec![KERNEL.name.to_owned()],
            items => items.to_owned(),
        };
        RunArguments {
            limits: self.limits.clone(),
            new: NewRun {
                items,
                options: self.options.clone(),
                guests: GuestOptions {
                    guest: true,
                    build_kernels: true,
                },
                dry_run: self.dry_run,
                ..NewRun::default()
            },
            wait: self.wait,
            results: self.results.clone(),
            directories: WorkDirectories::at(self.work_dir.clone()),
            against: self.against.clone(),
            gate: self.gate.clone(),
            ..RunArguments::default()
        }
    }
}

/// Sets the number of blocks to the number that all comparisons together need. There are no earlier
/// looks.
fn fix_blocks(experiment: &mut Experiment) -> anyhow::Result<()> {
    let plan = Plan::new(experiment, 0).map_err(Failure::Usage)?;
    let run = &mut experiment.run;
    (run.min_blocks, run.max_blocks) = (BLOCKS_MAX, BLOCKS_MAX);
    run.time_budget_s = TIME_BUDGET_S;
    let needed = blocks_needed(experiment, &plan.treatments);
    let needed = needed.and_then(|blocks| u32::try_from(blocks).ok());
    let Some(blocks) = needed else {
        bail!(Failure::Usage(format!(
            "cannot compare kernels by {}: none of its treatments runs under both kernels",
            experiment.name
        )));
    };
    let run = &mut experiment.run;
    (run.min_blocks, run.max_blocks) = (blocks, blocks);
    Ok(())
}
