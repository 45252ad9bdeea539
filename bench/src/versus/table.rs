//! The table in Markdown.

use std::fmt::Write;

use toll_stats::{clopper_pearson, median};

use super::tool::answer_at;
use super::{
    Answer, CONDITIONS, Comparison, Condition, DIFFERENCES_PERCENT, Document, LEVEL, POWER, TOOLS,
    Tool,
};

/// Load from which other processes take a CPU now and then.
const LOAD_QUIET_MAX: f64 = 0.5;

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
   time of a comparison at that setting. Hyperfine's is told at 5 %, and, where it raised false alarms in more than 5 % of identical pairs of that condition, at the
   level at which it would have raised no more; toll is compared with the latter.
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
        text += "\nThe time ended before all was measured: `–` was not, or has not been found.\n";
    }
    text += "\n## Method\n\n";
    text + METHOD
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes everything");
}

fn head(document: &Document) -> String {
    let machine = &document.machine;
    let mut text = String::new();
    put(
        &mut text,
        format_args!(
            "- Date: {}\n- Machine: {}, {} CPUs, virtualisation {}, Linux {}, load before the run {:.2}\n",
            document.date,
            machine.cpu_model,
            machine.cpus,
            machine.virtualization,
            machine.kernel,
            machine.load_before
        ),
    );
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
    if machine.load_before > LOAD_QUIET_MAX {
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
            let toll = first_right(document, Tool::Toll, condition, difference, LEVEL);
            let plain = first_right(document, Tool::Hyperfine, condition, difference, LEVEL);
            let equal = first_right(document, Tool::Hyperfine, condition, difference, level);
            let ratio = toll.as_ref().zip(equal.as_ref());
            let ratio = ratio.map(|(toll, equal)| toll.seconds / equal.seconds);
            let shown =
                |found: &Option<Found>| found.as_ref().map_or_else(|| "–".to_owned(), Found::shown);
            put(
                &mut text,
                format_args!(
                    "| {} | {difference} % | {} | {} | {} (p < {level:.2e}) | {} | {} |\n",
                    name(condition),
                    shown(&toll),
                    shown(&plain),
                    shown(&equal),
                    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
                    match ratio {
                        Some(ratio) if ratio <= 0.5 => "yes",
                        Some(_) => "no",
                        None => "–",
                    }
                ),
            );
        }
    }
    text
}

/// The first setting that was right often enough.
struct Found {
    setting: String,
    right: usize,
    of: usize,
    seconds: f64,
}

impl Found {
    fn shown(&self) -> String {
        let setting = match self.setting.as_str() {
            "" => "defaults".to_owned(),
            setting => format!("`{setting}`"),
        };
        let (right, of) = (self.right, self.of);
        format!("{:.2} s, {setting}, {right} of {of}", self.seconds)
    }
}

fn first_right(
    document: &Document,
    tool: Tool,
    condition: Condition,
    difference: u32,
    level: f64,
) -> Option<Found> {
    let made = of(document, tool, condition, difference);
    let mut settings: Vec<&str> = Vec::new();
    for comparison in &made {
        if !settings.contains(&comparison.setting.as_str()) {
            settings.push(&comparison.setting);
        }
    }
    settings.into_iter().find_map(|setting| {
        let at: Vec<&Comparison> = made
            .iter()
            .filter(|it| it.setting == setting)
            .copied()
            .collect();
        let right = at.iter().filter(|it| is_right(it, level)).count();
        // One that the end of the time cut short shows nothing.
        let is_whole = at.len() >= document.different;
        (is_whole && right as f64 >= POWER * at.len() as f64 - 1e-9).then(|| Found {
            setting: setting.to_owned(),
            right,
            of: at.len(),
            seconds: median_s(&at),
        })
    })
}

/// Whether a comparison of different commands found the second to take longer,
/// Welch's test at a level.
pub(super) fn is_right(comparison: &Comparison, level: f64) -> bool {
    let answer = match comparison.p {
        Some(p) => answer_at(p, comparison.ratio, level),
        None => comparison.answer,
    };
    answer == Answer::Longer
}

/// The level at which hyperfine's comparisons of identical commands would have
/// raised no more false alarms than the level promises: that level itself where
/// they did not.
pub(super) fn calibrated_level(document: &Document, condition: Condition) -> f64 {
    let mut ps: Vec<f64> = of(document, Tool::Hyperfine, condition, 0)
        .iter()
        .filter_map(|comparison| comparison.p)
        .collect();
    ps.sort_by(f64::total_cmp);
    let allowed = (LEVEL * ps.len() as f64) as usize;
    ps.get(allowed).map_or(LEVEL, |p| p.min(LEVEL))
}

fn of(document: &Document, tool: Tool, condition: Condition, difference: u32) -> Vec<&Comparison> {
    let is_one = |it: &&Comparison| {
        it.tool == tool && it.condition == condition && it.difference_percent == difference
    };
    document.comparisons.iter().filter(is_one).collect()
}

fn median_s(comparisons: &[&Comparison]) -> f64 {
    let seconds: Vec<f64> = comparisons.iter().map(|it| it.wall_s).collect();
    median(&seconds)
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
