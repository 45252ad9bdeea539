//! The table in Markdown.

use std::fmt::Write;

use toll_stats::{Interval, hodges_lehmann, median_interval};

use super::{Answer, Document, QUESTIONS, Question, SAMPLES, Series};

const CONFIDENCE: f64 = 0.95;

/// Most of the harness, as a multiple of starting `true`.
const HARNESS_MAX: f64 = 2.0;
/// Most of a run's wall time outside of timed regions.
const UNMEASURED_MAX: f64 = 0.05;
/// Most of a question about a million samples, in nanoseconds and in bytes.
const ANSWER_NS_MAX: f64 = 2e9;
const ANSWER_BYTES_MAX: f64 = 300e6;
/// Most of `toll list`, in nanoseconds.
const LIST_NS_MAX: f64 = 20e6;
/// Exponent of growth up to which it is called linear: time as samples^1.1.
const EXPONENT_MAX: f64 = 1.1;

const METHOD: &str = "\
1. Everything is measured once in each block, in random order. A ratio is the Hodges-Lehmann estimate of the blocks' ratios,
   any other value the median of the blocks, each with its 95 % interval.
2. Harness: `toll run -N -r BLOCKS true` with 20 and with 120 blocks. The difference of their wall times, less that of the
   times inside of timed regions, divided by the difference in trials: what a trial takes beside the command, from starting a
   fresh probe to the committed row. Beside it `true` started and waited for 200 times by the benchmark.
3. Clock: a million readings. The empty call is `getppid` in toll's and lmbench's program and in perf's.
4. Not measured: wall time of `toll run -N -r 10 COMMAND` from its start to its end, less the times inside of timed regions.
5. Samples: two runs of 200 trials of an empty call and others, with 250,000, 500,000 and 1,000,000 iterations in each run.
   The exponent is the slope of a line through the logarithms of medians and samples.
";

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# What `toll` itself costs\n\n");
    head(&mut text, document);
    text += "\n## Goals\n\n| what | measured | goal | reached |\n|---|---|---|---|\n";
    goals(&mut text, document);
    text += "\n## Beside it\n\n| what | measured |\n|---|---|\n";
    others(&mut text, document);
    text += "\n## Many samples\n\n| question | samples of a run | wall time | largest resident set |\n|---|---|---|---|\n";
    volumes(&mut text, document);
    text += "\n## Method\n\n";
    text + METHOD
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes everything");
}

fn head(text: &mut String, document: &Document) {
    let machine = &document.machine;
    *text += &machine.head(&document.date);
    put(
        text,
        format_args!(
            "- Disk: {}\n- Command: `{}`\n- Programs: {}\n",
            machine.work_file_system,
            document.command_line,
            document.versions.join("; "),
        ),
    );
    for missing in &document.missing {
        put(text, format_args!("- Not measured: {missing}\n"));
    }
    if machine.was_busy() {
        *text += "- **The machine was not quiet before the run.**\n";
    }
}

fn series(document: &Document, series: Series) -> &[f64] {
    document.series.get(&series).map_or(&[], Vec::as_slice)
}

fn ratio(document: &Document, of: Series, to: Series) -> Option<Interval> {
    let pairs = series(document, of).iter().zip(series(document, to));
    let logs: Vec<f64> = pairs.map(|(of, to)| (of / to).ln()).collect();
    (!logs.is_empty()).then(|| hodges_lehmann(&logs, CONFIDENCE).map(f64::exp))
}

fn middle(values: &[f64]) -> Option<Interval> {
    (!values.is_empty()).then(|| median_interval(values, CONFIDENCE))
}

fn shown(interval: &Interval, scale: f64, digits: usize) -> String {
    let [value, low, high] =
        [interval.estimate, interval.low, interval.high].map(|number| number * scale);
    format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]")
}

/// Whether all of an interval keeps to a goal, none of it, or a part.
fn reached(interval: &Interval, most: f64) -> &'static str {
    if !interval.reaches(CONFIDENCE) {
        return "undecided";
    }
    match (interval.high <= most, interval.low <= most) {
        (true, _) => "yes",
        (_, true) => "undecided",
        _ => "no",
    }
}

fn goal(
    text: &mut String,
    what: &str,
    interval: Option<Interval>,
    unit: (f64, usize, &str),
    most: f64,
) {
    let Some(interval) = interval else {
        return;
    };
    let (scale, digits, name) = unit;
    put(
        text,
        format_args!(
            "| {what} | {}{name} | at most {:.digits$}{name} | {} |\n",
            shown(&interval, scale, digits),
            most * scale,
            reached(&interval, most)
        ),
    );
}

