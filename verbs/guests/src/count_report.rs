//! The report on the instructions of commands as text.

use toll_core::claim::model::{Estimate, FunctionDifference, FunctionDifferences};
use toll_core::count::{AGREEMENT, CommandCount, CountComparison, FunctionCount, labels};
use toll_core::format;
use toll_document::{Column, Document, Paint, Row, paragraph, paragraphs, table};

/// Maximum number of system calls that a line names.
const CALLS_SHOWN: usize = 12;

/// Maximum number of functions that are named as varying between runs.
const VARYING_SHOWN: usize = 3;

/// Formats the result as a sentence, a table, at most `functions` functions, and remarks.
/// Comparisons need `runs_needed` runs.
pub fn of_commands(
    counts: &[CommandCount],
    comparisons: &[CountComparison],
    runs_needed: usize,
    functions: usize,
) -> Document {
    let labels = labels(counts);
    let labelled = || counts.iter().zip(&labels);
    let compared = comparisons.iter().map(|one| {
        format!(
            "{} executes {} times the instructions of {}.",
            labels[one.count],
            ratio(&one.ratio),
            labels[one.reference]
        )
    });
    let mut said: Vec<String> = compared.collect();
    if let [only] = counts {
        let sum = format::exact(only.instructions.total);
        said.push(format!("{} executes {sum} instructions.", only.command));
    }
    let mut first = paragraphs(said, 0, Paint::Bold);
    if comparisons.iter().any(|one| !one.may_decide) {
        first += paragraph(too_few_runs(&counts[0], runs_needed), 0, Paint::Yellow);
    }
    let calls = labelled().map(|(one, label)| calls(one, label));
    let mut sections = vec![
        first,
        rows(counts, &labels),
        paragraphs(calls, 0, Paint::Plain),
    ];
    if functions > 0 {
        if let [only] = counts {
            sections.push(functions_of(only, functions));
        }
        let decided = comparisons.iter().filter(|one| one.may_decide);
        sections.extend(decided.map(|one| {
            let title = format!("{} against {}", labels[one.count], labels[one.reference]);
            differing_functions(&title, one, functions)
        }));
    }
    let varying = labelled().filter(|(one, _)| !one.is_settled());
    let varying = varying.map(|(one, label)| varies(one, label));
    let remark = "Instructions are not time. The count includes all that the guest's CPU executed, in \
                  programs and in the kernel, from the command's exec to its end.";
    let remark = paragraph(remark, 0, Paint::Dim);
    sections.push(paragraphs(varying, 0, Paint::Yellow) + remark);
    Document::sections(sections)
}

/// Says by how much runs differ, and in which functions most.
fn varies(one: &CommandCount, label: &str) -> String {
    let shown = one.varying.iter().take(VARYING_SHOWN);
    let functions: Vec<String> = shown
        .map(|function| {
            format!(
                "{} ({})",
                function.name,
                format::exact(function.instructions)
            )
        })
        .collect();
    format!(
        "{label} varies: its runs differ by {}, more than {}, most in {}",
        format::percent(one.spread),
        format::percent(AGREEMENT),
        functions.join(", ")
    )
}

/// Says how often each system call was made.
fn calls(one: &CommandCount, label: &str) -> String {
    let calls = one.system_calls();
    let shown = calls.iter().take(CALLS_SHOWN);
    let mut words: Vec<String> = shown
        .map(|(name, count)| format!("{name} {}", format::exact(*count)))
        .collect();
    if let more @ 1.. = calls.len().saturating_sub(CALLS_SHOWN) {
        words.push(format!("{more} others"));
    }
    let sum: u64 = calls.iter().map(|(_, count)| count).sum();
    format!(
        "{label}: {} system calls: {}",
        format::exact(sum),
        words.join(", ")
    )
}

fn functions_of(one: &CommandCount, rows: usize) -> Document {
    let row = |function: &FunctionCount| {
        let share = function.instructions as f64 / one.instructions.total as f64;
        Row::new([
            function.name.clone(),
            format::exact(function.instructions),
            format::percent(share),
        ])
    };
    let all: Vec<Row> = one.functions.iter().map(row).collect();
    let title = format!("Functions of {}", one.command);
    paragraph(&title, 0, Paint::Bold) + function_table(&["share"], all, rows)
}

fn differing_functions(title: &str, one: &CountComparison, rows: usize) -> Document {
    let title = paragraph(title, 0, Paint::Bold);
    let Some(functions) = &one.functions else {
        return title + paragraph("the difference in total may be 0", 0, Paint::Plain);
    };
    let row = |function: &FunctionDifference| {
        let [value, low, high] = instructions(&function.instructions);
        Row::new([
            function.name.clone(),
            value,
            format!("{low} to {high}"),
            format::percent(function.instructions.value / functions.difference.value),
        ])
    };
    let all: Vec<Row> = functions.listed.iter().map(row).collect();
    let table = function_table(&["interval", "share"], all, rows);
    title + table + paragraph(explained(functions), 0, Paint::Plain)
}

