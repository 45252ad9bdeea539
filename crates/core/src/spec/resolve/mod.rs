//! From the shape of an experiment file to an [`Experiment`].

mod claims;
mod guest;
mod shown;
mod table;

use std::collections::BTreeMap;

use toml::Spanned;

use claims::{claim_of, derived_of};
use shown::{advice_of, figure_of};
use table::table_of;

use super::error::SourceText;
use super::level::Scalar;
use super::quantity::{parse_duration, parse_share, parse_size};
use super::raw::{
    RawExperiment, RawFactor, RawLevels, RawParsedMetric, RawProfile, RawRun, RawSelector,
    RawStream, RawWorkload,
};
use super::{
    Experiment, FORMAT_VERSION, Factor, Level, ParsedMetric, RunSettings, Selector, Shell,
    SpecError, WorkloadSpec, validate,
};

/// Names of the profiles, from cheap to thorough.
pub const PROFILES: &[&str] = &["quick", "standard", "full"];

/// Reads an experiment file and applies a profile.
///
/// # Errors
/// If the text is no experiment, names something that is not there, or asks
/// for what cannot be; with the line where known.
pub fn parse(text: &str, origin: &str, profile: &str) -> Result<Experiment, SpecError> {
    let source = SourceText { origin, text };
    if !PROFILES.contains(&profile) {
        return Err(source.error(
            None,
            format!(
                "cannot use profile {profile:?}: it is none of {}",
                PROFILES.join(", ")
            ),
        ));
    }
    let raw: RawExperiment = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
    let format = *raw.format.get_ref();
    if !(1..=FORMAT_VERSION).contains(&format) {
        return Err(source.error(
            Some(raw.format.span().start),
            format!("cannot read format {format}: this toll knows 1 to {FORMAT_VERSION}"),
        ));
    }
    let experiment = Resolver { source }.experiment(raw, profile)?;
    validate::check(&experiment).map_err(|problem| {
        // A quoted word is where it is given; the last one where it stands twice.
        let quoted = |word: &String| {
            let double = text.rfind(&format!("\"{word}\""));
            double.or_else(|| text.rfind(&format!("'{word}'")))
        };
        let offset = problem
            .mention
            .and_then(|word| quoted(&word).or_else(|| text.find(&word)));
        source.error(offset, problem.message)
    })?;
    Ok(experiment)
}

struct Resolver<'a> {
    source: SourceText<'a>,
}

