//! From the shape of an experiment file to an [`Experiment`].

use std::collections::BTreeMap;

use toml::Spanned;

use super::error::SourceText;
use super::level::Scalar;
use super::quantity::{parse_duration, parse_share, parse_size};
use super::raw::{
    RawAdvice, RawAdviceKind, RawClaim, RawDerived, RawDerivedKind, RawExperiment, RawFactor,
    RawFigure, RawLevels, RawParsedMetric, RawProfile, RawRun, RawSelector, RawStream, RawTable,
    RawWorkload,
};
use super::{
    AdviceKind, AdviceSpec, Claim, ClaimDirection, Contrast, Derived, DerivedKind, Experiment,
    FORMAT_VERSION, Factor, FigureSpec, Level, ParsedMetric, RunSettings, Selector, Shell,
    SpecError, Table, TableRow, Test, WorkloadSpec, validate,
};

/// Relative tolerance of a knee where none is given: 10 %.
const KNEE_TOLERANCE: f64 = 0.10;

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
                    self.at(text, |text| Ok(parse_duration(text)?.as_secs_f64()))?;
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
        trial_timeout_s: 60.0,
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

fn claim_of(raw: &RawClaim, metric: &str, report: Option<&str>) -> Result<Claim, String> {
    let wrong = |why: &str| format!("cannot use claim {}: {why}", raw.id);
    let metric = raw.metric.clone().unwrap_or_else(|| metric.to_owned());
    let test = match (&raw.not_testable, &raw.derived, &raw.of, &raw.to) {
        (Some(reason), None, None, None) => Test::Never(reason.clone()),
        (None, Some(id), None, None) => Test::Derived(id.clone()),
        (None, None, Some(of), Some(to)) => Test::Ratio(Contrast {
            metric,
            of: joined(of, &raw.at),
            to: joined(to, &raw.at),
            per: match (&raw.per_of, &raw.per_to) {
                (None, None) => None,
                (Some(of), Some(to)) => Some((joined(of, &raw.at), joined(to, &raw.at))),
                _ => return Err(wrong("per_of and per_to come together")),
            },
        }),
        _ => {
            return Err(wrong(
                "it needs either of and to, or derived, or not_testable",
            ));
        }
    };
    let (direction, threshold, threshold_high) = direction_of(raw, &test)?;
    let published = raw.published.as_ref().map(number).transpose()?;
    Ok(Claim {
        id: raw.id.clone(),
        text: raw.text.clone(),
        report: raw.report.clone().or_else(|| match raw.corrects {
            None => report.map(str::to_owned),
            Some(_) => None,
        }),
        corrects: raw.corrects.clone(),
        test,
        direction,
        threshold,
        threshold_high,
        published,
        margin: raw.margin.as_deref().map(parse_share).transpose()?,
    })
}

fn direction_of(raw: &RawClaim, test: &Test) -> Result<(ClaimDirection, f64, Option<f64>), String> {
    let wrong = |why: &str| format!("cannot use claim {}: {why}", raw.id);
    if let Some((low, high)) = &raw.between {
        let (low, high) = (number(low)?, number(high)?);
        return match raw.direction {
            None | Some(ClaimDirection::Within) if low < high => {
                Ok((ClaimDirection::Within, low, Some(high)))
            }
            _ => Err(wrong(
                "between needs a lower and an upper bound, and no other direction",
            )),
        };
    }
    let threshold = raw.threshold.as_ref().map(number).transpose()?;
    match (test, raw.direction) {
        (Test::Never(_), direction) => Ok((
            direction.unwrap_or(ClaimDirection::Equal),
            threshold.unwrap_or(1.0),
            None,
        )),
        (_, None) => Err(wrong("direction is missing: less, greater or equal")),
        (_, Some(ClaimDirection::Within)) => Err(wrong("direction within needs between")),
        (Test::Derived(_), Some(_)) if threshold.is_none() => {
            Err(wrong("a derived quantity needs a threshold"))
        }
        (Test::Ratio(_), Some(_)) if threshold.is_some_and(|value| value <= 0.0) => {
            Err(wrong("the threshold of a ratio is above 0"))
        }
        (_, Some(direction)) => Ok((direction, threshold.unwrap_or(1.0), None)),
    }
}

