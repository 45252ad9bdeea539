//! Each experiment's page lists every table, figure, program and question of its
//! report, with where it is here.

use std::collections::BTreeSet;

use toll::spec::builtin::BUILTINS;
use toll::spec::{Experiment, parse};

use crate::common::source_tree;

const HEADING: &str = "\n## Where the report's parts are\n";

/// What a list names: `table "T"`, `figure "F"`, `claim \`c\``, `` program `p` ``,
/// `section "S"`.
fn named<'a>(list: &'a str, kind: &str, quote: char) -> BTreeSet<&'a str> {
    let start = format!("{kind} {quote}");
    let parts = list.split(start.as_str()).skip(1);
    parts.filter_map(|part| part.split(quote).next()).collect()
}

/// The list of an experiment's page, and the whole page.
fn list_of(name: &str) -> (String, String) {
    let path = source_tree().join(format!("experiments/{name}/README.md"));
    let page = std::fs::read_to_string(&path).unwrap();
    let list = page.split(HEADING).nth(1).map(|rest| {
        let end = rest.find("\n## ").unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    let list = list.unwrap_or_else(|| panic!("{}: no{HEADING}", path.display()));
    (list, page)
}

/// Titles of the tables that show published values.
fn published_tables(experiment: &Experiment) -> BTreeSet<&str> {
    let tables = experiment.tables.iter().filter(|table| {
        let mut rows = table.quantities.iter().flat_map(|group| &group.rows);
        rows.any(|row| row.published.is_some())
    });
    tables.map(|table| table.title.as_str()).collect()
}

/// Titles of the figures that show published values.
fn published_figures(experiment: &Experiment) -> BTreeSet<&str> {
    let figures = experiment.figures.iter().filter(|figure| {
        let mut lines = figure.lines.iter();
        let mut groups = figure.groups.iter();
        lines.any(|line| !line.published.is_empty())
            || groups.any(|group| !group.published.is_empty())
    });
    figures.map(|figure| figure.title.as_str()).collect()
}

#[test]
fn what_a_page_says_of_its_report_is_in_the_experiment() {
    let makefile = std::fs::read_to_string(source_tree().join("Makefile")).unwrap();
    let mut lists = 0;
    for builtin in BUILTINS {
        let experiment = parse(builtin.toml, builtin.name, "full").unwrap();
        if experiment.report.is_none() {
            continue;
        }
        lists += 1;
        let (list, page) = list_of(builtin.name);
        let name = builtin.name;

        let tables = experiment.tables.iter().map(|one| one.title.as_str());
        let figures = experiment.figures.iter().map(|one| one.title.as_str());
        for (kind, all, published) in [
            ("table", tables.collect(), published_tables(&experiment)),
            ("figure", figures.collect(), published_figures(&experiment)),
        ] {
            let all: BTreeSet<&str> = all;
            let listed = named(&list, kind, '"');
            let unknown: Vec<_> = listed.difference(&all).collect();
            assert!(unknown.is_empty(), "{name}: no {kind} {unknown:?}");
            let missing: Vec<_> = published.difference(&listed).collect();
            assert!(
                missing.is_empty(),
                "{name}: {kind} {missing:?} is not listed"
            );
        }
        for claim in named(&list, "claim", '`') {
            let mut all = experiment.claims.iter();
            assert!(all.any(|one| one.id == claim), "{name}: no claim {claim}");
        }
        for program in named(&list, "program", '`') {
            assert!(
                makefile.contains(program),
                "{name}: {program} is not installed"
            );
        }
        for section in named(&list, "section", '"') {
            let heading = format!("\n## {section}\n");
            assert!(page.contains(&heading), "{name}: no section {section:?}");
        }
        for file in named(&list, "file", '`') {
            assert!(source_tree().join(file).exists(), "{name}: no file {file}");
        }
    }
    assert!(lists >= 9, "{lists} experiments have a report");
}
