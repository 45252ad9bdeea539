//! The shape of an experiment file, and its conversion to an [`Experiment`].
//!
//! `docs/FORMAT.md` documents the fields for users.

use std::collections::BTreeMap;
use std::mem::take;

use serde::Deserialize;
use toml::Spanned;

use super::constraints::Constraints;
use super::error::SourceText;
use super::level::Levels;
use super::problem::Problem;
use super::reader::Reader;
use super::references::Scope;
use super::row::{ROW, RowsTable, factor_of_rows};
use super::settings::RunTable;
use super::shell::shell;
use super::workload::NOWHERE;
use super::{
    AdviceSpec, Claim, Derived, Experiment, Factor, FigureSpec, GuestSettings, Knob, Level,
    ParsedMetric, PerCommand, Platform, ReportPart, RunSettings, Selector, SpecError, Table,
    WorkloadKind, WorkloadSpec, left_out, references, validate,
};

/// Highest `format` of experiment files that this program reads.
const FORMAT_VERSION: i64 = 1;

/// Names of the profiles, from cheap to thorough.
const PROFILES: &[&str] = &["quick", "standard", "full"];

/// An experiment file. Statements that may be repeated carry their position, so that
/// errors can name the line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentFile {
    format: Spanned<i64>,
    name: String,
    title: Option<String>,
    #[serde(default)]
    question: String,
    report: Option<String>,
    metric: Option<MetricName>,
    workload: Spanned<WorkloadTable>,
    guest: Option<Spanned<GuestTable>>,
    #[serde(default)]
    rows: Vec<RowsTable>,
    #[serde(default)]
    factor: Vec<Spanned<FactorTable>>,
    #[serde(default)]
    require: Vec<String>,
    #[serde(default)]
    metrics: BTreeMap<String, Spanned<ParsedMetric>>,
    #[serde(default)]
    counters: Vec<String>,
    #[serde(default)]
    run: RunTable,
    #[serde(default)]
    profile: BTreeMap<String, Spanned<ProfileTable>>,
    #[serde(default)]
    twins: Vec<Selector>,
    reference: Option<Selector>,
    #[serde(default)]
    claim: Vec<Spanned<Claim>>,
    #[serde(default)]
    derived: Vec<Spanned<Derived>>,
    #[serde(default)]
    table: Vec<Spanned<Table>>,
    #[serde(default)]
    figure: Vec<Spanned<FigureSpec>>,
    #[serde(default)]
    advice: Vec<Spanned<AdviceSpec>>,
    #[serde(default)]
    platform: Vec<Spanned<Platform>>,
    #[serde(default)]
    part: Vec<Spanned<ReportPart>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "cannot read metric: it must be a name; did you mean [metrics.NAME], which \
                 describes a metric that is parsed from output?"
)]
enum MetricName {
    Name(String),
}

#[derive(Debug, Deserialize)]
struct WorkloadTable {
    kind: WorkloadKind,
    command: Option<String>,
    #[serde(default)]
    commands: BTreeMap<String, String>,
    shell: Option<String>,
    setup: Option<String>,
    prepare: Option<PerCommand>,
    conclude: Option<PerCommand>,
    cleanup: Option<String>,
    output: Option<PerCommand>,
    #[serde(default)]
    environment: PerCommand<BTreeMap<String, String>>,
    #[serde(default)]
    copies: bool,
    #[serde(default)]
    ignore_failure: bool,
    #[serde(flatten)]
    parameters: BTreeMap<String, Level>,
}