/// A difference and its interval, rounded to instructions.
fn instructions(difference: &Estimate) -> [String; 3] {
    let ends = [difference.value, difference.low, difference.high];
    ends.map(|count| format::signed(count.round() as i64))
}

/// A ratio and its interval. Counts repeat to more digits than times.
pub fn ratio(ratio: &Estimate) -> String {
    format!("{:.4} [{:.4}, {:.4}]", ratio.value, ratio.low, ratio.high)
}

/// Says that the comparisons decide nothing.
fn too_few_runs(count: &CommandCount, needed: usize) -> String {
    format!(
        "this decides nothing: it takes {needed} runs of each command, not {}; use -r {needed}",
        count.runs.len()
    )
}

/// Says how much of the total difference the functions explain.
fn explained(one: &FunctionDifferences) -> String {
    let [whole, ..] = instructions(&one.difference);
    if one.listed.is_empty() {
        return format!("each function's difference may be 0; the total difference is {whole}");
    }
    let [rest, ..] = instructions(&one.rest);
    let share = format::percent(one.explained);
    format!("these functions explain {share} of {whole}; the rest is {rest}")
}

/// A table of functions with their instructions and further columns.
fn function_table(others: &[&str], mut all: Vec<Row>, rows: usize) -> Document {
    let mut columns = vec![Column::words("function"), Column::numbers("instructions")];
    columns.extend(others.iter().map(|title| Column::numbers(title)));
    let more = all.len().saturating_sub(rows);
    all.truncate(rows);
    let mut text = table(columns, all);
    if more > 0 {
        text += paragraph(format!("and {more} more (--all)"), 0, Paint::Dim);
    }
    text
}

fn rows(counts: &[CommandCount], labels: &[String]) -> Document {
    let columns = ["instructions", "user", "kernel", "faults"].map(Column::numbers);
    let columns: Vec<Column> = std::iter::once(Column::words("command"))
        .chain(columns)
        .collect();
    let row = |(one, label): (&CommandCount, &String)| {
        let sum = one.instructions;
        let numbers = [
            sum.total,
            sum.user,
            sum.kernel,
            one.minor_faults + one.major_faults,
        ];
        let numbers = numbers.map(format::exact);
        let mut row = Row::new([vec![label.clone()], numbers.into()].concat());
        row.below.push(match one.runs.len() {
            1 => "1 run, so it is not known whether the count repeats".to_owned(),
            runs => format!(
                "{runs} runs, which differ by {}",
                format::percent(one.spread)
            ),
        });
        row
    };
    let all: Vec<Row> = counts.iter().zip(labels).map(row).collect();
    table(columns, all)
}

#[cfg(test)]
mod tests {
    use toll_document::Style;

    use super::*;
    use toll_core::count::{CountedRun, Executed, Instructions, Pairs};

    #[test]
    fn a_comparison_names_the_factor_the_functions_and_what_varies() {
        let style = Style::new(false, 80, true);
        let count = |kernel: &str, totals: &[u64]| {
            let run = |total: &u64| {
                let total = *total;
                let functions = vec![FunctionCount {
                    name: "vfs_read".into(),
                    instructions: total,
                    calls: 1,
                }];
                CountedRun {
                    executed: Executed {
                        instructions: Instructions {
                            total,
                            user: total - 1000,
                            kernel: 1000,
                        },
                        functions,
                    },
                    minor_faults: 3,
                    ..CountedRun::default()
                }
            };
            let runs: Vec<CountedRun> = totals.iter().map(run).collect();
            CommandCount::new("cat x".into(), kernel.into(), &runs)
        };
        let shown = |counts: [CommandCount; 2]| {
            let pairs = Pairs::new(1, 2);
            let comparisons = pairs.compare(&counts);
            of_commands(&counts, &comparisons, pairs.runs_needed(), 20).show(style)
        };
        let (million, more) = ([1_000_000; 6], 1_150_000);
        let varying = [more, more, 1_200_000, more, more, more];
        let text = shown([count("toll", &million), count("mine", &varying)]);
        for expected in [
            "cat x on mine executes 1.1500 [1.1500, 1.2000] times the instructions of",
            "1,000,000",
            "vfs_read      +150,000  +150,000 to +200,000  100",
            "these functions explain 100 % of +150,000; the rest is 0",
            "cat x on mine varies: its runs differ by 4.3 %, more than 0.01 %, most in\nvfs_read (50,000)",
            "Instructions are not time.",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("on toll varies"), "{text}");
        let alone = of_commands(&[count("toll", &million)], &[], 6, 20).show(style);
        assert!(alone.contains("\n\nInstructions are not"), "{alone}");
        let same = shown([count("toll", &million), count("mine", &million)]);
        assert!(same.contains("the difference in total may be 0"), "{same}");
        let few = shown([count("toll", &[1_000; 5]), count("mine", &[2_000; 5])]);
        let expected = "this decides nothing: it takes 6 runs of each command, not 5; use -r 6";
        assert!(few.contains(expected) && !few.contains("against"), "{few}");
    }
}
