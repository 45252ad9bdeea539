//! Checks that need the whole experiment.

mod guest;
mod parts;
mod platform;
mod row;
mod workload;

use toll_wire::ITERATIONS_MAX;

use super::constraints::Constraints;
use super::expression::{Expression, Word};
use super::problem::{Problem, problem};
use super::settings::BLOCKS_MAX;
use super::{Experiment, Factor, references};

impl Experiment {
    /// Checks the experiment as a whole; needed only if [`parse`](super::parse) did not
    /// make it.
    pub fn check(&self) -> Result<(), String> {
        check(self).map_err(|problem| problem.message)
    }
}

/// Checks an experiment as a whole.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    check_frame(experiment)?;
    references::check(experiment)?;
    check_together(experiment)
}

/// Checks everything except what is judged and shown.
pub(super) fn check_frame(experiment: &Experiment) -> Result<(), Problem> {
    check_counts(experiment)?;
    check_name(experiment)?;
    check_combinations(experiment)?;
    check_run(experiment)?;
    references::check_counters(experiment)?;
    row::check(experiment)?;
    workload::check(experiment)?;
    guest::check(experiment)?;
    check_constraints(experiment)?;
    references::check_twins(experiment)
}

/// Checks rules that concern several statements together.
pub(super) fn check_together(experiment: &Experiment) -> Result<(), Problem> {
    check_counts(experiment)?;
    references::check_ids(experiment)
}

fn check_name(experiment: &Experiment) -> Result<(), Problem> {
    let name = &experiment.name;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with('.') {
        return Err(problem(
            "name",
            format!("cannot use name {name:?}: use at most 64 letters, digits, '_', '-' and '.'"),
        ));
    }
    for (i, factor) in experiment.factors.iter().enumerate() {
        let name = &factor.name;
        let is_twice = experiment.factors[..i]
            .iter()
            .any(|other| other.name == *name);
        let message = match experiment.fixed(name) {
            _ if name == "workdir" => {
                "cannot use factor workdir: {workdir} is the work directory".into()
            }
            _ if is_twice => format!("cannot use factor {name}: it is given twice"),
            Some(_) if experiment.is_of_guest(name) => {
                format!(
                    "cannot vary {name}: [guest] sets it to one value; remove that, or the factor"
                )
            }
            Some(_) => format!(
                "cannot vary {name}: [workload] sets it to one value; remove that, or the factor"
            ),
            None => continue,
        };
        return Err(problem(name, message));
    }
    Ok(())
}

/// Maximum number of statements of a kind. The limit bounds checks that compare factors with each
/// other or look for claims among treatments.
const STATEMENTS_MAX: usize = 1_000;

fn check_counts(experiment: &Experiment) -> Result<(), Problem> {
    for (what, count) in [
        ("factor", experiment.factors.len()),
        ("require", experiment.constraints.len()),
        ("counters", experiment.counters.len()),
        ("twins", experiment.twins.len()),
        ("claim", experiment.claims.len()),
        ("derived", experiment.derived.len()),
        ("table", experiment.tables.len()),
        ("figure", experiment.figures.len()),
        ("advice", experiment.advice.len()),
        ("platform", experiment.platforms.len()),
        ("metrics", experiment.parsed_metrics.len()),
        ("commands", experiment.workload.commands.len()),
        ("row", experiment.rows.len()),
    ] {
        if count > STATEMENTS_MAX {
            return Err(problem(
                what,
                format!("cannot use {count} of {what}: use at most {STATEMENTS_MAX}"),
            ));
        }
    }
    Ok(())
}

/// Maximum number of combinations of levels that a plan goes through.
const COMBINATIONS_MAX: u128 = 1_000_000;
/// Maximum number of evaluations of constraints, over all combinations.
const EVALUATIONS_MAX: u128 = 10_000_000;

fn check_combinations(experiment: &Experiment) -> Result<(), Problem> {
    let product = |factors: &mut dyn Iterator<Item = &Factor>| {
        factors
            .map(|factor| factor.levels.len() as u128)
            .fold(1_u128, u128::saturating_mul)
    };
    let count = match experiment.rows.as_slice() {
        [] => product(&mut experiment.factors.iter()),
        rows => rows
            .iter()
            .map(|row| product(&mut experiment.factors_of(row)))
            .fold(0, u128::saturating_add),
    };
    let constraints = experiment.constraints.len() as u128;
    match count {
        few @ 0..=COMBINATIONS_MAX if few * constraints <= EVALUATIONS_MAX => Ok(()),
        many => Err(problem(
            "factor",
            format!(
                "cannot plan {} combinations of levels: use fewer levels or factors",
                match many {
                    0..1_000_000_000_000 => many.to_string(),
                    _ => format!("more than 10^{}", many.ilog10()),
                }
            ),
        )),
    }
}

fn check_run(experiment: &Experiment) -> Result<(), Problem> {
    let run = &experiment.run;
    let wrong = |word: &str, message: &str| Err(problem(word, format!("cannot run: {message}")));
    if run.iterations == 0 || run.iterations > ITERATIONS_MAX {
        return wrong("iterations", "iterations must be 1 to 20,000");
    }
    if run.warmup_iterations > ITERATIONS_MAX {
        return wrong(
            "warmup_iterations",
            "warmup_iterations must be at most 20,000",
        );
    }
    if run.min_blocks == 0 || run.max_blocks < run.min_blocks || run.max_blocks > BLOCKS_MAX {
        return wrong(
            "blocks",
            "blocks need 1 <= min_blocks <= max_blocks <= 5,000",
        );
    }
    if run.time_budget_s <= 0.0 || run.trial_timeout_s.is_some_and(|limit| limit <= 0.0) {
        return wrong("time", "time_budget and trial_timeout must be above 0");
    }
    Ok(())
}

fn check_constraints(experiment: &Experiment) -> Result<(), Problem> {
    let names = Constraints::new(experiment, &[])?;
    for text in &experiment.constraints {
        let expression = Expression::parse(text).map_err(|message| problem(text, message))?;
        // Evaluated once with the first levels, so that an order between words
        // is refused here and not during planning.
        let first = |name: &str| {
            let factor = experiment.factor(name).and_then(|f| f.levels.first());
            match factor.or_else(|| experiment.fixed(name)) {
                Some(level) => Word::Level(level),
                None if names.is_name(name) => Word::Open,
                None => Word::Value,
            }
        };
        if let Some(words) = expression.comparison_without(&|word| names.is_name(word)) {
            return Err(problem(
                text,
                format!("cannot use constraint {text:?}: neither side of {words} is a factor"),
            ));
        }
        expression
            .holds(&first)
            .map_err(|message| problem(text, message))?;
    }
    Ok(())
}
