//! Differential flame graphs of profiles: the stacks of the treatment that takes longer, in red
//! where it spends more time than the other treatment, and in blue where it spends less.

use std::collections::BTreeMap;

use toll_document::sanitize;
use toll_wire::Activity;

use super::flame_drawing;
use crate::claim::Run;
use crate::claim::model::Explanation;
use crate::run::{ProfileRecord, ProfiledFunction};

/// A flame graph as SVG, drawn by another library than the other plots.
#[derive(Debug)]
pub struct FlameGraph {
    pub name: String,
    pub svg: String,
}

/// Draws a flame graph for each explanation of a run.
pub fn all(run: &Run) -> Vec<FlameGraph> {
    let explanations = run.analysis.explanations.iter().enumerate();
    explanations
        .filter_map(|(index, one)| {
            let profiles = run.stored.profiles.iter().rev();
            let record = profiles.into_iter().find(|record| {
                let pair = [record.treatment, record.reference];
                pair.contains(&one.slower) && pair.contains(&one.faster)
            })?;
            draw(record, one, format!("why-{:02}", index + 1))
        })
        .collect()
}

fn draw(record: &ProfileRecord, one: &Explanation, name: String) -> Option<FlameGraph> {
    // Times without stacks make no picture.
    if record.functions.is_empty() {
        return None;
    }
    let lines = folded(record, one.slower);
    let svg = flame_drawing::draw(&lines)?;
    // The library writes settings for its script even if it leaves out the script.
    let svg = without(&svg, "<script", "</script>").replacen(" onload=\"init(evt)\"", "", 1);
    Some(FlameGraph { name, svg })
}

/// Removes the first part of a text from one mark to another, marks included.
pub fn without(text: &str, from: &str, to: &str) -> String {
    let begin = text.find(from);
    let end = begin.and_then(|begin| Some(begin + text[begin..].find(to)? + to.len()));
    match (begin, end) {
        (Some(begin), Some(end)) => format!("{}{}", &text[..begin], &text[end..]),
        _ => text.to_owned(),
    }
}

/// Returns one line for each stack, from the outermost function on. A line ends with the stack's
/// times per iteration of the faster treatment and of the slower one.
fn folded(record: &ProfileRecord, slower: usize) -> Vec<String> {
    let trials = |treatment: usize| {
        let of_treatment = record
            .trials
            .iter()
            .filter(move |one| one.treatment == treatment);
        of_treatment.count().max(1) as f64
    };
    let mut times: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for trial in &record.trials {
        let side = usize::from(trial.treatment == slower);
        let iterations = f64::from(trial.iterations.max(1)) * trials(trial.treatment);
        for (activity, stack, time_ns) in &trial.times {
            if let Some(path) = path(record, *activity, *stack) {
                times.entry(path).or_default()[side] += *time_ns as f64 / iterations;
            }
        }
    }
    let line = |(path, [faster, slower]): (String, [f64; 2])| {
        format!("{path} {} {}", faster.round(), slower.round())
    };
    times.into_iter().map(line).collect()
}

fn path(record: &ProfileRecord, activity: Activity, stack: u32) -> Option<String> {
    let top = match activity {
        Activity::OnCpu => "on a CPU",
        Activity::OnCpuInPrograms => "in programs",
        Activity::OnCpuInKernel => "in the kernel",
        Activity::Blocked => "waits",
        Activity::StartAndEnd => "start and end",
        Activity::WaitsForCpu => return None,
    };
    let numbers = record
        .stacks
        .get(stack as usize)
        .into_iter()
        .flatten()
        .rev();
    let functions = numbers.filter_map(|number| record.functions.get(*number as usize));
    let names = std::iter::once(top.to_owned()).chain(functions.map(frame));
    Some(names.collect::<Vec<_>>().join(";"))
}

fn frame(function: &ProfiledFunction) -> String {
    let file = match function.file.as_deref() {
        None => "kernel",
        Some("") => "no file",
        Some(file) => file,
    };
    let name = function.name.as_deref().unwrap_or(file);
    // `;` separates the frames of a line, and a line feed ends it.
    sanitize(name).replace([';', '\n'], ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_between_two_marks_is_cut_out() {
        assert_eq!(without("a<b>c</b>d", "<b>", "</b>"), "ad");
        assert_eq!(without("a<b>c", "<b>", "</b>"), "a<b>c");
    }

    #[cfg(feature = "profiles")]
    #[test]
    fn a_stack_is_one_line_with_both_times_and_hostile_names_stay_text() {
        let function = |name: &str, file: Option<&str>| ProfiledFunction {
            name: Some(name.into()),
            file: file.map(str::to_owned),
        };
        let trial = |treatment, time_ns| crate::run::ProfiledTrial {
            block: 0,
            treatment,
            iterations: 2,
            samples: 1,
            times: vec![(Activity::OnCpu, 0, time_ns), (Activity::WaitsForCpu, 0, 9)],
            counts: BTreeMap::new(),
        };
        let record = ProfileRecord {
            treatment: 1,
            functions: vec![
                function("vfs_read", None),
                function("<script>a;b</script>", Some("prog")),
            ],
            stacks: vec![vec![0, 1]],
            trials: vec![trial(0, 200), trial(1, 600)],
            ..ProfileRecord::default()
        };
        let lines = folded(&record, 1);
        assert_eq!(lines, ["on a CPU;<script>a:b</script>;vfs_read 100 300"]);
        let svg = flame_drawing::draw(&lines).unwrap();
        assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script>a"));
    }
}
