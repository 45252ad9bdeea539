//! Checks that need the whole experiment.

use super::expression::Expression;
use super::resolve::size_of;
use super::{AdviceKind, DerivedKind, Experiment, FigureKind, Level, Selector, Test, WorkloadKind};

/// What is wrong, and a word of the file that shows where.
pub(super) struct Problem {
    pub message: String,
    pub mention: Option<String>,
}

fn problem(mention: &str, message: String) -> Problem {
    Problem {
        message,
        mention: Some(mention.to_owned()),
    }
}

/// Most iterations in a trial; beyond it one wants more trials.
const ITERATIONS_MAX: u32 = 1_000_000;
/// Most blocks in a run.
const BLOCKS_MAX: u32 = 100_000;

const COPY_PARAMETERS: &[&str] = &["method", "source", "sink", "cache", "size", "buffer", "fs"];
const WRITE_PARAMETERS: &[&str] = &["buffer", "durability", "fs", "placement", "input"];
const SIZE_PARAMETERS: &[&str] = &["size", "buffer", "input"];

const COPY_WORDS: &[(&str, &[&str])] = &[
    (
        "method",
        &[
            "byte",
            "page",
            "page-aligned",
            "fs-block",
            "swept",
            "advised",
            "fcntl-dupfd",
            "readv",
            "mmap",
            "sendfile",
            "splice",
            "vmsplice",
            "copy-file-range",
            "io-uring",
            "system-cat",
        ],
    ),
    ("source", &["zero", "file"]),
    ("sink", &["null", "pipe", "file", "socket"]),
    ("cache", &["cold", "warm"]),
    ("fs", FILE_SYSTEMS),
];
const WRITE_WORDS: &[(&str, &[&str])] = &[
    (
        "durability",
        &[
            "none",
            "o-sync",
            "o-dsync",
            "o-direct",
            "fsync",
            "fdatasync",
        ],
    ),
    ("placement", &["overwrite", "append"]),
    ("fs", FILE_SYSTEMS),
];
/// Levels that the factor `fs` may have: the work directory's own, those made
/// on loop devices, and a mounted foreign one.
pub const FILE_SYSTEMS: &[&str] = &["work", "ext4", "xfs", "btrfs", "tmpfs", "foreign"];

/// Whether a workload has a parameter of this name.
pub(super) fn is_parameter(kind: WorkloadKind, name: &str) -> bool {
    match kind {
        WorkloadKind::Copy => COPY_PARAMETERS.contains(&name),
        WorkloadKind::Write => WRITE_PARAMETERS.contains(&name),
        WorkloadKind::Command => true,
    }
}

/// Checks an experiment as a whole.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    check_name(experiment)?;
    check_run(experiment)?;
    check_workload(experiment)?;
    check_constraints(experiment)?;
    for twin in experiment.twins.iter().chain(&experiment.reference) {
        check_selector(experiment, twin, "a twin or reference")?;
    }
    check_claims(experiment)?;
    check_derived(experiment)?;
    check_shown(experiment)
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
        if experiment.factors[..i]
            .iter()
            .any(|other| other.name == factor.name)
        {
            return Err(problem(
                &factor.name,
                format!("cannot use factor {}: it stands twice", factor.name),
            ));
        }
        if experiment.fixed(&factor.name).is_some() {
            return Err(problem(
                &factor.name,
                format!("cannot vary {}: the workload holds it fixed", factor.name),
            ));
        }
    }
    Ok(())
}

fn check_run(experiment: &Experiment) -> Result<(), Problem> {
    let run = &experiment.run;
    let wrong = |word: &str, message: &str| Err(problem(word, format!("cannot run: {message}")));
    if run.iterations == 0 || run.iterations > ITERATIONS_MAX {
        return wrong("iterations", "iterations is 1 to 1,000,000");
    }
    if run.warmup_iterations > ITERATIONS_MAX {
        return wrong(
            "warmup_iterations",
            "warmup_iterations is at most 1,000,000",
        );
    }
    if run.min_blocks == 0 || run.max_blocks < run.min_blocks || run.max_blocks > BLOCKS_MAX {
        return wrong(
            "blocks",
            "it needs 1 <= min_blocks <= max_blocks <= 100,000",
        );
    }
    if run.look_every == 0 {
        return wrong("look_every", "look_every is at least 1");
    }
    if run.time_budget_s <= 0.0 || run.trial_timeout_s <= 0.0 {
        return wrong("time", "time_budget and trial_timeout are above 0");
    }
    Ok(())
}

