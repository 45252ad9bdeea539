//! `bench-verdicts`: judges the trials of stored runs by the rules of an earlier program and by the
//! rules of this program.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;
use toll_core::claim::analyse;
use toll_core::claim::model::{Outcome, Verdict};
use toll_host::store::exchange::RunDocument;

/// Judges exported runs again, and writes how many claims each set of rules decides. Nothing is
/// measured.
#[derive(Parser)]
#[command(name = "bench-verdicts")]
struct Arguments {
    /// Runs that the earlier program exported by toll show N --json >N.json
    #[arg(required = true, value_name = "FILE")]
    runs: Vec<PathBuf>,
    /// Write verdicts.md into this directory instead of to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match conclude(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            tell(&reason);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "errors go there")]
fn tell(what: &str) {
    eprintln!("bench-verdicts: {what}");
}

fn conclude(arguments: &Arguments) -> Result<(), String> {
    let rows: Vec<Row> = arguments
        .runs
        .iter()
        .map(|file| row(file))
        .collect::<Result<_, _>>()?;
    let text = table(&rows);
    match &arguments.out {
        Some(directory) => std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(directory.join("verdicts.md"), text))
            .map_err(|error| format!("cannot write into {}: {error}", directory.display())),
        None => std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| format!("cannot write the table: {error}")),
    }
}

/// A row of the table, for one run.
struct Row {
    experiment: String,
    blocks: usize,
    testable: usize,
    old: usize,
    new: usize,
    family_wise: usize,
    /// Claims that the old rules decided and the new ones leave open.
    lost: Vec<String>,
    /// Claims that the two sets of rules decide in opposite ways.
    opposite: Vec<String>,
}

fn is_decided(outcome: &str) -> bool {
    ["supported", "refuted"].contains(&outcome)
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Supported => "supported",
        Outcome::Refuted => "refuted",
        _ => "open",
    }
}

fn row(file: &Path) -> Result<Row, String> {
    let cannot = |why: String| format!("cannot read {}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| cannot(error.to_string()))?;
    let mut document: Value =
        serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))?;
    // The earlier program may express its conclusions in other words.
    let concluded = document["analysis"].take();
    let earlier = concluded["verdicts"].as_array();
    let earlier = earlier.ok_or_else(|| cannot("it has no verdicts".into()))?;
    let stored = RunDocument::parse(&document.to_string());
    let stored = stored.map_err(|error| cannot(error.to_string()))?;
    let text_of = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let old: BTreeMap<String, String> = earlier
        .iter()
        .map(|one| (text_of(one, "id"), text_of(one, "outcome")))
        .collect();
    let analysis = analyse(&stored);
    let outcome_before = |verdict: &Verdict| old.get(&verdict.id).map_or("", String::as_str);
    let count =
        |is: &dyn Fn(&Verdict) -> bool| analysis.verdicts.iter().filter(|one| is(one)).count();
    let those = |is: &dyn Fn(&Verdict) -> bool| {
        let found = analysis.verdicts.iter().filter(|one| is(one));
        found.map(|one| one.id.clone()).collect()
    };
    let is_new = |one: &Verdict| is_decided(name(one.outcome));
    Ok(Row {
        blocks: analysis.blocks,
        testable: count(&|one| !["not-testable", ""].contains(&outcome_before(one))),
        old: count(&|one| is_decided(outcome_before(one))),
        new: count(&is_new),
        family_wise: count(&Verdict::is_family_wise),
        lost: those(&|one| is_decided(outcome_before(one)) && !is_new(one)),
        opposite: those(&|one| {
            let before = outcome_before(one);
            is_decided(before) && is_new(one) && before != name(one.outcome)
        }),
        experiment: stored.run.experiment,
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "# The verdicts of one `make run`, by the rules before and now\n\nThe same trials, exported by the program \
         that made them and judged again by `bench-verdicts`. *Before*: Holm's procedure. *Now*: Benjamini and Hochberg's; \
         *family-wise*: Holm's, Tarone and Holm's, or a fixed sequence (docs/METHODOLOGY.md).\n\n\
         | experiment | blocks | testable | before | now | family-wise | lost | opposite |\n\
         |---|--:|--:|--:|--:|--:|---|---|\n",
    );
    let list = |ids: &[String]| {
        if ids.is_empty() {
            "–".to_owned()
        } else {
            ids.join(", ")
        }
    };
    for row in rows {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.experiment,
            row.blocks,
            row.testable,
            row.old,
            row.new,
            row.family_wise,
            list(&row.lost),
            list(&row.opposite)
        );
    }
    let sum = |of: fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    text += &format!(
        "| **all** | | {} | {} | {} | {} | {} | {} |\n",
        sum(|row| row.testable),
        sum(|row| row.old),
        sum(|row| row.new),
        sum(|row| row.family_wise),
        sum(|row| row.lost.len()),
        sum(|row| row.opposite.len())
    );
    text
}
