//! What the page's template is given: strings, ready to be placed.

use std::collections::BTreeMap;

use minijinja::{Value, context};

use super::table;
use crate::claim::model::{
    Accompaniment, Advice, Analysis, Comparison, DerivedEstimate, DisturbanceSummary, Estimate,
    GuestSummary, Staircase, TreatmentSummary, Verdict,
};
use crate::format;
use crate::report::plots::{self, NamedPlot, Theme};
use crate::report::{ReportedRun, words};
use crate::store::RunStatus;

/// Gathers what the page shows of a run.
pub fn run(reported: &ReportedRun) -> Value {
    let (run, analysis) = (reported.run, reported.analysis);
    context! {
        anchor => format!("run-{}-{}", run.id, run.uid),
        number => run.id,
        experiment => run.experiment.clone(),
        title => run.title.clone(),
        question => run.question.clone(),
        profile => run.profile.clone(),
        created => words::minute(&run.created_at),
        machine_line => words::machine_line(&run.machine),
        blocks => analysis.blocks,
        unfinished => run.status == RunStatus::Unfinished,
        imported => run.imported,
        counts_text => words::counts(analysis),
        counts => counts(analysis),
        verdicts => analysis
            .verdicts
            .iter()
            .map(|one| verdict(one, analysis))
            .collect::<Vec<_>>(),
        published => analysis.verdicts.iter().any(|verdict| verdict.report.is_some()),
        advice => analysis.advice.iter().map(advice).collect::<Vec<_>>(),
        claims_plot => plots::claims(reported, Theme::Light).map(plot),
        plots => plots::figures(reported, Theme::Light)
            .into_iter()
            .map(plot)
            .collect::<Vec<_>>(),
        tables => analysis.tables.iter().map(table::published).collect::<Vec<_>>(),
        box_tables => table::boxes(analysis),
        primary_metric => analysis.primary_metric.clone(),
        other_metrics => analysis.treatments.iter().any(|one| {
            one.estimates.keys().any(|metric| *metric != analysis.primary_metric)
        }),
        treatments => analysis
            .treatments
            .iter()
            .map(|one| treatment(one, analysis))
            .collect::<Vec<_>>(),
        derived => analysis.derived.iter().map(derived).collect::<Vec<_>>(),
        staircases => analysis
            .staircases
            .iter()
            .map(staircase)
            .collect::<Vec<_>>(),
        comparisons => analysis
            .comparisons
            .iter()
            .map(|one| comparison(one, analysis))
            .collect::<Vec<_>>(),
        reference => reference(analysis),
        twins => twins(analysis),
        twin_plots => plots::twins(reported, Theme::Light)
            .into_iter()
            .map(plot)
            .collect::<Vec<_>>(),
        disturbances => analysis.disturbances.iter().map(disturbance).collect::<Vec<_>>(),
        machine => machine(reported),
        mitigations => pairs(&run.machine.mitigations),
        guest_lines => analysis.guests.iter().map(words::guest_line).collect::<Vec<_>>(),
        guests => analysis.guests.iter().map(guest).collect::<Vec<_>>(),
        identity => identity(reported),
        warnings => analysis.warnings.clone(),
    }
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The drawing without its namespace, which an HTML page need not name.
fn plot(plot: NamedPlot) -> Value {
    let svg = plot
        .svg
        .replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    context! {
        svg => Value::from_safe_string(svg),
    }
}

fn class(outcome: &'static str) -> String {
    outcome.replace(' ', "-")
}

fn counts(analysis: &Analysis) -> Vec<Value> {
    words::OUTCOMES
        .into_iter()
        .filter(|outcome| words::outcome_count(analysis, *outcome) > 0)
        .map(|outcome| {
            context! {
                class => class(words::outcome(outcome)),
                symbol => words::symbol(outcome),
                label => words::outcome(outcome),
                count => words::outcome_count(analysis, outcome),
            }
        })
        .collect()
}

fn verdict(verdict: &Verdict, analysis: &Analysis) -> Value {
    let (value, interval) = format::measured_parts(verdict);
    let outcome = words::outcome(verdict.outcome);
    context! {
        class => class(outcome),
        symbol => words::symbol(verdict.outcome),
        outcome,
        id => verdict.id.clone(),
        text => verdict.text.clone(),
        report => verdict.report.clone(),
        corrects => verdict.corrects.clone(),
        contrast => verdict.contrast.clone(),
        quantity => verdict.quantity.clone(),
        published => format::published(verdict),
        measured => value,
        interval => interval,
        margin => format::margin(verdict),
        blocks => verdict.blocks,
        reason => verdict.reason.clone(),
        accompaniment => verdict
            .accompaniment
            .as_ref()
            .map(|one| accompaniment(one, analysis)),
    }
}

fn accompaniment(accompaniment: &Accompaniment, analysis: &Analysis) -> Value {
    let rows = accompaniment.differing.iter().map(|sides| {
        let unit = words::unit(analysis, &sides.metric);
        context! {
            metric => words::metric(&sides.metric),
            of => format::value(sides.of, unit),
            to => format::value(sides.to, unit),
            ratio => sides.ratio.as_ref().map(format::ratio_interval),
        }
    });
    context! {
        rows => rows.collect::<Vec<_>>(),
        same => words::same(accompaniment),
        brief => words::accompaniment_brief(accompaniment, analysis),
    }
}

fn advice(advice: &Advice) -> Value {
    context! {
        topic => advice.topic.clone(),
        text => advice.text.clone(),
        decided => advice.decided,
        evidence => advice.evidence.clone(),
    }
}

pub(super) fn or_nothing<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| format::NOTHING.to_owned(), text)
}

