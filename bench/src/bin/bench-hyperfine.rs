//! `bench-hyperfine`: compares commands for `bench/hyperfine.toml`, and counts the results of its
//! runs.
//!
//! - `compare PROGRAM CONDITION WORK_MS MORE BUDGET DIR` compares work of WORK_MS milliseconds
//!   with MORE percent more work, by PROGRAM, which is toll or hyperfine. It prints how long the
//!   comparison took and what PROGRAM concluded. BUDGET is `default`, or toll's time budget.
//! - `rates RUN.json` prints how often each program gave each answer in a run that `toll export`
//!   wrote.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::Instant;

use serde_json::Value;
use toll_bench::process::{beside, command, finish, output};
use toll_bench::toll::{Toll, parse, remove_store};
use toll_bench::work::calibrate;
use toll_stats::{Welch, clopper_pearson, median};

/// Level of the tests of both tools, which is the share of false alarms that is allowed.
const LEVEL: f64 = 0.05;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [
            "compare",
            program,
            condition,
            work_ms,
            more,
            budget,
            directory,
        ] => Pair::new(work_ms, more).and_then(|pair| {
            pair.compare(Path::new(program), condition, budget, Path::new(directory))
        }),
        ["rates", run] => std::fs::read_to_string(run)
            .map_err(|error| format!("cannot read {run}: {error}"))
            .and_then(|text| rates(&text)),
        _ => return ExitCode::from(2),
    };
    finish("bench-hyperfine", done)
}

/// A tool's answer: its estimate of the second command over the first, whether it calls the
/// commands different, and how long the tool took.
struct Told {
    ratio: f64,
    is_different: bool,
    /// Whether CPU time decided because wall time did not.
    is_by_cpu_time: bool,
    wall_s: f64,
}

/// Two commands, of which the second does some percent more work.
struct Pair {
    work: PathBuf,
    commands: [String; 2],
}

impl Pair {
    fn new(work_ms: &str, more: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number: Result<f64, _> = text.parse();
            number.map_err(|_| format!("cannot read {text}: it is not a number"))
        };
        let (work_ms, more) = (number(work_ms)?, number(more)?);
        let work = beside("bench-work")?;
        let pieces = calibrate(&work, work_ms)?;
        let command = |more: f64| {
            let pieces = (pieces as f64 * (1.0 + more / 100.0)).round();
            format!("{} {pieces}", work.display())
        };
        Ok(Self {
            commands: [command(0.0), command(more)],
            work,
        })
    }

    fn compare(
        &self,
        program: &Path,
        condition: &str,
        budget: &str,
        directory: &Path,
    ) -> Result<String, String> {
        let is_toll = program.ends_with("toll");
        let load = Load::start(&self.work, condition, is_toll)?;
        let answer = if is_toll {
            by_toll(program, &self.commands, budget, directory)
        } else {
            by_hyperfine(program, &self.commands, directory)
        };
        drop(load);
        let Told {
            ratio,
            is_different,
            is_by_cpu_time,
            wall_s,
        } = answer?;
        let longer = u8::from(is_different && ratio > 1.0);
        let shorter = u8::from(is_different && ratio < 1.0);
        let by_cpu_time = u8::from(is_different && is_by_cpu_time);
        Ok(format!(
            "wall {wall_s} s\nlonger {longer}\nshorter {shorter}\nby-cpu-time {by_cpu_time}\n\
             ratio {ratio}\n"
        ))
    }
}

/// Load during a comparison. Dropping this value ends the load.
struct Load(Vec<Child>);

