//! The table in Markdown.

use std::fmt::Write;

use toll_stats::{clopper_pearson, median};

use super::{
    Answer, CONDITIONS, Comparison, Condition, DIFFERENCES_PERCENT, Document, TOOLS, Tool,
};

/// How the figures were made.
const METHOD: &str = "\
1. A command is `bench-work N`, which does N equal pieces of work and nothing else; a difference of 2 % is 2 % more of them.
   Starting the process is part of the time, so the ratio of times is a little nearer to 1.
2. Each comparison is the program as a user starts it, with its defaults, and its time that of the whole program: `toll run
   COMMAND COMMAND`, and `hyperfine --shell=none --export-json` with Welch's t-test at 5 % on the exported times, as in
   hyperfine's script `welch_ttest.py`. Toll calls commands different if it calls the second better or worse.
3. Conditions: nothing else that the benchmark starts; a neighbour process that keeps every CPU busy for 20 to 400 ms and lets it
   rest as long, at random; a load on every CPU that grows from nothing to 60 % of the time over as long as the tool's
   last comparison took.
4. Rounds of one comparison of each kind, in random order. Intervals are exact (Clopper and Pearson), at 95 %. Right is to
   call identical commands not different, and of others the second longer.
";

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# `toll` and hyperfine\n\n");
    text += &head(document);
    text += "\n## What they said\n\n";
    text += &answers(document);
    if document.cut {
        text += "\nThe time ended before all was measured: `–` was not.\n";
    }
    text += "\n## Method\n\n";
    text + METHOD
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes everything");
}

fn head(document: &Document) -> String {
    let machine = &document.machine;
    let mut text = machine.head(&document.date);
    put(
        &mut text,
        format_args!(
            "- Command: `{}`, seed {}\n- Programs: {}\n- Work: {} pieces, {:.1} ms\n",
            document.command_line,
            document.seed,
            document.versions.join("; "),
            document.work.0,
            document.work.1 / 1e6
        ),
    );
    if machine.was_busy() {
        text += "- **The load average says that other programs ran in the last minute before: if they went on, nothing here is a result.**\n";
    }
    text
}

fn answers(document: &Document) -> String {
    let mut text = String::from(
        "| condition | more work | tool | longer | shorter | of | right | median time |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for condition in CONDITIONS {
        for difference in DIFFERENCES_PERCENT {
            for tool in TOOLS {
                text += &row(document, condition, difference, tool);
            }
        }
    }
    text
}

/// The row of one kind of comparisons; empty if none was made.
fn row(document: &Document, condition: Condition, difference: u32, tool: Tool) -> String {
    let is_one = |it: &&Comparison| {
        (it.tool, it.condition, it.difference_percent) == (tool, condition, difference)
    };
    let made: Vec<&Comparison> = document.comparisons.iter().filter(is_one).collect();
    if made.is_empty() {
        return String::new();
    }
    let said = |answer| made.iter().filter(|it| it.answer == answer).count();
    let right = said(match difference {
        0 => Answer::None,
        _ => Answer::Longer,
    });
    let share = clopper_pearson(right, made.len(), 0.95);
    let [percent, low, high] = [share.estimate, share.low, share.high].map(|it| 100.0 * it);
    let seconds: Vec<f64> = made.iter().map(|it| it.wall_s).collect();
    format!(
        "| {} | {difference} % | {} | {} | {} | {} | {percent:.0} % [{low:.0}, {high:.0}] | {:.2} s |\n",
        name(condition),
        tool_name(tool),
        said(Answer::Longer),
        said(Answer::Shorter),
        made.len(),
        median(&seconds)
    )
}

fn name(condition: Condition) -> &'static str {
    match condition {
        Condition::Quiet => "quiet",
        Condition::Neighbour => "noisy neighbour",
        Condition::Drift => "drift",
    }
}

fn tool_name(tool: Tool) -> &'static str {
    match tool {
        Tool::Toll => "toll",
        Tool::Hyperfine => "hyperfine",
    }
}

#[cfg(test)]
mod tests;