fn derived_of(raw: &RawDerived, metric: &str) -> Result<Derived, String> {
    let wrong = |why: &str| format!("cannot use derived quantity {}: {why}", raw.id);
    let kind = match raw.kind {
        RawDerivedKind::Knee => DerivedKind::Knee {
            tolerance: match &raw.tolerance {
                Some(text) => parse_share(text)?,
                None => KNEE_TOLERANCE,
            },
        },
        RawDerivedKind::Crossing => match (&raw.of, &raw.to) {
            (Some(of), Some(to)) => DerivedKind::Crossing {
                of: joined(of, &raw.at),
                to: joined(to, &raw.at),
                value: raw.value,
            },
            _ => return Err(wrong("a crossing needs of and to")),
        },
        RawDerivedKind::CostPerCall => DerivedKind::CostPerCall,
        RawDerivedKind::CostPerByte => DerivedKind::CostPerByte,
        RawDerivedKind::CallShare => DerivedKind::CallShare {
            level: raw
                .level
                .as_ref()
                .map(Scalar::level)
                .ok_or_else(|| wrong("a call share needs a level"))?,
        },
        RawDerivedKind::Spread => DerivedKind::Spread,
    };
    Ok(Derived {
        id: raw.id.clone(),
        text: raw.text.clone(),
        kind,
        factor: raw.factor.clone(),
        among: raw.among.iter().map(Scalar::level).collect(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        at: selector(&raw.at),
    })
}

fn table_of(raw: &RawTable, metric: &str, report: Option<&str>) -> Result<Table, String> {
    let rows = raw.rows.iter().map(|row| TableRow {
        label: row.label.clone(),
        at: row
            .at
            .as_ref()
            .map_or_else(Selector::new, |at| joined(at, &raw.at)),
        published: row.published,
        published_text: row.text.clone(),
    });
    if let Some(label) = &raw.relative_to
        && !raw.rows.iter().any(|row| row.label == *label)
    {
        return Err(format!(
            "cannot relate table to row {label:?}: there is no such row"
        ));
    }
    Ok(Table {
        title: raw.title.clone(),
        report: raw
            .report
            .as_deref()
            .or(report)
            .unwrap_or_default()
            .to_owned(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        published_unit: raw.unit.clone(),
        relative_to: raw.relative_to.clone(),
        note: raw.note.clone(),
        rows: rows.collect(),
    })
}

fn figure_of(raw: &RawFigure, metric: &str) -> Result<FigureSpec, String> {
    let acceleration = match (&raw.acceleration_of, &raw.acceleration_to) {
        (None, None) => None,
        (Some(of), Some(to)) => Some((joined(of, &raw.at), joined(to, &raw.at))),
        _ => {
            return Err(format!(
                "cannot draw {:?}: acceleration_of and acceleration_to come together",
                raw.title
            ));
        }
    };
    let point = |(x, y): &(Scalar, f64)| Ok::<_, String>((number(x)?, *y));
    Ok(FigureSpec {
        title: raw.title.clone(),
        kind: raw.kind,
        factor: raw.factor.clone(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        series: raw.series.clone(),
        at: selector(&raw.at),
        except: raw.except.iter().map(Scalar::level).collect(),
        acceleration,
        log_y: raw.log_y,
        marks: raw.marks.clone(),
        published: raw.published.iter().map(point).collect::<Result<_, _>>()?,
    })
}

fn advice_of(raw: &RawAdvice, metric: &str) -> Result<AdviceSpec, String> {
    let kind = match (raw.kind, &raw.over) {
        (RawAdviceKind::Best, None) => AdviceKind::Best,
        (RawAdviceKind::Saturation, None) => AdviceKind::Saturation,
        (RawAdviceKind::Cost, Some(over)) => AdviceKind::Cost { over: over.clone() },
        (RawAdviceKind::Cost, None) => {
            return Err(
                "cannot advise on cost: over names the factor that varies the calls".into(),
            );
        }
        (_, Some(_)) => return Err("cannot advise: over goes with kind cost".into()),
    };
    Ok(AdviceSpec {
        topic: raw.topic.clone(),
        kind,
        factor: raw.factor.clone(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        each: raw.each.clone(),
        at: selector(&raw.at),
        except: raw.except.iter().map(Scalar::level).collect(),
    })
}

/// A size given as a scalar, in bytes.
pub(super) fn size_of(level: &Level) -> Result<u64, String> {
    parse_size(&level.text)
}