fn treatment(treatment: &TreatmentSummary, analysis: &Analysis) -> Value {
    let interval =
        |metric: &str, median: &Estimate| format::interval(median, words::unit(analysis, metric));
    let primary = treatment.estimates.get(&analysis.primary_metric);
    let others = treatment
        .estimates
        .iter()
        .filter(|(metric, _)| **metric != analysis.primary_metric)
        .map(|(metric, estimate)| (metric.clone(), interval(metric, &estimate.median)));
    context! {
        label => treatment.label.clone(),
        is_twin => treatment.twin_of.is_some(),
        skipped => treatment.skipped.clone(),
        trials => words::trials(treatment),
        median => or_nothing(primary, |one| {
            interval(&analysis.primary_metric, &one.median)
        }),
        others => others.collect::<Vec<_>>(),
        failure => treatment.first_failure.clone(),
        notes => treatment.notes.clone(),
    }
}

fn derived(derived: &DerivedEstimate) -> Value {
    context! {
        id => derived.id.clone(),
        text => derived.text.clone(),
        value => or_nothing(derived.estimate.as_ref(), |value| {
            format::derived(value, &derived.unit)
        }),
        details => derived
            .details
            .iter()
            .map(|(name, value)| (name.clone(), format::significant(*value)))
            .collect::<Vec<_>>(),
        note => derived.note.clone(),
    }
}

fn staircase(staircase: &Staircase) -> Value {
    let steps = staircase.steps.iter().map(|step| {
        context! {
            id => step.id.clone(),
            text => step.text.clone(),
            at => format::derived(&step.at, &staircase.factor_unit),
            before => format::interval(&step.before, &staircase.unit),
            after => format::interval(&step.after, &staircase.unit),
            rise => format::ratio(step.rise),
            cache => words::nearest_cache(step.nearest_cache.as_ref()),
        }
    });
    context! {
        title => words::staircase(staircase),
        steps => steps.collect::<Vec<_>>(),
    }
}

fn comparison(comparison: &Comparison, analysis: &Analysis) -> Value {
    context! {
        label => words::treatment_label(analysis, comparison.treatment),
        metric => comparison.metric.clone(),
        ratio => format::ratio_interval(&comparison.ratio),
        relation => words::relation(comparison.relation),
    }
}