impl Load {
    fn start(work: &Path, condition: &str, is_toll: bool) -> Result<Self, String> {
        /// Number of busy processes: four times the CPUs of a machine with two.
        const BUSY_PROCESSES: usize = 8;
        let own_number = std::process::id().to_string();
        // The load grows for about as long as the tool runs, so that each tool meets all of it.
        let usual_s = if is_toll { "3" } else { "6" };
        let (count, arguments) = match condition {
            "quiet" => (0, vec![]),
            "busy" => (BUSY_PROCESSES, vec!["busy"]),
            "neighbour" => (1, vec!["burst", &own_number]),
            "drift" => (1, vec!["grow", usual_s]),
            _ => {
                return Err(format!(
                    "cannot start a load: there is no condition {condition}"
                ));
            }
        };
        let mut load = Self(Vec::new());
        for _ in 0..count {
            let child = command(work).args(&arguments).stdin(Stdio::null()).spawn();
            let child = child.map_err(|error| format!("cannot start a load: {error}"))?;
            load.0.push(child);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // An error means that the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn by_toll(
    program: &Path,
    commands: &[String],
    budget: &str,
    directory: &Path,
) -> Result<Told, String> {
    let toll = Toll {
        program: program.to_owned(),
        kept: directory.to_owned(),
    };
    let store = directory.join("runs.sqlite");
    let mut child = toll.command(&store);
    child.args(["run", "-q", "--no-html", "--json"]);
    if budget != "default" {
        child.args(["--time-budget", budget]);
    }
    child.args(["-n", "first", "-n", "second"]).args(commands);
    let begin = Instant::now();
    let text = output(&mut child)?;
    let wall_s = begin.elapsed().as_secs_f64();
    remove_store(&store);
    let document = parse(&text)?;
    let comparisons = list(&document["runs"][0]["analysis"]["comparisons"]);
    let by = |metric: &str| {
        let found = comparisons.iter().find(|one| one["metric"] == metric);
        let comparison = found.ok_or("cannot read toll's output: it compared nothing")?;
        let relation = comparison["relation"].as_str().unwrap_or_default();
        let ratio = comparison["ratio"]["value"].as_f64().unwrap_or(f64::NAN);
        Ok::<_, String>((relation.to_owned(), ratio))
    };
    let (by_time, by_cpu_time) = (by("duration_ns")?, by("cpu_ns")?);
    // This follows the sentence of `toll run`.
    let is_by_cpu_time = by_time.0 == "undecided" && by_cpu_time.0 != "undecided";
    let (relation, ratio) = if is_by_cpu_time { by_cpu_time } else { by_time };
    Ok(Told {
        ratio,
        is_different: ["better", "worse"].contains(&relation.as_str()),
        is_by_cpu_time,
        wall_s,
    })
}

fn by_hyperfine(program: &Path, commands: &[String], directory: &Path) -> Result<Told, String> {
    let times = directory.join("times.json");
    let mut child = command(program);
    child.args(["--shell=none", "--style=none", "--export-json"]);
    child.arg(&times).args(commands);
    let begin = Instant::now();
    output(&mut child)?;
    let wall_s = begin.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(&times)
        .map_err(|error| format!("cannot read hyperfine's times: {error}"))?;
    let document = parse(&text)?;
    let times_of = |index: usize| -> Result<Vec<f64>, String> {
        let seconds = |run: &Value| run["time_wall_clock"]["value"].as_f64();
        let runs = list(&document["results"][index]["measurements"]);
        let times: Vec<f64> = runs.iter().filter_map(seconds).collect();
        match times.len() {
            0 | 1 => Err(
                "cannot read hyperfine's times: there are too few; use hyperfine 2.0 or newer"
                    .into(),
            ),
            _ => Ok(times),
        }
    };
    let (first, second) = (times_of(0)?, times_of(1)?);
    Ok(Told {
        ratio: toll_stats::mean(&second) / toll_stats::mean(&first),
        // This is the test of hyperfine's script `welch_ttest.py` on exported times.
        is_different: Welch::new(&first, &second).p(0.0) < LEVEL,
        is_by_cpu_time: false,
        wall_s,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a table of how often each treatment gave each answer, and how often that answer was
/// right.
fn rates(run: &str) -> Result<String, String> {
    let document = parse(run)?;
    let mut text = String::from(
        "\n## Answers\n\n\
         | condition | work | more | tool | longer | shorter | by CPU time | of | right | median time |\n\
         |---|--:|--:|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let treatments = list(&document["treatments"]).iter().enumerate();
    for (index, treatment) in treatments.filter(|(_, one)| one["twin_of"].is_null()) {
        let samples = |metric: &str| -> Vec<f64> {
            let of_trial = |trial: &Value| trial["samples"][metric][0].as_f64();
            let trials = list(&document["trials"]).iter();
            let own = trials.filter(|trial| trial["treatment"] == index);
            own.filter_map(of_trial).collect()
        };
        let walls_s = samples("wall_s");
        if walls_s.is_empty() {
            continue;
        }
        let level = |name: &str| treatment["levels"][name]["text"].as_str().unwrap_or("?");
        let count = |metric: &str| samples(metric).iter().sum::<f64>() as usize;
        let (longer, shorter, all) = (count("longer"), count("shorter"), walls_s.len());
        let right = match level("more") {
            "0" => all - longer - shorter,
            _ => longer,
        };
        let share = clopper_pearson(right, all, 0.95);
        let [percent, low, high] = [share.estimate, share.low, share.high].map(|it| 100.0 * it);
        let tool = match level("budget") {
            "default" => level("tool").to_owned(),
            budget => format!("{}, {budget}", level("tool")),
        };
        text += &format!(
            "| {} | {} ms | {} % | {tool} | {longer} | {shorter} | {} | {all} | \
             {percent:.0} % [{low:.0}, {high:.0}] | {:.2} s |\n",
            level("condition"),
            level("work_ms"),
            level("more"),
            count("by_cpu_time"),
            median(&walls_s)
        );
    }
    Ok(text + METHOD)
}

const METHOD: &str = "
An answer is right if it does not call identical commands different, and if it calls the second of two different commands longer. Intervals are
exact (Clopper and Pearson), at 95 %. Each comparison runs the program as a user would, with its defaults: `toll run COMMAND COMMAND`, and
`hyperfine --shell=none --export-json` with Welch's t-test at 5 % on the exported times. The time is that of the whole program. A time after
`toll` is its `--time-budget`. If time leaves a pair undecided, toll's answer is that of CPU time, and is also counted in that column.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_with_the_interval_of_what_is_right() {
        let treatment = |tool: &str, more: &str| {
            let level = |text: &str| serde_json::json!({ "text": text });
            serde_json::json!({ "twin_of": null, "levels": {
                "tool": level(tool), "more": level(more), "condition": level("quiet"),
                "work_ms": level("10"), "budget": level("default"),
            } })
        };
        let trial = |treatment: usize, longer: u8, shorter: u8, wall_s: f64| {
            serde_json::json!({ "treatment": treatment, "samples": {
                "longer": [longer], "shorter": [shorter], "by_cpu_time": [longer],
                "wall_s": [wall_s],
            } })
        };
        // Hyperfine calls three of 20 identical pairs different.
        let hyperfine = (0..20).map(|i| trial(0, 0, u8::from(i < 3), 6.0));
        let toll = (0..20).map(|i| trial(1, u8::from(i < 19), 0, 1.0));
        let run = serde_json::json!({
            "treatments": [
                treatment("hyperfine", "0"), treatment("toll", "2"), treatment("toll", "5"),
            ],
            "trials": hyperfine.chain(toll).collect::<Vec<_>>(),
        });
        let text = rates(&run.to_string()).unwrap();
        for row in [
            "| quiet | 10 ms | 0 % | hyperfine | 0 | 3 | 0 | 20 | 85 % [62, 97] | 6.00 s |",
            "| quiet | 10 ms | 2 % | toll | 19 | 0 | 19 | 20 | 95 % [75, 100] | 1.00 s |",
        ] {
            assert!(text.contains(row), "{text}");
        }
        assert!(
            !text.contains("| 5 % |"),
            "a treatment without trials has no row: {text}"
        );
    }
}
