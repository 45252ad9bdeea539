//! Experiments made from commands on the command line.

use std::collections::BTreeMap;

use super::{Experiment, Factor, GuestSettings, Level, LevelOverride, Selector, SpecError};
use super::{Shell, WorkloadKind, WorkloadSpec};

/// Commands to compare, as given on the command line.
#[derive(Debug, Clone, Default)]
pub struct AdhocCommands {
    /// Command templates, at least one.
    pub commands: Vec<String>,
    /// Names for them, in order; a command without one is its own name.
    pub names: Vec<String>,
    pub overrides: Vec<LevelOverride>,
    /// Template to run once before each treatment's first trial.
    pub setup: Option<String>,
    /// Template to run before every timed repetition.
    pub prepare: Option<String>,
    /// Template to run once after each treatment's last trial.
    pub cleanup: Option<String>,
    /// How commands are started; `sh` where needed if absent.
    pub shell: Option<String>,
    /// Where their standard input comes from; nowhere if absent.
    pub input: Option<String>,
    /// Where their standard output goes; nowhere if absent.
    pub output: Option<String>,
    /// Take non-zero exit statuses for measurements.
    pub ignore_failure: bool,
    /// Command to which the others are compared: one of them, or a further
    /// one. The first if absent.
    pub reference: Option<String>,
    pub counters: Vec<String>,
    /// Run them in a guest.
    pub in_guest: bool,
}

/// Makes an experiment of commands. Its first treatment, or the one named as
/// the reference, is what all others are compared to, and its A/A twin.
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
        // Last, so that names go to the commands in the order given.
        commands.push(reference.clone());
    }
    if request.names.len() > commands.len() {
        return Err(wrong(format!(
            "cannot name {} commands: there are {}",
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
    let workload = WorkloadSpec {
        kind: WorkloadKind::Command,
        parameters: BTreeMap::new(),
        commands: named.iter().cloned().collect(),
        shell: super::shell(request.shell.as_deref()),
        setup: request.setup.clone(),
        prepare: request.prepare.clone(),
        cleanup: request.cleanup.clone(),
        input: request.input.clone().unwrap_or_else(|| "null".into()),
        copies: false,
        output: request.output.clone().unwrap_or_else(|| "null".into()),
        ignore_failure: request.ignore_failure,
    };
    let experiment = assemble(request, profile, workload, factors, reference);
    super::validate::check(&experiment).map_err(|problem| wrong(problem.message))?;
    Ok(experiment)
}

/// A command's name as a level, never a number however it looks.
fn word(text: &str) -> Level {
    Level {
        text: text.to_owned(),
        number: None,
    }
}

fn assemble(
    request: &AdhocCommands,
    profile: &str,
    workload: WorkloadSpec,
    factors: Vec<Factor>,
    reference: Selector,
) -> Experiment {
    Experiment {
        name: "commands".into(),
        title: request.commands.join(" vs "),
        question: String::new(),
        report: None,
        profile: profile.to_owned(),
        metric: "duration_ns".into(),
        workload,
        guest: request.in_guest.then(|| {
            let mut guest = GuestSettings::default();
            // What is varied is not fixed as well.
            for factor in &factors {
                guest.vary(&factor.name);
            }
            guest
        }),
        factors,
        constraints: Vec::new(),
        parsed_metrics: BTreeMap::new(),
        counters: request.counters.clone(),
        run: super::file::default_settings(profile),
        twins: vec![reference.clone()],
        reference: Some(reference),
        claims: Vec::new(),
        derived: Vec::new(),
        tables: Vec::new(),
        figures: Vec::new(),
        advice: Vec::new(),
    }
}

/// Whether a command line needs a shell: it has an operator, expansion, quote
/// that only a shell treats, or starts with a word that a shell provides.
pub fn needs_shell(command: &str) -> bool {
    const BUILTINS: &[&str] = &[
        ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval", "exec",
        "exit", "export", "fg", "for", "getopts", "hash", "if", "jobs", "local", "read",
        "readonly", "return", "set", "shift", "source", "time", "times", "trap", "type", "ulimit",
        "umask", "unalias", "unset", "until", "wait", "while", "{", "!",
    ];
    if command.contains([
        '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '#', '~', '\n',
    ]) {
        return true;
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    first.contains('=') || first.is_empty() || BUILTINS.contains(&first)
}

/// The shell of an experiment's command line.
pub fn effective_shell(shell: &Shell, command: &str) -> toll_wire::ShellChoice {
    match shell {
        Shell::None => toll_wire::ShellChoice::None,
        Shell::Program(program) => toll_wire::ShellChoice::Program(program.into()),
        Shell::Auto if needs_shell(command) => toll_wire::ShellChoice::Program("sh".into()),
        Shell::Auto => toll_wire::ShellChoice::None,
    }
}