impl Resolver<'_> {
    fn at<T, R>(
        &self,
        spanned: &Spanned<T>,
        f: impl FnOnce(&T) -> Result<R, String>,
    ) -> Result<R, SpecError> {
        f(spanned.get_ref())
            .map_err(|message| self.source.error(Some(spanned.span().start), message))
    }

    fn each<T, R>(
        &self,
        list: &[Spanned<T>],
        f: impl Fn(&T) -> Result<R, String>,
    ) -> Result<Vec<R>, SpecError> {
        list.iter().map(|item| self.at(item, &f)).collect()
    }

    fn experiment(&self, raw: RawExperiment, profile: &str) -> Result<Experiment, SpecError> {
        let nothing = RawProfile::default();
        let chosen = raw.profiles.get(profile);
        let overlay = chosen.map_or(&nothing, Spanned::get_ref);
        self.known_profiles(&raw)?;
        let metric = raw.metric.as_ref().map_or_else(
            || "duration_ns".to_owned(),
            |metric| metric.get_ref().clone(),
        );
        let name = raw.name.get_ref().clone();
        let report = raw.report.clone();
        let mut workload = self.at(&raw.workload, workload)?;
        let mut factors = self.factors(&raw, overlay, chosen)?;
        for (parameter, value) in &overlay.workload {
            workload.parameters.insert(parameter.clone(), value.level());
        }
        let guest = self.guest(&raw, overlay, chosen, &factors)?;
        // A single template, under the empty name, needs no factor to choose it.
        let is_choice = workload.commands.keys().any(|name| !name.is_empty());
        if is_choice && !factors.iter().any(|f| f.name == "command") {
            let levels = workload
                .commands
                .keys()
                .map(|name| Level::new(name))
                .collect();
            let factor = Factor::new("command", levels, false)
                .map_err(|message| self.source.error(Some(raw.workload.span().start), message))?;
            factors.insert(0, factor);
        }
        let constraints = raw.require.iter().chain(&overlay.require);
        Ok(Experiment {
            title: raw.title.unwrap_or_else(|| name.clone()),
            name,
            question: raw.question.trim().to_owned(),
            profile: profile.to_owned(),
            workload,
            guest,
            factors,
            constraints: constraints.map(|text| text.get_ref().clone()).collect(),
            parsed_metrics: self.parsed_metrics(&raw.metrics)?,
            counters: raw.counters,
            run: self.run_settings(profile, &[&raw.run, &overlay.run])?,
            twins: self.each(&raw.twins, |twin| Ok(selector(twin)))?,
            reference: raw
                .reference
                .as_ref()
                .map(|chosen| selector(chosen.get_ref())),
            claims: self.each(&raw.claims, |claim| {
                claim_of(claim, &metric, report.as_deref())
            })?,
            derived: self.each(&raw.derived, |derived| derived_of(derived, &metric))?,
            tables: self.each(&raw.tables, |table| {
                table_of(table, &metric, report.as_deref())
            })?,
            figures: self.each(&raw.figures, |figure| figure_of(figure, &metric))?,
            advice: self.each(&raw.advice, |advice| advice_of(advice, &metric))?,
            report,
            metric,
        })
    }

    fn known_profiles(&self, raw: &RawExperiment) -> Result<(), SpecError> {
        for (name, profile) in &raw.profiles {
            if !PROFILES.contains(&name.as_str()) {
                return Err(self.source.error(
                    Some(profile.span().start),
                    format!(
                        "cannot use profile {name:?}: it is none of {}",
                        PROFILES.join(", ")
                    ),
                ));
            }
        }
        Ok(())
    }

    fn factors(
        &self,
        raw: &RawExperiment,
        overlay: &RawProfile,
        chosen: Option<&Spanned<RawProfile>>,
    ) -> Result<Vec<Factor>, SpecError> {
        let factors = self.each(&raw.factors, |factor| {
            factor_of(factor, overlay.factors.get(&factor.name))
        })?;
        let unknown = overlay
            .factors
            .keys()
            .find(|name| !factors.iter().any(|factor| factor.name == **name));
        if let Some(name) = unknown {
            return Err(self.source.error(
                chosen.map(|profile| profile.span().start),
                format!("cannot set levels of {name}: there is no such factor"),
            ));
        }
        Ok(factors)
    }

    fn parsed_metrics(
        &self,
        raw: &BTreeMap<String, Spanned<RawParsedMetric>>,
    ) -> Result<BTreeMap<String, ParsedMetric>, SpecError> {
        raw.iter()
            .map(|(name, metric)| Ok((name.clone(), self.at(metric, parsed_metric)?)))
            .collect()
    }

    fn run_settings(&self, profile: &str, layers: &[&RawRun]) -> Result<RunSettings, SpecError> {
        let mut run = default_settings(profile);
        for layer in layers {
            let set = |target: &mut u32, value: Option<u32>| {
                if let Some(value) = value {
                    *target = value;
                }
            };
            set(&mut run.iterations, layer.iterations);
            set(&mut run.warmup_iterations, layer.warmup_iterations);
            set(&mut run.warmup_blocks, layer.warmup_blocks);
            set(&mut run.min_blocks, layer.min_blocks);
            set(&mut run.max_blocks, layer.max_blocks);
            set(&mut run.look_every, layer.look_every);
            if let Some(text) = &layer.time_budget {
                run.time_budget_s =
                    self.at(text, |text| Ok(parse_duration(text)?.as_secs_f64()))?;
            }
            if let Some(text) = &layer.trial_timeout {
                run.trial_timeout_s =
                    Some(self.at(text, |text| Ok(parse_duration(text)?.as_secs_f64()))?);
            }
            if let Some(text) = &layer.target_ci {
                run.target_ci = self.at(text, |text| parse_share(text))?;
            }
        }
        Ok(run)
    }
}

