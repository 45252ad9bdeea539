//! The rounds: prices, predictions by them, and measured savings, one after the
//! other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use toll_stats::{Rng, median};
use toll_wire::CopyMethod;

use super::probe::{Probe, answer};
use super::{CASES, Case, Document, Saving, VERSION};
use crate::machine::Machine;
use crate::process::{command, output};
use crate::run::Stop;

/// Processes that copy in each of two ways, by turns.
const PROCESSES: usize = 25;

/// What to measure with.
pub struct Settings {
    /// The program toll; the probe lies beside it.
    pub toll: PathBuf,
    /// Rounds.
    pub rounds: usize,
    /// Seed of the order of cases.
    pub seed: u64,
    /// Directory for stores and for what is copied.
    pub directory: PathBuf,
    /// Command line, for the record.
    pub command_line: String,
    /// Set by a signal.
    pub interrupted: Arc<AtomicBool>,
}

struct Bench<'a> {
    settings: &'a Settings,
    probe: Probe,
    /// The round's own, so that its prices are not those of another.
    store: PathBuf,
}

/// Measures all rounds.
///
/// # Errors
/// If a program fails, as where strace is missing, or at an interrupt.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Document, Stop> {
    let machine = Machine::inspect(&settings.directory);
    let date = jiff::Timestamp::now().strftime("%F %T UTC").to_string();
    let mut bench = Bench {
        probe: Probe::new(
            &settings.toll.with_file_name("toll-probe"),
            &settings.directory,
        )?,
        store: PathBuf::new(),
        settings,
    };
    let mut rng = Rng::new(settings.seed);
    let mut savings: BTreeMap<Case, Vec<Saving>> = BTreeMap::new();
    for round in 0..settings.rounds {
        tell(&format!("round {} of {}", round + 1, settings.rounds));
        bench.store = settings.directory.join(format!("{round}.sqlite"));
        let mut cases = CASES;
        rng.shuffle(&mut cases);
        for case in cases {
            if settings.interrupted.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            savings.entry(case).or_default().push(bench.saving(case)?);
        }
    }
    Ok(Document {
        version: VERSION,
        date,
        command_line: settings.command_line.clone(),
        machine,
        toll: output(command(&settings.toll).arg("--version")).unwrap_or_else(|reason| reason),
        savings,
    })
}

impl Bench<'_> {
    fn saving(&self, case: Case) -> Result<Saving, String> {
        let (predicted_ns, best_bytes) = self.predicted(case)?;
        Ok(Saving {
            predicted_ns,
            measured_ns: self.measured_ns(case, best_bytes)?,
            best_bytes,
        })
    }

    /// Saving of one copy by the better buffer, in nanoseconds: medians over
    /// processes that take turns, each a median over its copies.
    fn measured_ns(&self, case: Case, best_bytes: u64) -> Result<f64, String> {
        let requests = [
            self.probe.request(case, case.method(), None),
            self.probe
                .request(case, CopyMethod::Swept, Some(best_bytes)),
        ];
        let mut durations_ns = [Vec::new(), Vec::new()];
        for _ in 0..PROCESSES {
            for (durations_ns, request) in durations_ns.iter_mut().zip(&requests) {
                durations_ns.push(median(&self.probe.durations_ns(request)?));
            }
        }
        Ok(median(&durations_ns[0]) - median(&durations_ns[1]))
    }

    /// Saving of one copy that `toll trace` predicts for a program that makes
    /// some, the probe, in nanoseconds; and the buffer that it advises, in bytes.
    /// The first of a round has no prices yet, and measures them.
    fn predicted(&self, case: Case) -> Result<(f64, u64), String> {
        let kept = &self.settings.directory;
        let mut toll = command(&self.settings.toll);
        for name in ["XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            toll.env(name, kept.join(name));
        }
        let file = kept.join("trace.json");
        toll.arg("--store")
            .arg(&self.store)
            .args(["trace", "--json", "--output"])
            .arg(&file)
            .arg("--")
            .arg(self.probe.program());
        answer(&mut toll, &self.probe.request(case, case.method(), None))?;
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        prediction(&text, &self.probe.source(), case.size_bytes() as u64)
    }
}

/// What a trace of the probe predicts of one copy of a source.
fn prediction(text: &str, source: &Path, size_bytes: u64) -> Result<(f64, u64), String> {
    let wrong = |what: &str| format!("cannot read the trace: {what}");
    let report: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
    let list = |name: &str| report[name].as_array().map_or(&[][..], Vec::as_slice);
    let is_source = |file: &&Value| file["name"].as_str().map(Path::new) == Some(source);
    let read_bytes = list("files")
        .iter()
        .find(is_source)
        .and_then(|file| file["read"]["bytes"].as_f64());
    // The content is checked in a pass of its own, by the same calls.
    let passes = read_bytes.ok_or_else(|| wrong("nothing was read"))? / size_bytes as f64;
    let saving_ns: Option<f64> = list("advice")
        .iter()
        .filter(|advice| advice["condition"].is_null())
        .map(|advice| Some(advice["now_ns"].as_f64()? - advice["instead_ns"].as_f64()?))
        .sum();
    let saving_ns = saving_ns.ok_or_else(|| wrong("advice without a saving"))?;
    let best_bytes = report["costs"]["best_bytes"].as_u64();
    Ok((
        saving_ns / passes,
        best_bytes.ok_or_else(|| wrong("it has no prices"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"costs":{"best_bytes":65536},
        "files":[{"name":"/a/other","read":{"bytes":7}},{"name":"/a/source","read":{"bytes":3072}}],
        "advice":[{"condition":null,"now_ns":900.0,"instead_ns":60.0},
            {"condition":"if the bytes pass unchanged","now_ns":500.0,"instead_ns":1.0},
            {"condition":null,"now_ns":70.0,"instead_ns":10.0}]}"#;

    #[test]
    fn what_is_saved_without_a_condition_is_shared_among_the_passes() {
        let source = Path::new("/a/source");
        assert_eq!(prediction(TRACE, source, 1024), Ok((300.0, 65_536)));
        assert!(prediction(TRACE, Path::new("/b/source"), 1024).is_err());
        let unpriced = TRACE.replace("best_bytes", "x");
        assert!(prediction(&unpriced, source, 1024).is_err());
    }
}
