//! Each experiment says where every table, figure, program and conclusion of its report is, and
//! takes every published number from the transcription of the report.

use std::collections::BTreeSet;

use toll_core::spec::builtin;
use toll_core::spec::{Experiment, parse};
use toll_testing::source_tree;
use toml::Value;

/// Returns the titles of the tables and figures that show published values.
fn with_published_values(experiment: &Experiment) -> BTreeSet<&str> {
    let tables = experiment.tables.iter().filter(|table| {
        let mut rows = table.quantities.iter().flat_map(|group| &group.rows);
        rows.any(|row| row.published.is_some())
    });
    let figures = experiment.figures.iter().filter(|figure| {
        let mut lines = figure.lines.iter();
        let mut groups = figure.groups.iter();
        lines.any(|line| !line.published.is_empty())
            || groups.any(|group| !group.published.is_empty())
    });
    let tables = tables.map(|table| table.title.as_str());
    tables
        .chain(figures.map(|figure| figure.title.as_str()))
        .collect()
}

#[test]
fn every_part_of_a_report_has_a_place_in_its_experiment() {
    let makefile = std::fs::read_to_string(source_tree().join("Makefile")).unwrap();
    let mut reports = 0;
    for builtin in builtin::with_names() {
        let experiment = parse(builtin.toml, builtin.name, "full").unwrap();
        // Claims of an experiment without a report of its own may come from several reports.
        let has_report = experiment.claims.iter().any(|one| one.report.is_some());
        if experiment.report.is_none() && !has_report {
            continue;
        }
        reports += 1;
        let name = builtin.name;
        let parts = || experiment.parts.iter();
        let shown = parts().flat_map(|part| &part.shown).map(String::as_str);
        let shown: BTreeSet<&str> = shown.collect();
        for title in with_published_values(&experiment) {
            assert!(shown.contains(title), "{name}: {title:?} is in no part");
        }
        let claims: BTreeSet<&String> = parts().flat_map(|part| &part.claims).collect();
        for claim in experiment.claims.iter().filter(|one| one.report.is_some()) {
            assert!(
                claims.contains(&claim.id),
                "{name}: {} is in no part",
                claim.id
            );
        }
        for program in parts().flat_map(|part| &part.programs) {
            assert!(
                makefile.contains(program),
                "{name}: {program} is not installed"
            );
        }
    }
    assert!(reports >= 9, "{reports} experiments have a report");
}

/// Collects the places where published numbers are typed instead of taken from a transcription.
fn typed_numbers(place: &str, value: &Value, typed: &mut Vec<String>) {
    match value {
        Value::Table(table) => {
            for (key, one) in table {
                let place = format!("{place}.{key}");
                let is_number = match one {
                    Value::Integer(_) | Value::Float(_) => true,
                    Value::Array(values) => !values.iter().all(Value::is_str),
                    _ => false,
                };
                if is_number && ["published", "deviation"].contains(&key.as_str()) {
                    typed.push(place);
                } else {
                    typed_numbers(&place, one, typed);
                }
            }
        }
        Value::Array(values) => {
            for (index, one) in values.iter().enumerate() {
                typed_numbers(&format!("{place}[{index}]"), one, typed);
            }
        }
        _ => {}
    }
}

#[test]
fn every_published_number_comes_from_a_transcription() {
    let mut typed = Vec::new();
    for builtin in builtin::with_names() {
        let file: toml::Table = builtin.toml.parse().unwrap();
        typed_numbers(builtin.name, &Value::Table(file), &mut typed);
    }
    assert!(typed.is_empty(), "{typed:#?}");
}
