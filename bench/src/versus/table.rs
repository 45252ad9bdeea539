//! The table in Markdown.

use std::fmt::Write;

use toll_stats::clopper_pearson;

use super::decision::{Search, calibrated_level, median_s, of};
use super::{Answer, CONDITIONS, Condition, DIFFERENCES_PERCENT, Document, LEVEL, TOOLS, Tool};

/// How the figures were made.
const METHOD: &str = "\
1. A command is `bench-work N`, which does N equal pieces of work and nothing else; a difference of 2 % is 2 % more of them.
   Starting the process is part of the time, so the ratio of times is a little nearer to 1.
2. Each comparison is the program as a user starts it, and its time that of the whole program: `toll run COMMAND COMMAND`, and
   `hyperfine --shell=none --export-json` with Welch's t-test at 5 % on the exported times, as in hyperfine's script
   `welch_ttest.py`. Toll calls commands different if it calls the second better or worse.
3. Conditions: nothing else that the benchmark starts; a neighbour process that keeps every CPU busy for 20 to 400 ms and lets it
   rest as long, at random; a load on every CPU that grows from nothing to 60 % of the time over as long as the tool's
   last comparison took.
4. False alarms: identical commands, each tool with its defaults, tools and conditions in random order. Intervals are exact
   (Clopper and Pearson), at 95 %.
5. Time to a right decision: each tool is made to measure longer until at least 80 % of its comparisons are right, by `--runs`,
   doubled again and again; toll's runs are blocks of three commands each, its A/A twin among them. Told is the median
   time of a comparison at that setting. Hyperfine's is told at 5 %, and, where it raised false alarms in more than 5 % of
   identical pairs of that condition, at the level at which it would have raised no more; toll is compared with the latter.
   Hyperfine is given no longer than four times as long as toll took: `over` is the longest setting that was not right often
   enough.
";

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# `toll` and hyperfine\n\n");
    text += &head(document);
    text += "\n## Identical commands\n\n";
    text += &alarms(document);
    text += "\n## Time to a right decision\n\n";
    text += &decisions(document);
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
        text += "- **The machine was not quiet before the run: nothing here is a result.**\n";
    }
    text
}

fn alarms(document: &Document) -> String {
    let mut text = String::from(
        "| condition | tool | different | share | median time | at most 5 % |\n|---|---|---|---|---|---|\n",
    );
    for condition in CONDITIONS {
        for tool in TOOLS {
            let made = of(document, tool, condition, 0);
            if made.is_empty() {
                continue;
            }
            let count = made.iter().filter(|it| it.answer != Answer::None).count();
            let interval = clopper_pearson(count, made.len(), 0.95);
            put(
                &mut text,
                format_args!(
                    "| {} | {} | {count} of {} | {:.1} % [{:.1}, {:.1}] | {:.2} s | {} |\n",
                    name(condition),
                    tool_name(tool),
                    made.len(),
                    100.0 * interval.estimate,
                    100.0 * interval.low,
                    100.0 * interval.high,
                    median_s(&made),
                    if interval.estimate <= LEVEL {
                        "yes"
                    } else {
                        "no"
                    }
                ),
            );
        }
    }
    text
}

fn decisions(document: &Document) -> String {
    let mut text = String::from(
        "| condition | difference | toll | hyperfine at 5 % | hyperfine at equal false alarms | toll / hyperfine | at most half |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for condition in CONDITIONS {
        let level = calibrated_level(document, condition);
        for difference in DIFFERENCES_PERCENT {
            let time = |tool, level| Search::of(document, tool, condition, difference, level);
            let toll = time(Tool::Toll, LEVEL);
            let plain = time(Tool::Hyperfine, LEVEL);
            let equal = time(Tool::Hyperfine, level);
            let (ratio, is_reached) = toll.beside(&equal);
            put(
                &mut text,
                format_args!(
                    "| {} | {difference} % | {toll} | {plain} | {equal} (p < {level:.2e}) | {ratio} | {is_reached} |\n",
                    name(condition),
                ),
            );
        }
    }
    text
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