fn check_workload(experiment: &Experiment) -> Result<(), Problem> {
    let kind = experiment.workload.kind;
    let named = experiment.workload.parameters.iter();
    let varied = experiment
        .factors
        .iter()
        .flat_map(|factor| factor.levels.iter().map(move |level| (&factor.name, level)));
    for (name, level) in named.chain(varied) {
        if !is_parameter(kind, name) {
            let known = match kind {
                WorkloadKind::Copy => COPY_PARAMETERS,
                _ => WRITE_PARAMETERS,
            };
            return Err(problem(
                name,
                format!(
                    "cannot set {name}: this workload has no such parameter; it has {}",
                    known.join(", ")
                ),
            ));
        }
        check_value(kind, name, level)?;
    }
    if kind == WorkloadKind::Command {
        check_commands(experiment)
    } else {
        Ok(())
    }
}

fn check_value(kind: WorkloadKind, name: &str, level: &Level) -> Result<(), Problem> {
    let words = match kind {
        WorkloadKind::Copy => COPY_WORDS,
        WorkloadKind::Write => WRITE_WORDS,
        WorkloadKind::Command if name == "fs" => &[("fs", FILE_SYSTEMS)][..],
        WorkloadKind::Command => return Ok(()),
    };
    if let Some((_, allowed)) = words.iter().find(|(word, _)| *word == name)
        && !allowed.contains(&level.text.as_str())
    {
        return Err(problem(
            &level.text,
            format!(
                "cannot set {name} to {:?}: it is one of {}",
                level.text,
                allowed.join(", ")
            ),
        ));
    }
    if SIZE_PARAMETERS.contains(&name) {
        let bytes = size_of(level).map_err(|message| problem(&level.text, message))?;
        if name == "buffer" && bytes == 0 {
            return Err(problem(
                name,
                "cannot set buffer to 0: it is at least 1".into(),
            ));
        }
    }
    Ok(())
}

fn check_commands(experiment: &Experiment) -> Result<(), Problem> {
    let commands = &experiment.workload.commands;
    if commands.is_empty() {
        return Err(problem(
            "workload",
            "cannot run: the workload has no command".into(),
        ));
    }
    match experiment.factor("command") {
        Some(factor) => {
            for level in &factor.levels {
                if !commands.contains_key(&level.text) {
                    return Err(problem(
                        &level.text,
                        format!(
                            "cannot run command {:?}: it is not under commands",
                            level.text
                        ),
                    ));
                }
            }
            Ok(())
        }
        None if commands.len() == 1 => Ok(()),
        None => Err(problem(
            "commands",
            "cannot choose among commands: the factor command is missing".into(),
        )),
    }
}

fn check_constraints(experiment: &Experiment) -> Result<(), Problem> {
    for text in &experiment.constraints {
        let expression = Expression::parse(text).map_err(|message| problem(text, message))?;
        // Evaluated once on the first levels, so that an order between words
        // is refused here and not in the middle of planning.
        let first = |name: &str| {
            let factor = experiment
                .factor(name)
                .and_then(|f| f.levels.first().cloned());
            factor.or_else(|| experiment.fixed(name).cloned())
        };
        expression
            .holds(&first)
            .map_err(|message| problem(text, message))?;
    }
    Ok(())
}

/// A selector names factors or parameters only. A level that the profile does
/// not have is no error: what needs it is not testable in that profile.
fn check_selector(experiment: &Experiment, selector: &Selector, what: &str) -> Result<(), Problem> {
    for name in selector.keys() {
        if experiment.factor(name).is_none() && experiment.fixed(name).is_none() {
            return Err(problem(
                name,
                format!("cannot use {what}: there is no factor {name}"),
            ));
        }
    }
    Ok(())
}