/// What a profile means where an experiment says nothing.
pub(super) fn default_settings(profile: &str) -> RunSettings {
    let (min_blocks, max_blocks, time_budget_s, target_ci) = match profile {
        "quick" => (10, 20, 60.0, 0.05),
        "full" => (20, 200, 3600.0, 0.01),
        _ => (10, 60, 600.0, 0.02),
    };
    RunSettings {
        iterations: 1,
        warmup_iterations: 0,
        min_blocks,
        max_blocks,
        look_every: 5,
        warmup_blocks: 0,
        time_budget_s,
        target_ci,
        trial_timeout_s: None,
    }
}

fn selector(raw: &RawSelector) -> Selector {
    raw.iter()
        .map(|(name, value)| (name.clone(), value.level()))
        .collect()
}

fn joined(raw: &RawSelector, at: &RawSelector) -> Selector {
    let mut joined = selector(at);
    joined.extend(selector(raw));
    joined
}

/// A number as written, where sizes count in bytes.
fn number(scalar: &Scalar) -> Result<f64, String> {
    scalar
        .level()
        .number
        .ok_or_else(|| format!("cannot read {scalar} as a number or size"))
}

fn workload(raw: &RawWorkload) -> Result<WorkloadSpec, String> {
    let mut commands = raw.commands.clone();
    if let Some(command) = &raw.command {
        if !commands.is_empty() {
            return Err("cannot have both command and commands: choose one".into());
        }
        commands.insert(String::new(), command.clone());
    }
    let parameters = raw.parameters.iter();
    Ok(WorkloadSpec {
        kind: raw.kind,
        parameters: parameters
            .map(|(name, value)| (name.clone(), value.level()))
            .collect(),
        commands,
        shell: shell(raw.shell.as_deref()),
        setup: raw.setup.clone(),
        prepare: raw.prepare.clone(),
        cleanup: raw.cleanup.clone(),
        output: raw.output.clone().unwrap_or_else(|| "null".into()),
        ignore_failure: raw.ignore_failure,
    })
}

/// The meaning of a shell's name on the command line or in a file.
pub fn shell(name: Option<&str>) -> Shell {
    match name {
        None | Some("auto") => Shell::Auto,
        Some("none") => Shell::None,
        Some(program) => Shell::Program(program.to_owned()),
    }
}

fn factor_of(raw: &RawFactor, overlay: Option<&RawLevels>) -> Result<Factor, String> {
    let (levels, is_size) = match overlay.unwrap_or(&raw.levels) {
        RawLevels::List(list) => (list.iter().map(Scalar::level).collect(), false),
        RawLevels::Range(range) => range.levels()?,
    };
    Factor::new(&raw.name, levels, is_size)
}

fn parsed_metric(raw: &RawParsedMetric) -> Result<ParsedMetric, String> {
    let pattern = regex::Regex::new(&raw.pattern)
        .map_err(|error| format!("cannot read pattern {:?}: {error}", raw.pattern))?;
    if pattern.captures_len() != 2 {
        return Err(format!(
            "cannot use pattern {:?}: it needs exactly one group, around the number",
            raw.pattern
        ));
    }
    Ok(ParsedMetric {
        pattern: raw.pattern.clone(),
        from_stderr: raw.stream == RawStream::Stderr,
        unit: raw.unit.clone(),
        better: raw.better,
    })
}

/// A size given as a scalar, in bytes.
pub(super) fn size_of(level: &Level) -> Result<u64, String> {
    parse_size(&level.text)
}
