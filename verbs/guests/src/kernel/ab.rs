//! `toll kernel ab`: compares two kernels.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_core::claim::blocks_needed;
use toll_core::plan::Plan;
use toll_core::spec::BLOCKS_MAX;
use toll_core::spec::Experiment;
use toll_core::spec::builtin::KERNEL;
use toll_driver::RunArguments;
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

const ITEMS_HELP: &str = "Work to run under both kernels: experiments by name, experiment files \
    (*.toml), or commands of the guest [default: most system calls]";

#[derive(Debug, Args)]
#[command(mut_arg("items", |items| items.help(ITEMS_HELP)))]
pub struct AbArguments {
    /// Kernel to compare with (see `toll kernel list`)
    base: String,
    /// Kernel to compare; the same name again shows what differs by chance
    new: String,
    #[command(flatten)]
    run: RunArguments,
}

/// Seconds after which no new block begins. The time is so long that the number of blocks ends a
/// comparison, since fewer blocks than needed decide nothing.
const TIME_BUDGET_S: f64 = 12.0 * 3600.0;

pub fn run(arguments: &AbArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut asked = arguments.run.clone();
    asked.limits.check()?;
    if asked.resuming.resume.is_some() {
        bail!(Failure::Usage(
            "cannot use --resume: the comparison is stored as a run; continue it with toll run --resume".into()
        ));
    }
    for name in [&arguments.base, &arguments.new] {
        require(name).map_err(Failure::Usage)?;
    }
    if asked.new.items.is_empty() && asked.new.reference.is_none() {
        asked.new.items.push(KERNEL.name.to_owned());
    }
    asked.new.guests.guest = true;
    asked.new.guests.build_kernels = true;
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