fn check_claims(experiment: &Experiment) -> Result<(), Problem> {
    for (i, claim) in experiment.claims.iter().enumerate() {
        let id = &claim.id;
        if experiment.claims[..i].iter().any(|other| other.id == *id) {
            return Err(problem(
                id,
                format!("cannot use claim {id}: its id stands twice"),
            ));
        }
        if let Some(original) = &claim.corrects
            && !experiment.claims.iter().any(|other| other.id == *original)
        {
            return Err(problem(
                id,
                format!("cannot correct {original}: there is no such claim"),
            ));
        }
        match &claim.test {
            Test::Ratio(contrast) => {
                let what = format!("claim {id}");
                let pairs = contrast.per.iter().flat_map(|(of, to)| [of, to]);
                for selector in [&contrast.of, &contrast.to].into_iter().chain(pairs) {
                    check_selector(experiment, selector, &what)?;
                }
            }
            Test::Derived(derived) => {
                if !experiment.derived.iter().any(|other| other.id == *derived) {
                    return Err(problem(
                        id,
                        format!("cannot use claim {id}: there is no derived quantity {derived}"),
                    ));
                }
            }
            Test::Never(_) => {}
        }
    }
    Ok(())
}

fn numeric_factor(experiment: &Experiment, name: &str, what: &str) -> Result<(), Problem> {
    let factor = experiment.factor(name).ok_or_else(|| {
        problem(
            name,
            format!("cannot use {what}: there is no factor {name}"),
        )
    })?;
    if factor.levels.iter().any(|level| level.number.is_none()) {
        return Err(problem(
            name,
            format!("cannot use {what}: the levels of {name} are not all numbers or sizes"),
        ));
    }
    Ok(())
}

fn any_factor(experiment: &Experiment, name: &str, what: &str) -> Result<(), Problem> {
    match experiment.factor(name) {
        Some(_) => Ok(()),
        None => Err(problem(
            name,
            format!("cannot use {what}: there is no factor {name}"),
        )),
    }
}

fn check_derived(experiment: &Experiment) -> Result<(), Problem> {
    for derived in &experiment.derived {
        let what = format!("derived quantity {}", derived.id);
        if derived.kind == DerivedKind::Spread {
            any_factor(experiment, &derived.factor, &what)?;
        } else {
            numeric_factor(experiment, &derived.factor, &what)?;
        }
        check_selector(experiment, &derived.at, &what)?;
        if let DerivedKind::Crossing { of, to, .. } = &derived.kind {
            check_selector(experiment, of, &what)?;
            check_selector(experiment, to, &what)?;
        }
    }
    Ok(())
}

fn check_shown(experiment: &Experiment) -> Result<(), Problem> {
    for figure in &experiment.figures {
        let what = format!("figure {:?}", figure.title);
        match figure.kind {
            FigureKind::Curve => numeric_factor(experiment, &figure.factor, &what)?,
            FigureKind::Distribution => any_factor(experiment, &figure.factor, &what)?,
        }
        if let Some(series) = &figure.series {
            any_factor(experiment, series, &what)?;
        }
        check_selector(experiment, &figure.at, &what)?;
        for id in &figure.marks {
            if !experiment.derived.iter().any(|derived| derived.id == *id) {
                return Err(problem(
                    id,
                    format!("cannot mark {id} in {what}: nothing derives it"),
                ));
            }
        }
    }
    for advice in &experiment.advice {
        let what = format!("advice on {}", advice.topic);
        any_factor(experiment, &advice.factor, &what)?;
        if advice.kind == AdviceKind::Saturation {
            numeric_factor(experiment, &advice.factor, &what)?;
        }
        if let AdviceKind::Cost { over } = &advice.kind {
            numeric_factor(experiment, over, &what)?;
        }
        for name in &advice.each {
            any_factor(experiment, name, &what)?;
        }
        check_selector(experiment, &advice.at, &what)?;
    }
    for table in &experiment.tables {
        for row in &table.rows {
            check_selector(experiment, &row.at, &format!("table {:?}", table.title))?;
        }
    }
    Ok(())
}
