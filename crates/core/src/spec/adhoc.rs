//! Experiments made from commands on the command line.

use std::collections::BTreeMap;

use super::workload::NOWHERE;
use super::{
    BLOCKS_MAX, Experiment, Factor, GuestSettings, Level, LevelOverride, Selector, SpecError,
};
use super::{ComparisonGoal, PerCommand, RunSettings, Shell, WorkloadKind, WorkloadSpec};

pub use super::shell::{effective_shell, needs_shell};

/// The name of experiments made of commands.
pub const NAME: &str = "commands";

/// Commands to compare, as given on the command line.
#[derive(Debug, Clone, Default)]
pub struct AdhocCommands {
    /// Command templates, at least one.
    pub commands: Vec<String>,
    /// Names of the commands, in order. A command without a name is its own name.
    pub names: Vec<String>,
    pub overrides: Vec<LevelOverride>,
    /// Command with which the others are compared: one of `commands`, or a further one. If absent,
    /// the first command.
    pub reference: Option<String>,
    /// Whether to run the commands in a guest.
    pub in_guest: bool,
}

/// Makes an experiment of commands. The caller checks the experiment when it has all its settings.
/// The first treatment, or the one named as the reference, is the one with which all others are
/// compared, and it gets the A/A twin.
pub fn experiment(request: &AdhocCommands, profile: &str) -> Result<Experiment, SpecError> {
    let wrong = |message: String| SpecError {
        origin: "command line".into(),
        line: None,
        message,
    };
    let mut commands = request.commands.clone();
    if let Some(reference) = &request.reference
        && !commands.contains(reference)
    {
        // The reference comes last, so that names match the commands in the order given.
        commands.push(reference.clone());
    }
    if request.names.len() > commands.len() {
        return Err(wrong(format!(
            "cannot name {} commands: the command line has only {}; leave out the other names",
            request.names.len(),
            commands.len()
        )));
    }
    let named: Vec<(String, String)> = commands
        .iter()
        .enumerate()
        .map(|(i, command)| {
            (
                request.names.get(i).unwrap_or(command).clone(),
                command.clone(),
            )
        })
        .collect();
    let mut factors = Vec::new();
    let levels = named.iter().map(|(name, _)| word(name)).collect();
    let command_factor = Factor::new("command", levels, false).map_err(wrong)?;
    factors.push(command_factor);
    for chosen in &request.overrides {
        factors
            .push(Factor::new(&chosen.name, chosen.levels.clone(), chosen.is_size).map_err(wrong)?);
    }
    let mut reference: Selector = factors
        .iter()
        .map(|factor| (factor.name.clone(), factor.levels[0].clone()))
        .collect();
    if let Some(wanted) = &request.reference
        && let Some((name, _)) = named.iter().find(|(_, command)| command == wanted)
    {
        reference.insert("command".into(), word(name));
    }
    Ok(assemble(
        request,
        profile,
        named.into_iter().collect(),
        factors,
        reference,
    ))
}

/// Reads an option that may be given once for all commands, or once for each command in their
/// order.
pub fn per_command<T: Clone>(
    option: &str,
    values: &[T],
    commands: &[&str],
) -> Result<Option<PerCommand<T>>, String> {
    match values {
        [] => Ok(None),
        [all] => Ok(Some(PerCommand::Same(all.clone()))),
        several if several.len() == commands.len() => {
            let names = commands.iter().map(|name| (*name).to_owned());
            Ok(Some(PerCommand::Each(
                names.zip(several.iter().cloned()).collect(),
            )))
        }
        several => Err(format!(
            "cannot use {option} {} times: give it once for all commands, or once for each of the \
             {} commands, in their order",
            several.len(),
            commands.len()
        )),
    }
}

/// Returns a command's name as a level. The level is never a number, even if the name looks like
/// one.
fn word(text: &str) -> Level {
    Level {
        text: text.to_owned(),
        number: None,
    }
}

fn assemble(
    request: &AdhocCommands,
    profile: &str,
    commands: BTreeMap<String, String>,
    factors: Vec<Factor>,
    reference: Selector,
) -> Experiment {
    Experiment {
        name: NAME.into(),
        title: request.commands.join(" vs "),
        question: String::new(),
        report: None,
        profile: profile.to_owned(),
        metric: "duration_ns".into(),
        further_metrics: Vec::new(),
        left_to: BTreeMap::new(),
        workload: WorkloadSpec {
            kind: WorkloadKind::Command,
            parameters: BTreeMap::new(),
            commands,
            shell: Shell::Auto,
            setup: None,
            prepare: None,
            conclude: None,
            cleanup: None,
            input: NOWHERE.into(),
            copies: false,
            output: PerCommand::Same(NOWHERE.into()),
            environment: PerCommand::default(),
            ignore_failure: false,
        },
        rows: Vec::new(),
        guest: request.in_guest.then(|| {
            let mut guest = GuestSettings::default();
            // A varied parameter must not be fixed as well.
            for factor in &factors {
                guest.vary(&factor.name);
            }
            guest
        }),
        factors,
        constraints: Vec::new(),
        parsed_metrics: BTreeMap::new(),
        counters: Vec::new(),
        run: RunSettings {
            // The time limit ends the run earlier.
            max_blocks: BLOCKS_MAX,
            comparison_goal: match profile {
                "full" => ComparisonGoal::Precision,
                _ => ComparisonGoal::QuickAnswer,
            },
            ..RunSettings::of_profile(profile)
        },
        twins: vec![reference.clone()],
        without_twin: false,
        trees: None,
        reference: Some(reference),
        claims: Vec::new(),
        derived: Vec::new(),
        tables: Vec::new(),
        figures: Vec::new(),
        advice: Vec::new(),
        platforms: Vec::new(),
        parts: Vec::new(),
    }
}
