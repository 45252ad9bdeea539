//! Instructions of commands.

use super::Style;
use super::text::{Column, Paint, Row, Text, paragraph, table};
use crate::count::{AGREEMENT, CommandCount, differences};
use crate::format;

/// System calls named in a line.
const CALLS_SHOWN: usize = 12;

/// The result in a sentence, a table, so many functions, and what to know of it.
pub fn of_commands(counts: &[CommandCount], functions: usize, style: Style) -> Text {
    let Some((reference, others)) = counts.split_first() else {
        return Text::default();
    };
    let sentence = |one: &CommandCount| match others.is_empty() {
        true => format!(
            "{} executes {} instructions.",
            one.command,
            exact(one.instructions.total)
        ),
        false => format!(
            "{} executes {} times the instructions of {}.",
            one.command,
            factor(one, reference),
            reference.command
        ),
    };
    let said = if others.is_empty() { counts } else { others };
    let mut text: Text = said
        .iter()
        .map(|one| paragraph(&sentence(one), 0, Paint::Bold, style))
        .collect();
    text.gap();
    text += rows(counts, style);
    text.gap();
    for one in counts {
        text += paragraph(&calls(one), 0, Paint::Plain, style);
    }
    text.gap();
    if functions > 0 {
        for one in said {
            text += by_function(one, reference, functions, style);
            text.gap();
        }
    }
    for one in counts.iter().filter(|one| !one.is_settled()) {
        let varies = format!(
            "{} varies: its runs differ by {}, more than {}",
            one.command,
            format::percent(one.spread),
            format::percent(AGREEMENT)
        );
        text += paragraph(&varies, 0, Paint::Yellow, style);
    }
    let remark = "Instructions are not time. Counted is what the guest's CPU executed, in programs and kernel, \
                  from the command's exec to its end.";
    text + paragraph(remark, 0, Paint::Dim, style)
}

/// How often each system call was made.
fn calls(one: &CommandCount) -> String {
    let calls = one.system_calls();
    let shown = calls.iter().take(CALLS_SHOWN);
    let mut words: Vec<String> = shown
        .map(|(name, count)| format!("{name} {}", exact(*count)))
        .collect();
    if let more @ 1.. = calls.len().saturating_sub(CALLS_SHOWN) {
        words.push(format!("{more} others"));
    }
    let sum: u64 = calls.iter().map(|(_, count)| count).sum();
    format!(
        "{}: {} system calls: {}",
        one.command,
        exact(sum),
        words.join(", ")
    )
}

/// Functions of one command, or where it differs from another.
fn by_function(one: &CommandCount, reference: &CommandCount, rows: usize, style: Style) -> Text {
    let is_alone = one.command == reference.command;
    let all: Vec<(String, i64)> = match is_alone {
        true => {
            let functions = one.functions.iter();
            let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            functions
                .map(|function| (function.name.clone(), signed(function.instructions)))
                .collect()
        }
        false => differences(&one.functions, &reference.functions),
    };
    let whole: i64 = all.iter().map(|(_, count)| count).sum();
    let row = |(name, count): &(String, i64)| {
        let sign = match (is_alone, *count > 0) {
            (true, _) => "",
            (false, true) => "+",
            (false, false) => "-",
        };
        let share = format::percent(*count as f64 / whole as f64);
        let count = format!("{sign}{}", exact(count.unsigned_abs()));
        Row::new(vec![name.clone(), count, share])
    };
    let title = match is_alone {
        true => format!("Functions of {}", one.command),
        false => format!("{} beside {}", one.command, reference.command),
    };
    let columns = [
        Column::words("function"),
        Column::numbers("instructions"),
        Column::numbers("share"),
    ];
    let shown: Vec<Row> = all.iter().take(rows).map(row).collect();
    let mut text = paragraph(&title, 0, Paint::Bold, style) + table(&columns, &shown, style);
    if let more @ 1.. = all.len().saturating_sub(rows) {
        text += paragraph(&format!("and {more} more (--all)"), 0, Paint::Dim, style);
    }
    text
}

/// A ratio with as many digits as the counts are good for.
fn factor(one: &CommandCount, reference: &CommandCount) -> String {
    let ratio = one.instructions.total as f64 / reference.instructions.total as f64;
    format!("{ratio:.4}")
}

fn rows(counts: &[CommandCount], style: Style) -> Text {
    let columns = ["instructions", "user", "kernel", "faults"].map(Column::numbers);
    let columns: Vec<Column> = std::iter::once(Column::words("command"))
        .chain(columns)
        .collect();
    let row = |one: &CommandCount| {
        let sum = one.instructions;
        let numbers = [
            sum.total,
            sum.user,
            sum.kernel,
            one.minor_faults + one.major_faults,
        ];
        let numbers = numbers.map(exact);
        let mut row = Row::new([vec![one.command.clone()], numbers.into()].concat());
        row.below.push(match one.runs.len() {
            1 => "1 run, so whether it repeats is not known".to_owned(),
            runs => format!(
                "{runs} runs, which differ by {}",
                format::percent(one.spread)
            ),
        });
        row
    };
    table(&columns, &counts.iter().map(row).collect::<Vec<_>>(), style)
}

/// A number in full: people compare these digit by digit.
fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Executed, Instructions};

    #[test]
    fn a_comparison_names_the_factor_and_what_varies() {
        let style = Style::new(false, 80, true);
        let count = |command: &str, totals: [u64; 2]| {
            let run = |total| {
                let (user, kernel) = (total - 1000, 1000);
                let instructions = Instructions {
                    total,
                    user,
                    kernel,
                };
                let functions = Vec::new();
                (
                    Executed {
                        instructions,
                        functions,
                    },
                    [3, 0],
                )
            };
            CommandCount::new(command.into(), totals.map(run).into())
        };
        let counts = [
            count("old", [1_000_000, 1_000_000]),
            count("new", [1_100_000, 1_200_000]),
        ];
        let text = of_commands(&counts, 0, style).show(style);
        for expected in [
            "new executes 1.1000 times the instructions of old.",
            "1,000,000",
            "new varies: its runs differ by 9.1 %",
            "Instructions are not time.",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("old varies"), "{text}");
    }
}
