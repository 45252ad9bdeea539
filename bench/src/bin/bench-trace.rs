//! `bench-trace`: does one round of `bench/trace.toml`.
//!
//! `bench-trace TOLL CASE DIR` measures the prices of calls again, in a separate store in `DIR`.
//! It prints two savings for a program that copies in small pieces: the one that `toll trace`
//! predicts, and the one measured without trace.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use toll_bench::process::{command, finish};
use toll_bench::toll::{Toll, parse, remove_store};
use toll_stats::{Rng, median};
use toll_wire::{CacheState, CopyMethod, CopyRequest, Outcome, Request, Sink, Source, Workload};
use xxhash_rust::xxh3::xxh3_64;

/// Number of processes that copy in each of two ways, in turns.
const PROCESSES: usize = 25;
/// Number of copies by each process. A copy takes less than a millisecond, so most copies run
/// undisturbed even on a busy machine.
const ITERATIONS: u32 = 10;

/// One round: a way to copy that a larger buffer makes faster.
struct Round {
    toll: Toll,
    probe: PathBuf,
    source: PathBuf,
    size_bytes: usize,
    method: CopyMethod,
    sink: Sink,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [toll, case, directory] = &words[..] else {
        return ExitCode::from(2);
    };
    let round = Round::new(Path::new(toll), case, Path::new(directory));
    finish("bench-trace", round.and_then(|round| round.run()))
}

impl Round {
    fn new(toll: &Path, case: &str, directory: &Path) -> Result<Self, String> {
        let (size_bytes, method, sink) = match case {
            "byte-to-null" => (1 << 10, CopyMethod::Byte, Sink::Null),
            "byte-to-file" => (1 << 10, CopyMethod::Byte, Sink::File),
            "page-to-null" => (4 << 20, CopyMethod::Page, Sink::Null),
            _ => return Err(format!("cannot copy: there is no case {case}")),
        };
        // The probe is in the directory of the program itself, which a link need not be in.
        let program = toll
            .canonicalize()
            .map_err(|error| format!("cannot find {}: {error}", toll.display()))?;
        Ok(Self {
            probe: program.with_file_name("toll-probe"),
            toll: Toll {
                program,
                kept: directory.to_owned(),
            },
            source: directory.join("source"),
            size_bytes,
            method,
            sink,
        })
    }

    fn run(&self) -> Result<String, String> {
        let content = noise(self.size_bytes);
        std::fs::write(&self.source, &content)
            .map_err(|error| format!("cannot write {}: {error}", self.source.display()))?;
        let xxh3 = xxh3_64(&content);
        let (predicted_ns, best_bytes) = self.predicted(xxh3)?;
        let measured_ns = self.measured_ns(xxh3, best_bytes)?;
        Ok(format!(
            "predicted {predicted_ns} ns\nmeasured {measured_ns} ns\nadvised {best_bytes} B\n"
        ))
    }

    /// Returns the line that asks the probe to make some copies.
    fn request(&self, xxh3: u64, method: CopyMethod, buffer_bytes: Option<u64>) -> String {
        let workload = Workload::Copy(CopyRequest {
            method,
            source: Source::File {
                path: self.source.clone(),
                xxh3,
            },
            sink: self.sink,
            cache: CacheState::Warm,
            size_bytes: self.size_bytes as u64,
            buffer_bytes,
            directory: self.toll.kept.clone(),
            ..CopyRequest::default()
        });
        let request = Request {
            iterations: ITERATIONS,
            warmup_iterations: 1,
            ..Request::new(workload)
        };
        toll_wire::encode(&request) + "\n"
    }