#[derive(Debug, Deserialize)]
struct GuestTable {
    #[serde(default)]
    knobs: BTreeMap<String, Knob>,
    #[serde(flatten)]
    parameters: BTreeMap<String, Level>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactorTable {
    name: String,
    levels: Levels,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProfileTable {
    factors: BTreeMap<String, Levels>,
    workload: BTreeMap<String, Level>,
    guest: BTreeMap<String, Level>,
    require: Vec<String>,
    run: RunTable,
}

/// Reads an experiment file and applies a profile.
pub fn parse(text: &str, origin: &str, profile: &str) -> Result<Experiment, SpecError> {
    let source = SourceText { origin, text };
    known_profile(profile).map_err(|message| source.error(None, message))?;
    let file: ExperimentFile = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
    let format = *file.format.get_ref();
    if !(1..=FORMAT_VERSION).contains(&format) {
        return Err(source.error(
            Some(file.format.span().start),
            format!("cannot read format {format}: this toll reads formats 1 to {FORMAT_VERSION}"),
        ));
    }
    let experiment = Reader { source }.experiment(file, profile)?;
    let read = |other: &str| {
        let file: ExperimentFile = toml::from_str(text).ok()?;
        Reader { source }.experiment(file, other).ok()
    };
    let others = PROFILES.iter().rev().take(2).rev();
    let others = others.filter(|other| **other != profile);
    Ok(Experiment {
        left_to: left_out::by_profile(&experiment, others, read),
        ..experiment
    })
}

/// Returns an error at the place in a file that a problem mentions.
pub fn located(text: &str, origin: &str, problem: Problem) -> SpecError {
    SourceText { origin, text }.problem(None, problem)
}

/// Collects the levels of factors and fixed parameters over all profiles.
fn levels_of_all_profiles(file: &ExperimentFile) -> BTreeMap<String, Vec<Level>> {
    let rows = file.rows.iter().flat_map(|table| &table.list);
    let rows = Levels::List(rows.map(|row| Level::new(&row.get_ref().name)).collect());
    let factors = file.factor.iter().map(Spanned::get_ref);
    // Factors of the file come last, so that a factor `row` of the file replaces that of the rows.
    let factors = factors.map(|factor| (factor.name.as_str(), &factor.levels));
    let factors: BTreeMap<&str, &Levels> = [(ROW, &rows)].into_iter().chain(factors).collect();
    let mut levels: BTreeMap<String, Vec<Level>> = BTreeMap::new();
    let mut add = |name: &str, more: Vec<Level>| {
        levels.entry(name.to_owned()).or_default().extend(more);
    };
    // The most thorough profile first: its levels are mostly in the file's order.
    for profile in PROFILES.iter().rev() {
        let profile = file.profile.get(*profile).map(Spanned::get_ref);
        for (name, of_file) in &factors {
            let own = profile.and_then(|profile| profile.factors.get(*name));
            // An impossible range is reported where it is used.
            let (of_factor, _) = own.unwrap_or(of_file).read().unwrap_or_default();
            add(name, of_factor);
        }
    }
    let profiles = file.profile.values().map(Spanned::get_ref);
    let changed = profiles.flat_map(|profile| profile.workload.iter().chain(&profile.guest));
    let guest = file.guest.iter();
    let guest = guest.flat_map(|guest| &guest.get_ref().parameters);
    let fixed = file.workload.get_ref().parameters.iter().chain(guest);
    for (name, level) in fixed.chain(changed) {
        add(name, vec![level.clone()]);
    }
    levels
}

fn known_profile(name: &str) -> Result<(), String> {
    if PROFILES.contains(&name) {
        Ok(())
    } else {
        Err(format!(
            "cannot use profile {name:?}: choose one of {}",
            PROFILES.join(", ")
        ))
    }
}

impl Reader<'_> {
    fn experiment(&self, mut file: ExperimentFile, profile: &str) -> Result<Experiment, SpecError> {
        let anywhere = |problem| self.source.problem(None, problem);
        let (derived, claims) = (take(&mut file.derived), take(&mut file.claim));
        let (tables, figures) = (take(&mut file.table), take(&mut file.figure));
        let (advice, platforms) = (take(&mut file.advice), take(&mut file.platform));
        let parts = take(&mut file.part);
        let constraints = file.require.clone();
        let mut levels = levels_of_all_profiles(&file);
        let mut experiment = self.frame(file, profile)?;
        validate::check_frame(&experiment).map_err(anywhere)?;
        references::check_metric(&experiment).map_err(anywhere)?;
        let guest = experiment.guest.iter().flat_map(|guest| &guest.parameters);
        for (name, level) in experiment.varied().chain(guest) {
            levels.entry(name.clone()).or_default().push(level.clone());
        }
        let metric = experiment.metric.clone();
        // Each kind of statement refers only to kinds that are read before it.
        experiment.derived = self.each(derived, |derived| {
            let derived = derived.finished(&metric);
            references::check_derived(&derived, Scope::new(&experiment, &levels)).map(|()| derived)
        })?;
        let constraints = Constraints::new(&experiment, &constraints);
        let constraints = constraints.map_err(|why| anywhere(why.into()))?;
        constraints.check_rows().map_err(anywhere)?;
        let claims = self.each(claims, |claim| {
            let claims = claim.finished(&experiment, &levels, &constraints)?;
            let mut each = claims.iter();
            each.try_for_each(|claim| {
                references::check_claim(claim, Scope::new(&experiment, &levels))
            })?;
            Ok(claims)
        })?;
        experiment.claims = claims.concat();
        experiment.tables = self.each(tables, |table| {
            let table = table.finished(&metric, experiment.report.as_deref())?;
            references::check_table(&table, Scope::new(&experiment, &levels)).map(|()| table)
        })?;
        experiment.figures = self.each(figures, |figure| {
            let figure = figure.finished(&metric)?;
            references::check_figure(&figure, Scope::new(&experiment, &levels)).map(|()| figure)
        })?;
        experiment.advice = self.each(advice, |advice| {
            let advice = advice.finished(&metric)?;
            references::check_advice(&advice, Scope::new(&experiment, &levels)).map(|()| advice)
        })?;
        experiment.platforms = self.each(platforms, |platform| platform.finished(&experiment))?;
        experiment.parts =
            self.each(parts, |part| Ok(part.check(&experiment).map(|()| part)?))?;
        validate::check_together(&experiment).map_err(anywhere)?;
        Ok(experiment)
    }

    /// Reads everything except what is judged and shown.
    fn frame(&self, file: ExperimentFile, profile: &str) -> Result<Experiment, SpecError> {
        let (overlay, overlay_at) = self.overlay(file.profile, profile)?;
        let workload_at = Some(file.workload.span().start);
        let mut workload = self.at(file.workload, workload)?;
        let mut factors = self.each(file.factor, |factor| {
            let levels = overlay.factors.get(&factor.name);
            let (levels, is_size) = levels.unwrap_or(&factor.levels).read()?;
            Ok(Factor::new(&factor.name, levels, is_size)?)
        })?;
        let named = file.metric.map(|MetricName::Name(name)| name);
        let metric = named.unwrap_or_else(|| "duration_ns".to_owned());
        let rows = self.rows(file.rows, &workload, &metric)?;
        if !rows.is_empty() && !factors.iter().any(|factor| factor.name == ROW) {
            let factor = factor_of_rows(&rows, overlay.factors.get(ROW));
            let factor = factor.map_err(|why| self.source.error(workload_at, why))?;
            factors.insert(0, factor);
        }
        let mut unknown = overlay.factors.keys();
        if let Some(name) = unknown.find(|name| !factors.iter().any(|f| f.name == **name)) {
            let message = format!("cannot set levels of {name}: there is no such factor");
            return Err(self.source.error(overlay_at, message));
        }
        workload.parameters.extend(overlay.workload);
        let guest = match (file.guest, overlay.guest.keys().next()) {
            (Some(guest), _) => {
                let settings = |table| guest_settings(table, &overlay.guest, &factors);
                Some(self.at(guest, settings)?)
            }
            (None, None) => None,
            (None, Some(name)) => {
                let why = format!("cannot set {name} of the guest: the experiment has no [guest]");
                return Err(self.source.error(overlay_at, why));
            }
        };
        if !factors.iter().any(|factor| factor.name == "command") {
            let chosen = factor_of_commands(&workload).transpose();
            let chosen = chosen.map_err(|message| self.source.error(workload_at, message))?;
            factors.splice(0..0, chosen);
        }
        let read = |(name, metric)| Ok((name, self.at(metric, parsed_metric)?));
        let run = RunSettings::of_profile(profile).with(file.run);
        let metrics: Result<_, SpecError> = file.metrics.into_iter().map(read).collect();
        Ok(Experiment {
            title: file.title.unwrap_or_else(|| file.name.clone()),
            name: file.name,
            question: file.question.trim().to_owned(),
            profile: profile.to_owned(),
            workload,
            rows,
            guest,
            factors,
            constraints: [file.require, overlay.require].concat(),
            parsed_metrics: metrics?,
            counters: file.counters,
            run: run.with(overlay.run),
            twins: file.twins,
            without_twin: false,
            trees: None,
            reference: file.reference,
            claims: Vec::new(),
            derived: Vec::new(),
            tables: Vec::new(),
            figures: Vec::new(),
            advice: Vec::new(),
            platforms: Vec::new(),
            parts: Vec::new(),
            report: file.report,
            metric,
            further_metrics: Vec::new(),
            left_to: BTreeMap::new(),
        })
    }

    /// Returns what the chosen profile changes, and its offset in the file.
    fn overlay(
        &self,
        mut profiles: BTreeMap<String, Spanned<ProfileTable>>,
        chosen: &str,
    ) -> Result<(ProfileTable, Option<usize>), SpecError> {
        for (name, profile) in &profiles {
            known_profile(name)
                .map_err(|message| self.source.error(Some(profile.span().start), message))?;
        }
        Ok(match profiles.remove(chosen) {
            Some(profile) => {
                let offset = profile.span().start;
                (profile.into_inner(), Some(offset))
            }
            None => (ProfileTable::default(), None),
        })
    }
}

/// Returns the factor that selects a command by its name. A single template, under the
/// empty name, needs none.
fn factor_of_commands(workload: &WorkloadSpec) -> Option<Result<Factor, String>> {
    let is_choice = workload.commands.keys().any(|name| !name.is_empty());
    let levels = workload.commands.keys().map(|name| Level::new(name));
    is_choice.then(|| Factor::new("command", levels.collect(), false))
}

/// Merges the settings of the file and its profile into the defaults.
fn guest_settings(
    table: GuestTable,
    overlay: &BTreeMap<String, Level>,
    factors: &[Factor],
) -> Result<GuestSettings, String> {
    let mut settings = GuestSettings {
        knobs: table.knobs,
        ..GuestSettings::default()
    };
    for factor in factors {
        // A factor replaces a default, but not what the file sets.
        settings.parameters.remove(&factor.name);
    }
    let given = table.parameters.into_iter();
    let overlay = overlay
        .iter()
        .map(|(name, level)| (name.clone(), level.clone()));
    for (name, level) in given.chain(overlay) {
        if !settings.has(&name) || settings.knobs.contains_key(&name) {
            return Err(format!(
                "cannot set {name} of the guest: guests have accelerator, command_line, environment, \
                 kernel, memory, partner, swap and vcpus; define knobs under [guest.knobs]"
            ));
        }
        settings.parameters.insert(name, level);
    }
    for (name, knob) in &settings.knobs {
        let is_factor = factors.iter().any(|factor| factor.name == *name);
        if is_factor == knob.value.is_some() {
            return Err(format!(
                "cannot use knob {name}: it needs either a value or a factor of the same name"
            ));
        }
    }
    Ok(settings)
}

fn workload(table: WorkloadTable) -> Result<WorkloadSpec, String> {
    let mut parameters = table.parameters;
    // For other kinds, `input` is a parameter: the kind `write` has one of this name.
    let input = match table.kind {
        WorkloadKind::Command => parameters.remove("input"),
        _ => None,
    };
    let mut commands = table.commands;
    if let Some(command) = table.command {
        if !commands.is_empty() {
            return Err("cannot have both command and commands: choose one".into());
        }
        commands.insert(String::new(), command);
    }
    Ok(WorkloadSpec {
        kind: table.kind,
        parameters,
        commands,
        shell: shell(table.shell.as_deref()),
        setup: table.setup,
        prepare: table.prepare,
        conclude: table.conclude,
        cleanup: table.cleanup,
        input: input.map_or_else(|| NOWHERE.into(), |input| input.text),
        output: table
            .output
            .unwrap_or_else(|| PerCommand::Same(NOWHERE.into())),
        environment: table.environment,
        copies: table.copies,
        ignore_failure: table.ignore_failure,
    })
}

fn parsed_metric(metric: ParsedMetric) -> Result<ParsedMetric, String> {
    let text = &metric.pattern;
    let pattern = regex::Regex::new(text)
        .map_err(|error| format!("cannot read pattern {text:?}: {error}"))?;
    match pattern.captures_len() {
        2 => Ok(metric),
        _ => Err(format!(
            "cannot use pattern {text:?}: it needs exactly one group, around the number"
        )),
    }
}
