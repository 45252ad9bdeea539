//! The tables of one run.

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;
use serde::Serialize;
use toll_core::claim::Run;
use toll_core::claim::model::{ClaimOverRuns, EValues, OverRuns, Verdict};
use toll_core::reason::Reason;
use toll_core::run::TrialRecord;

use super::table::{Column, Values};

/// A table's name and columns.
pub type Table = (&'static str, Vec<Column>);

/// All tables of a run. The table of runs comes last: a run counts once this table has it.
pub fn tables(run: &Run, over: Option<&OverRuns>) -> [Table; 5] {
    [
        ("samples", samples(run)),
        ("treatments", treatments(run)),
        ("verdicts", verdicts(run, over)),
        ("machines", machines(run)),
        ("runs", runs(run)),
    ]
}

fn runs(run: &Run) -> Vec<Column> {
    let record = &run.stored.run;
    let completed = run.stored.trials.iter();
    let completed = completed.filter(|trial| !trial.samples.is_empty()).count();
    vec![
        text("run", [&record.uid]),
        text("title", [&record.title]),
        text("profile", [&record.profile]),
        text("seed", [record.seed.to_string()]),
        text("created_at", [&record.created_at]),
        optional_text("updated_at", [record.updated_at.as_ref()]),
        text("status", [name_of(&record.status)]),
        optional_text("stop_reason", [record.stop_reason.as_ref()]),
        text("toll_version", [&record.toll_version]),
        text("command_line", [&record.command_line]),
        integer("blocks", [run.analysis.blocks as u64]),
        integer("trials", [run.stored.trials.len() as u64]),
        integer("trials_completed", [completed as u64]),
        text("platforms", [json(&run.stored.experiment.platforms)]),
    ]
}

fn machines(run: &Run) -> Vec<Column> {
    let machine = &run.stored.run.machine;
    vec![
        text("run", [&run.stored.run.uid]),
        text("hostname", [&machine.hostname]),
        text("cpu_model", [&machine.cpu_model]),
        integer("cpus_online", [machine.cpus_online.into()]),
        optional_text("microcode", [machine.microcode.as_ref()]),
        text("mitigations", [json(&machine.mitigations)]),
        optional_text("smt", [machine.smt.as_ref()]),
        optional_text("governor", [machine.governor.as_ref()]),
        text("virtualization", [&machine.virtualization]),
        optional_text("os", [machine.os.as_ref()]),
        text("kernel_release", [&machine.kernel_release]),
        text("kernel_version", [&machine.kernel_version]),
        text("kernel_command_line", [&machine.kernel_command_line]),
        optional_text("clock_source", [machine.clock_source.as_ref()]),
        number("clock_read_ns", [Some(machine.clock_read_ns)]),
        integer("memory_bytes", [machine.memory_bytes]),
        integer("swap_bytes", [machine.swap_bytes]),
        integer("page_bytes", [machine.page_bytes]),
        text("file_system", [&machine.work_file_system.kind]),
        text("file_system_source", [&machine.work_file_system.source]),
        text("file_system_options", [&machine.work_file_system.options]),
        Column {
            name: "is_root",
            values: Values::Flag(vec![Some(machine.root)]),
        },
    ]
}

fn treatments(run: &Run) -> Vec<Column> {
    let all = &run.stored.treatments;
    let levels = |treatment: &toll_core::plan::Treatment| {
        let levels = treatment.levels.iter();
        let texts: BTreeMap<&str, &str> = levels
            .map(|(name, level)| (name.as_str(), level.text.as_str()))
            .collect();
        json(&texts)
    };
    vec![
        text("run", all.iter().map(|_| &run.stored.run.uid)),
        integer("treatment", all.iter().map(|one| one.index as u64)),
        text("label", all.iter().map(|one| &one.label)),
        text("levels", all.iter().map(levels)),
        Column {
            name: "twin_of",
            values: Values::Integer(all.iter().map(|one| one.twin_of.map(whole)).collect()),
        },
        optional_text(
            "skipped",
            all.iter()
                .map(|one| one.skipped.as_ref().map(Reason::to_string)),
        ),
    ]
}

/// One row for each trial, iteration and metric, and one without a value for each failed trial.
fn samples(run: &Run) -> Vec<Column> {
    let uid = ByteArray::from(run.stored.run.uid.as_str());
    let mut names: BTreeMap<&str, ByteArray> = BTreeMap::new();
    let (mut metrics, mut iterations, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut trials: Vec<&TrialRecord> = Vec::new();
    for trial in &run.stored.trials {
        for (metric, samples) in &trial.samples {
            let bytes = || ByteArray::from(metric.as_str());
            let name = names.entry(metric).or_insert_with(bytes);
            for (iteration, value) in samples.iter().enumerate() {
                trials.push(trial);
                metrics.push(Some(name.clone()));
                iterations.push(Some(whole(iteration)));
                values.push(Some(*value));
            }
        }
        if trial.samples.is_empty() {
            trials.push(trial);
            metrics.push(None);
            iterations.push(None);
            values.push(None);
        }
    }
    let column = |name, values| Column { name, values };
    vec![
        column("run", Values::Text(vec![Some(uid); trials.len()])),
        integer("block", trials.iter().map(|one| one.block.into())),
        integer("position", trials.iter().map(|one| one.position.into())),
        integer("treatment", trials.iter().map(|one| one.treatment as u64)),
        text("state", trials.iter().map(|one| one.state.name())),
        column("iteration", Values::Integer(iterations)),
        column("metric", Values::Text(metrics)),
        column("value", Values::Number(values)),
    ]
}

fn verdicts(run: &Run, over: Option<&OverRuns>) -> Vec<Column> {
    let all = || run.analysis.verdicts.iter();
    let measured = |part: fn(&toll_core::claim::model::Estimate) -> f64| {
        move |one: &Verdict| one.measured.as_ref().map(part)
    };
    let differ_by = |one: &Verdict| {
        let mut claims = run.stored.experiment.claims.iter();
        claims.find(|claim| claim.id == one.id)?.differ_by.as_ref()
    };
    let mut columns = vec![
        text("run", all().map(|_| &run.stored.run.uid)),
        text("claim", all().map(|one| &one.id)),
        text("text", all().map(|one| &one.text)),
        optional_text("report", all().map(|one| one.report.as_ref())),
        optional_text("corrects", all().map(|one| one.corrects.as_ref())),
        text("contrast", all().map(|one| &one.contrast)),
        text("quantity", all().map(|one| &one.quantity)),
        text("unit", all().map(|one| &one.unit)),
        optional_text("differ_by", all().map(differ_by)),
        text("direction", all().map(|one| name_of(&one.direction))),
        number("threshold", all().map(|one| Some(one.threshold))),
        number("threshold_high", all().map(|one| one.threshold_high)),
        number("published", all().map(|one| one.published)),
        number("value", all().map(measured(|one| one.value))),
        number("low", all().map(measured(|one| one.low))),
        number("high", all().map(measured(|one| one.high))),
        number("confidence", all().map(measured(|one| one.confidence))),
        number("margin", all().map(|one| Some(one.margin))),
        integer("blocks", all().map(|one| one.blocks as u64)),
        number("p_adjusted", all().map(|one| one.p_adjusted)),
        number("p_adjusted_fdr", all().map(|one| one.p_adjusted_fdr)),
        text("outcome", all().map(|one| name_of(&one.outcome))),
        text("reason", all().map(|one| &one.reason)),
    ];
    columns.extend(evidence(run, over));
    columns
}

/// The evidence on each claim: from the run alone, and multiplied with the evidence of comparable
/// runs.
fn evidence(run: &Run, over: Option<&OverRuns>) -> Vec<Column> {
    let alone = || run.analysis.verdicts.iter().map(|one| one.e_values);
    let claim = |index| over.and_then(|over| over.claims.get(index));
    let claims = || (0..run.analysis.verdicts.len()).map(claim);
    let multiplied = || claims().map(|claim| claim?.e_values);
    let support = |found: Option<EValues>| found.map(|found| found.log10_support);
    let refutation = |found: Option<EValues>| found.map(|found| found.log10_refutation);
    let runs = |claim: Option<&ClaimOverRuns>| claim.map_or(0, |claim| claim.runs as u64);
    let outcome = |claim: Option<&ClaimOverRuns>| claim.map(|claim| name_of(&claim.outcome));
    vec![
        number("log10_support", alone().map(support)),
        number("log10_refutation", alone().map(refutation)),
        integer("runs_multiplied", claims().map(runs)),
        number("log10_support_over_runs", multiplied().map(support)),
        number("log10_refutation_over_runs", multiplied().map(refutation)),
        number("needed_over_runs", claims().map(|claim| claim?.needed)),
        optional_text("outcome_over_runs", claims().map(outcome)),
    ]
}

fn text<T: AsRef<str>>(name: &'static str, values: impl IntoIterator<Item = T>) -> Column {
    optional_text(name, values.into_iter().map(Some))
}

fn optional_text<T: AsRef<str>>(
    name: &'static str,
    values: impl IntoIterator<Item = Option<T>>,
) -> Column {
    let bytes = |value: Option<T>| value.map(|value| ByteArray::from(value.as_ref()));
    Column {
        name,
        values: Values::Text(values.into_iter().map(bytes).collect()),
    }
}

fn integer(name: &'static str, values: impl IntoIterator<Item = u64>) -> Column {
    // Sizes of memory are far below the largest signed number.
    let signed = |value| Some(i64::try_from(value).unwrap_or(i64::MAX));
    Column {
        name,
        values: Values::Integer(values.into_iter().map(signed).collect()),
    }
}

fn number(name: &'static str, values: impl IntoIterator<Item = Option<f64>>) -> Column {
    Column {
        name,
        values: Values::Number(values.into_iter().collect()),
    }
}

fn whole(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is plain data")
}

/// The name of an enum's variant in JSON.
fn name_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("it is plain data");
    value.as_str().unwrap_or_default().to_owned()
}
