//! Instruction counts in formats for other programs.

use crate::count_report::ratio;
use serde_json::{Map, Value, json};
use toll_core::count::{CommandCount, CountComparison, Instructions, labels};
use toll_document::{Column, Inline, Markup, Row, sanitize, table};
use toll_report::benchmark_formats::{bencher_measure, github_action_entry};

/// Formats a Markdown table, for a comment on a change.
pub fn markdown(counts: &[CommandCount], comparisons: &[CountComparison]) -> String {
    let names = ["instructions", "user", "kernel", "page faults", "ratio"];
    let columns: Vec<Column> = std::iter::once(Column::words("command"))
        .chain(names.map(Column::numbers))
        .collect();
    let ratio_of = |index: usize| {
        let found = comparisons.iter().find(|one| one.count == index);
        match found {
            None => "1".to_owned(),
            Some(one) if one.may_decide => ratio(&one.ratio),
            Some(one) => format!("{:.4}, too few runs to decide", one.ratio.value),
        }
    };
    let row = |(index, label): (usize, String)| {
        let one = &counts[index];
        let sum = one.instructions;
        let faults = one.minor_faults + one.major_faults;
        let numbers = [sum.total, sum.user, sum.kernel, faults];
        let numbers = numbers.map(|number| number.to_string());
        let numbers = numbers.into_iter().chain([ratio_of(index)]);
        Row::new(std::iter::once(Inline::code(&label)).chain(numbers.map(Inline::from)))
    };
    let rows = labels(counts).into_iter().enumerate().map(row);
    table(columns, rows).markup(Markup::Markdown)
}

/// Builds the JSON for github-action-benchmark.
pub fn github_action_benchmark(counts: &[CommandCount]) -> Value {
    let entry = |(one, label): (&CommandCount, String)| {
        let Instructions {
            total,
            user,
            kernel,
        } = one.instructions;
        let faults = one.minor_faults + one.major_faults;
        let [least, most] = one.ends();
        let range = (most - least).to_string();
        let mut entry = github_action_entry(&label, "instructions", total, &range);
        entry["extra"] = format!("user: {user}\nkernel: {kernel}\npage faults: {faults}").into();
        entry
    };
    counts.iter().zip(labels(counts)).map(entry).collect()
}

/// Builds a document in Bencher Metric Format, which lists measures by benchmark.
pub fn bencher(counts: &[CommandCount]) -> Value {
    let entry = |(one, label): (&CommandCount, String)| {
        let measures = json!({
            "instructions": bencher_measure(one.instructions.total, one.ends()),
            "user-instructions": { "value": one.instructions.user },
            "kernel-instructions": { "value": one.instructions.kernel },
            "page-faults": { "value": one.minor_faults + one.major_faults },
        });
        (sanitize(&label), measures)
    };
    let entries: Map<String, Value> = counts.iter().zip(labels(counts)).map(entry).collect();
    Value::Object(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_core::count::{CountedRun, Executed, Pairs};

    fn counts(runs: usize) -> [CommandCount; 2] {
        let count = |command: &str, totals: [u64; 2]| {
            let run = |total: &u64| CountedRun {
                executed: Executed {
                    instructions: Instructions {
                        total: *total,
                        user: total - 10,
                        kernel: 10,
                    },
                    ..Executed::default()
                },
                minor_faults: 3,
                ..CountedRun::default()
            };
            let runs: Vec<CountedRun> = totals.iter().cycle().take(runs).map(run).collect();
            CommandCount::new(command.into(), "toll".into(), &runs)
        };
        [
            count("cat a|b", [1000, 1000]),
            count("cat\u{1b}c", [2000, 2004]),
        ]
    }

    #[test]
    fn each_format_has_all_commands_and_nothing_that_a_terminal_obeys() {
        let counts = counts(6);
        let comparisons = Pairs::new(2, 1).compare(&counts);
        insta::assert_snapshot!(markdown(&counts, &comparisons), @r#"
        | command | instructions | user | kernel | page faults | ratio |
        | :-- | --: | --: | --: | --: | --: |
        | `cat a\|b` | 1000 | 990 | 10 | 3 | 1 |
        | `cat�c` | 2000 | 1990 | 10 | 3 | 2.0020 \[2.0000, 2.0040\] |
        "#);
        let few = self::counts(5);
        let few = markdown(&few, &Pairs::new(2, 1).compare(&few));
        assert!(
            few.ends_with("3 | 2.0020, too few runs to decide |\n"),
            "{few}"
        );
        let json = |value: Value| serde_json::to_string_pretty(&value).unwrap();
        insta::assert_snapshot!(json(github_action_benchmark(&counts)), @r#"
        [
          {
            "extra": "user: 990\nkernel: 10\npage faults: 3",
            "name": "cat a|b",
            "range": "0",
            "unit": "instructions",
            "value": 1000
          },
          {
            "extra": "user: 1990\nkernel: 10\npage faults: 3",
            "name": "cat�c",
            "range": "4",
            "unit": "instructions",
            "value": 2000
          }
        ]
        "#);
        insta::assert_snapshot!(json(bencher(&counts)), @r#"
        {
          "cat a|b": {
            "instructions": {
              "lower_value": 1000,
              "upper_value": 1000,
              "value": 1000
            },
            "kernel-instructions": {
              "value": 10
            },
            "page-faults": {
              "value": 3
            },
            "user-instructions": {
              "value": 990
            }
          },
          "cat�c": {
            "instructions": {
              "lower_value": 2000,
              "upper_value": 2004,
              "value": 2000
            },
            "kernel-instructions": {
              "value": 10
            },
            "page-faults": {
              "value": 3
            },
            "user-instructions": {
              "value": 1990
            }
          }
        }
        "#);
    }
}