fn goals(text: &mut String, document: &Document) {
    const TIMES: (f64, usize, &str) = (1.0, 2, " times");
    for (name, of) in [
        (
            "harness of a trial over starting `true`, the store in memory",
            Series::HarnessNs,
        ),
        (
            "the same, each trial committed to the disk",
            Series::HarnessDiskNs,
        ),
    ] {
        goal(
            text,
            name,
            ratio(document, of, Series::SpawnNs),
            TIMES,
            HARNESS_MAX,
        );
    }
    let share = format!(
        "wall time that is not measured, command of {} ms",
        document.work_ms
    );
    let measured = middle(series(document, Series::UnmeasuredShare));
    goal(text, &share, measured, (100.0, 1, " %"), UNMEASURED_MAX);
    for question in [Question::Report, Question::Compare] {
        let name = format!("`toll {}`, 1,000,000 samples a run", word(question));
        let of = |pick: fn(&Answer) -> f64| middle(&answers(document, question, SAMPLES[2], pick));
        let wall = of(|answer| answer.wall_ns as f64);
        goal(text, &name, wall, (1e-9, 2, " s"), ANSWER_NS_MAX);
        let memory = format!("{name}: memory");
        let bytes = of(|answer| answer.max_rss_bytes as f64);
        goal(text, &memory, bytes, (1e-6, 0, " MB"), ANSWER_BYTES_MAX);
        if let Some(exponent) = exponent(document, question) {
            put(
                text,
                format_args!(
                    "| {name}: growth | samples^{exponent:.2} | at most samples^{EXPONENT_MAX} | {} |\n",
                    if exponent <= EXPONENT_MAX {
                        "yes"
                    } else {
                        "no"
                    }
                ),
            );
        }
    }
    let list = format!("`toll list`, {} runs", document.runs_listed);
    let listed = middle(series(document, Series::ListNs));
    goal(text, &list, listed, (1e-6, 1, " ms"), LIST_NS_MAX);
}

fn others(text: &mut String, document: &Document) {
    for (name, of, scale, unit) in [
        ("starting `true`", Series::SpawnNs, 1e-3, "µs"),
        (
            "harness of a trial, the store in memory",
            Series::HarnessNs,
            1e-3,
            "µs",
        ),
        (
            "harness of a trial, the store on the disk",
            Series::HarnessDiskNs,
            1e-3,
            "µs",
        ),
        ("a reading of the clock", Series::ClockNs, 1.0, "ns"),
        ("an empty call by `toll run`", Series::TollCallNs, 1.0, "ns"),
        (
            "an empty call by `perf bench syscall basic`",
            Series::PerfCallNs,
            1.0,
            "ns",
        ),
        ("an empty call by lmbench", Series::LmbenchCallNs, 1.0, "ns"),
    ] {
        if let Some(interval) = middle(series(document, of)) {
            put(
                text,
                format_args!("| {name} | {} {unit} |\n", shown(&interval, scale, 1)),
            );
        }
    }
    for (name, of, to) in [
        (
            "clock over perf's empty call",
            Series::ClockNs,
            Series::PerfCallNs,
        ),
        (
            "clock over lmbench's empty call",
            Series::ClockNs,
            Series::LmbenchCallNs,
        ),
        (
            "toll's empty call over perf's",
            Series::TollCallNs,
            Series::PerfCallNs,
        ),
        (
            "toll's empty call over lmbench's",
            Series::TollCallNs,
            Series::LmbenchCallNs,
        ),
    ] {
        if let Some(interval) = ratio(document, of, to) {
            put(
                text,
                format_args!("| {name} | {} times |\n", shown(&interval, 1.0, 3)),
            );
        }
    }
}

fn answers(
    document: &Document,
    question: Question,
    samples: u64,
    pick: fn(&Answer) -> f64,
) -> Vec<f64> {
    let these = document.answers.iter();
    these
        .filter(|answer| answer.question == question && answer.samples == samples)
        .map(pick)
        .collect()
}

fn word(question: Question) -> &'static str {
    match question {
        Question::Show => "show",
        Question::Report => "report",
        Question::Compare => "compare",
    }
}

fn volumes(text: &mut String, document: &Document) {
    for question in QUESTIONS {
        for samples in SAMPLES {
            let of = |pick: fn(&Answer) -> f64| middle(&answers(document, question, samples, pick));
            let wall = of(|answer| answer.wall_ns as f64);
            let bytes = of(|answer| answer.max_rss_bytes as f64);
            if let (Some(wall), Some(bytes)) = (wall, bytes) {
                put(
                    text,
                    format_args!(
                        "| `toll {}` | {samples} | {} s | {} MB |\n",
                        word(question),
                        shown(&wall, 1e-9, 2),
                        shown(&bytes, 1e-6, 0)
                    ),
                );
            }
        }
    }
}

/// Slope of the least squares line through the logarithms of samples and of the
/// medians of wall times.
fn exponent(document: &Document, question: Question) -> Option<f64> {
    let mut points = Vec::new();
    for samples in SAMPLES {
        let wall = middle(&answers(document, question, samples, |answer| {
            answer.wall_ns as f64
        }))?;
        points.push(((samples as f64).ln(), wall.estimate.ln()));
    }
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let shared: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let own: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(shared / own)
}

#[cfg(test)]
mod tests;