fn reference(analysis: &Analysis) -> Option<String> {
    let comparison = analysis.comparisons.first()?;
    Some(words::treatment_label(analysis, comparison.reference))
}

fn twins(analysis: &Analysis) -> Vec<Value> {
    let twin = |twin: &crate::claim::model::TwinSummary| {
        context! {
            label => twin.label.clone(),
            metric => twin.metric.clone(),
            ratio => format::ratio_interval(&twin.ratio),
            band => format::percent(twin.band),
        }
    };
    analysis.twins.iter().map(twin).collect()
}

fn disturbance(disturbance: &DisturbanceSummary) -> Value {
    let unit = words::disturbance_unit(&disturbance.name);
    context! {
        name => disturbance.name.clone(),
        text => disturbance.text.clone(),
        affected => format!(
            "{} of {}",
            disturbance.trials_affected, disturbance.trials_recorded
        ),
        median => format::value(disturbance.median, unit),
        maximum => format::value(disturbance.maximum, unit),
    }
}

fn guest(guest: &GuestSummary) -> Value {
    let mut facts = pairs(&guest.levels);
    facts.extend(pairs(&guest.facts));
    if let Some(boot_ns) = guest.boot_ns {
        facts.push(("time to boot".to_owned(), format::duration_ns(boot_ns)));
    }
    if let Some(error) = &guest.first_error {
        facts.push(("first failure".to_owned(), error.clone()));
    }
    context! {
        line => words::guest_line(guest),
        facts => facts,
    }
}

fn machine(reported: &ReportedRun) -> Vec<(String, String)> {
    let machine = &reported.run.machine;
    let caches: Vec<String> = machine
        .caches_bytes
        .iter()
        .map(|(level, bytes)| format!("{level} {}", format::bytes(*bytes as f64)))
        .collect();
    let files = &machine.work_file_system;
    let unknown = || "not visible here".to_owned();
    let told = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let rows = [
        ("Host", machine.hostname.clone()),
        (
            "CPU",
            format!("{} ({} online)", machine.cpu_model, machine.cpus_online),
        ),
        ("Microcode", told(&machine.microcode)),
        ("Caches", caches.join(", ")),
        ("Simultaneous multithreading", told(&machine.smt)),
        ("Frequency governor", told(&machine.governor)),
        ("Virtualisation", machine.virtualization.clone()),
        ("Operating system", told(&machine.os)),
        (
            "Kernel",
            format!("{} {}", machine.kernel_release, machine.kernel_version),
        ),
        ("Kernel command line", machine.kernel_command_line.clone()),
        (
            "Clock",
            format!(
                "{}, {} a read",
                told(&machine.clock_source),
                format::duration_ns(machine.clock_read_ns)
            ),
        ),
        (
            "Memory",
            format!(
                "{}, {} swap, pages of {}",
                format::bytes(machine.memory_bytes as f64),
                format::bytes(machine.swap_bytes as f64),
                format::bytes(machine.page_bytes as f64)
            ),
        ),
        ("Huge pages", told(&machine.transparent_hugepage)),
        (
            "Work files on",
            format!("{} ({}), {}", files.kind, files.source, files.options),
        ),
        (
            "Run as root",
            if machine.root { "yes" } else { "no" }.to_owned(),
        ),
    ];
    rows.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn identity(reported: &ReportedRun) -> Vec<(String, String)> {
    let run = reported.run;
    let rows = [
        ("Experiment", Some(run.experiment.clone())),
        ("Run", Some(format!("{} ({})", run.id, run.uid))),
        ("Profile", Some(run.profile.clone())),
        ("Seed", Some(run.seed.to_string())),
        ("Started", Some(run.created_at.clone())),
        ("Last trial", run.updated_at.clone()),
        ("Stopped", run.stop_reason.clone()),
        ("toll", Some(run.toll_version.clone())),
        ("Command", Some(run.command_line.clone())),
    ];
    rows.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
