//! The text format of Go's benchmarks, for benchstat.

use toll_document::sanitize;
use toll_wire::METRICS;

use super::series;
use crate::claim::Run;
use crate::claim::model::{Analysis, Better};

/// Lists the metrics that Go's programs know, each with its unit there and the number of our units
/// in one of those. benchstat converts nanoseconds to seconds, except 0 ns, which would get a
/// separate table. So the catalogue gives times that may be 0 in seconds.
fn units() -> Vec<(&'static str, &'static str, f64)> {
    let units = METRICS.iter().filter_map(|metric| {
        let (unit, base_units) = metric.benchstat?;
        Some((metric.name, unit, base_units))
    });
    units.collect()
}

/// Writes the trials of a run as benchmark results, one line each ("Go benchmark
/// data format", proposal 14313): a trial's value is the median of its
/// iterations. A/A twins are left out, as are treatments without a trial and
/// emulated ones.
///
/// benchstat makes a separate table for each value of a configuration line. So
/// those lines hold only what two runs to be compared have in common; the rest
/// is in comments.
pub fn benchstat(run: &Run) -> Result<String, String> {
    let all = series::with_durations(run, "benchstat's text")?;
    let (run, analysis) = (&run.stored.run, &run.analysis);
    let mut text = String::new();
    let mut push = |line: String| {
        text.push_str(&sanitize(&line));
        text.push('\n');
    };
    push("goos: linux".into());
    push(format!("goarch: {}", GO_ARCHITECTURE));
    push(format!("pkg: toll/{}", run.experiment));
    push(format!("cpu: {}", run.machine.cpu_model));
    push(format!(
        "# run {} ({}), {}, toll {}, Linux {}",
        run.id, run.uid, run.created_at, run.toll_version, run.machine.kernel_release
    ));
    let own = own_unit(analysis);
    if let (Some(unit), Some(metric)) = (&own, analysis.metrics.get(&analysis.primary_metric)) {
        match metric.better {
            Better::Lower => push(format!("Unit {unit} better=lower")),
            Better::Higher => push(format!("Unit {unit} better=higher")),
            Better::Neither => {}
        }
    }
    let name = benchmark_name(&run.experiment);
    let cpus = run.machine.cpus_online.max(1);
    let primary = own.as_deref();
    let primary = primary.map(|unit| (analysis.primary_metric.as_str(), unit, 1.0));
    let columns: Vec<(&str, &str, f64)> = units().into_iter().chain(primary).collect();
    for series in &all {
        let label = word(&series.treatment.label);
        for (trial, iterations) in series.iterations.iter().enumerate() {
            let value = |(metric, unit, factor): &(&str, &str, f64)| {
                let value = series.values(metric).get(trial)?;
                Some(format!("{} {unit}", value / factor))
            };
            let values: Vec<String> = columns.iter().filter_map(value).collect();
            let iterations = (*iterations).max(1);
            push(format!(
                "{name}/{label}-{cpus} {iterations} {}",
                values.join(" ")
            ));
        }
    }
    Ok(text)
}

/// Go's name of the architecture.
const GO_ARCHITECTURE: &str = if cfg!(target_arch = "x86_64") {
    "amd64"
} else {
    "arm64"
};

/// The experiment's metric as a unit; `None` if Go's programs know the metric.
fn own_unit(analysis: &Analysis) -> Option<String> {
    let metric = &analysis.primary_metric;
    let is_common = units().iter().any(|(name, ..)| name == metric);
    (!is_common).then(|| word(metric))
}

/// Returns `BenchmarkDdBlockSize` for `dd-block-size`.
fn benchmark_name(experiment: &str) -> String {
    let words = experiment.split(|c: char| !c.is_alphanumeric());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters
            .next()
            .map(|letter| letter.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    let name: String = words.map(capital).collect();
    format!("Benchmark{name}")
}

/// Joins words with underscores: the parts of a Go benchmark's name have no spaces.
fn word(text: &str) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.is_empty() {
        "_".into()
    } else {
        parts.join("_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_go_would_give() {
        assert_eq!(benchmark_name("dd-block-size"), "BenchmarkDdBlockSize");
        assert_eq!(benchmark_name("commands"), "BenchmarkCommands");
        assert_eq!(benchmark_name("_"), "Benchmark");
        assert_eq!(word("sleep 0.1\t x\u{a0}y"), "sleep_0.1_x_y");
        assert_eq!(word(" "), "_");
    }
}