    /// Traces the probe as it copies. Returns the saving per copy that `toll trace` predicts, in
    /// nanoseconds, and the buffer that `toll trace` advises, in bytes.
    fn predicted(&self, xxh3: u64) -> Result<(f64, u64), String> {
        let store = self.toll.kept.join("trace.sqlite");
        let file = self.toll.kept.join("trace.json");
        remove_store(&store);
        let mut trace = self.toll.command(&store);
        trace.args(["trace", "--json", "--output"]).arg(&file);
        trace.arg("--").arg(&self.probe);
        answer(&mut trace, &self.request(xxh3, self.method, None))?;
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        prediction(&text, &self.source, self.size_bytes as u64)
    }

    /// Returns the saving per copy with the better buffer, in nanoseconds. Processes with either
    /// buffer take turns. The value of a process is the median of its copies. The saving is the
    /// difference between the medians of both kinds of processes.
    fn measured_ns(&self, xxh3: u64, best_bytes: u64) -> Result<f64, String> {
        let requests = [
            self.request(xxh3, self.method, None),
            self.request(xxh3, CopyMethod::Swept, Some(best_bytes)),
        ];
        let mut durations_ns = [Vec::new(), Vec::new()];
        for _ in 0..PROCESSES {
            for (durations_ns, request) in durations_ns.iter_mut().zip(&requests) {
                let answer = answer(&mut command(&self.probe), request)?;
                durations_ns.push(median(&durations_of(&answer)?));
            }
        }
        Ok(median(&durations_ns[0]) - median(&durations_ns[1]))
    }
}

/// Returns the durations of a probe's copies, in nanoseconds, from its answer.
fn durations_of(answer: &str) -> Result<Vec<f64>, String> {
    let answer = toll_wire::decode_response(answer.trim_end())
        .map_err(|error| format!("cannot read the probe's response: {error}"))?;
    match answer.outcome {
        Outcome::Completed(data) => Ok(data
            .samples
            .iter()
            .filter_map(|sample| sample.metrics.get("duration_ns").copied())
            .collect()),
        Outcome::Failed(failure) => Err(format!("the probe failed: {}", failure.message)),
    }
}

/// Runs a command with a line on its standard input, and returns its output.
fn answer(command: &mut Command, line: &str) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let wrong = |error: std::io::Error| format!("cannot run {name}: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(wrong)?;
    // A program that ended at once does not read the line. Its status shows that.
    let input = child.stdin.take();
    let _ = input.map(|mut input| input.write_all(line.as_bytes()));
    let output = child.wait_with_output().map_err(wrong)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.trim();
    Err(format!("{name} failed ({}): {complaint}", output.status))
}

/// Returns what a trace of the probe predicts for one copy of a source: the saving in nanoseconds
/// and the best buffer in bytes.
fn prediction(text: &str, source: &Path, size_bytes: u64) -> Result<(f64, u64), String> {
    let wrong = |what: &str| format!("cannot read the trace: {what}");
    let report = parse(text)?;
    let list = |name: &str| report[name].as_array().map_or(&[][..], Vec::as_slice);
    let read_bytes = list("files")
        .iter()
        .find(|file| file["name"].as_str().map(Path::new) == Some(source))
        .and_then(|file| file["read"]["bytes"].as_f64());
    // The probe checks the content in a separate pass with the same calls.
    let passes = read_bytes.ok_or_else(|| wrong("nothing was read"))? / size_bytes as f64;
    let saving_ns: Option<f64> = list("advice")
        .iter()
        .filter(|advice| advice["condition"].is_null())
        .map(|advice| Some(advice["now_ns"].as_f64()? - advice["instead_ns"].as_f64()?))
        .sum();
    let saving_ns = saving_ns.ok_or_else(|| wrong("advice without a saving"))?;
    let best_bytes = report["costs"]["best_bytes"].as_u64();
    let best_bytes = best_bytes.ok_or_else(|| wrong("it has no prices"))?;
    Ok((saving_ns / passes, best_bytes))
}

/// Returns bytes that no file system can compress. The bytes are always the same.
fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(1);
    (0..bytes).map(|_| rng.below(256) as u8).collect()
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
