//! The plan that `toll run --dry-run` shows.

use toll_core::claim::blocks_needed;
use toll_core::plan::{Plan, TreatmentParameters};
use toll_core::spec::Experiment;
use toll_document::plural;
use toll_host::environment::{Workspace, check_foreign, file_system_obstacle};
use toll_host::trial::{Guests, memory_shortage, missing_program};
use toll_system::Failure;

use crate::arguments::WorkDirectories;
use crate::launch;

/// Describes what a run would do.
pub fn describe(
    experiment: &Experiment,
    seed: u64,
    directories: &WorkDirectories,
) -> anyhow::Result<Vec<String>> {
    let plan = Plan::new(experiment, seed).map_err(Failure::Usage)?;
    let workspace = launch::workspace_of(experiment, &plan, directories)?;
    Workspace::check(&workspace).map_err(Failure::Prerequisite)?;
    let run = &experiment.run;
    let mut lines = vec![
        format!("{}: {}", experiment.name, experiment.title),
        format!(
            "  profile {}, seed {seed}, {} (A/A twins included)",
            experiment.profile,
            plural(plan.treatments.len(), "treatment")
        ),
        format!(
            "  {} to {} blocks, iterations per trial: {}, at most {} s, intervals to ±{} %",
            run.min_blocks,
            run.max_blocks,
            run.iterations,
            run.time_budget_s,
            run.target_ci * 100.0
        ),
    ];
    if let Some(needed) = blocks_needed(experiment, &plan.treatments) {
        lines.push(format!(
            "  deciding everything takes at least {}",
            plural(needed, "block")
        ));
    }
    lines.push("  first block, in this order:".to_owned());
    for index in plan.block_order(0, None) {
        let treatment = &plan.treatments[index];
        let parameters = TreatmentParameters::new(experiment, treatment).map_err(Failure::Usage)?;
        let obstacle = match treatment.boot() {
            Some(boot) => Guests::obstacle(&boot),
            None => obstacle_of(&parameters.file_system(), directories)
                .or_else(|| memory_shortage(&parameters)),
        };
        let obstacle = obstacle
            .or_else(|| parameters.contradiction())
            .or_else(|| missing_program(experiment, treatment));
        let skipped = obstacle.map_or_else(String::new, |why| format!("  (skipped: {why})"));
        lines.push(format!("    {}{skipped}", treatment.label));
    }
    for claim in &experiment.claims {
        let what = if claim.is_check { "check" } else { "claim" };
        lines.push(format!("  {what} {}: {}", claim.id, claim.text));
        let underpowered = claim.underpowered.iter();
        lines.extend(underpowered.map(|why| format!("    may stay undecided: {why}")));
    }
    Ok(lines)
}

/// Returns why a file system is not available; `None` if it is.
fn obstacle_of(file_system: &str, directories: &WorkDirectories) -> Option<String> {
    match &directories.foreign_dir {
        Some(named) if file_system == "foreign" => check_foreign(named).err(),
        _ => file_system_obstacle(file_system),
    }
}
