//! The virtual device beside a connection of two programs, in one guest.
//!
//! `toll` makes the run; here its trials become ratios of throughput. Under
//! emulation `toll` itself compares no times, since they are those of the
//! emulation: the table says so, and has path lengths in instructions beside
//! them.
//!
//! Architecture invariant: [`render`] makes the whole table of a [`Document`].

use crate::kept::Kept;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use toll_stats::{Interval, hodges_lehmann, median};

use crate::machine::Machine;

/// Version of the format.
pub const VERSION: u32 = 1;

const CONFIDENCE: f64 = 0.95;

/// Metric of a guest with a clock of its own, and of one that counts
/// instructions.
const METRICS: [&str; 2] = ["duration_ns", "path_length_instructions"];

/// A run of `bench-device`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Time of the start, RFC 3339 in UTC.
    pub date: String,
    /// Version of `toll`.
    pub toll_version: String,
    /// Seed of the order of trials.
    pub seed: String,
    /// The machine.
    pub machine: Machine,
    /// What executed the instructions of the guests with a clock: `kvm`, `tcg`.
    pub accelerator: String,
    /// Release of the guests' kernel.
    pub kernel: String,
    /// Bytes sent in one trial.
    pub size_bytes: u64,
    /// What was run.
    pub ways: Vec<Way>,
    /// Trials without a value, one sentence each.
    pub notes: Vec<String>,
}

/// One way to send a file, in one kind of guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// Its levels by factor.
    pub levels: BTreeMap<String, String>,
    /// Whether it is the same as the way before it once more.
    pub is_twin: bool,
    /// One value a block: nanoseconds, or instructions of a guest that counts
    /// them; none where the trial has none.
    pub values: Vec<Option<f64>>,
}

/// A run as `toll export --json` writes it: what is needed of it.
#[derive(Debug, Deserialize)]
struct Exported {
    run: RunHead,
    treatments: Vec<Treatment>,
    trials: Vec<Trial>,
    #[serde(default)]
    boots: Vec<Boot>,
}

#[derive(Debug, Deserialize)]
struct RunHead {
    created_at: String,
    toll_version: String,
    seed: String,
}

#[derive(Debug, Deserialize)]
struct Treatment {
    index: usize,
    levels: BTreeMap<String, Level>,
    twin_of: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Level {
    text: String,
}

#[derive(Debug, Deserialize)]
struct Trial {
    block: usize,
    treatment: usize,
    message: Option<String>,
    samples: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Deserialize)]
struct Boot {
    accelerator: Option<String>,
    #[serde(default)]
    facts: BTreeMap<String, String>,
}

impl Kept for Document {
    const VERSION: u32 = VERSION;
    const NAME: &'static str = "device";

    fn version(&self) -> u32 {
        self.version
    }

    fn table(&self) -> String {
        render(self)
    }
}

impl Document {
    /// Takes what the table needs from an exported run.
    ///
    /// # Errors
    /// If it is no run of `toll`, or none of transfers in guests.
    pub fn of_run(json: &str, machine: Machine) -> Result<Self, String> {
        let exported: Exported = serde_json::from_str(json)
            .map_err(|error| format!("cannot read the run: {error}; is toll of this version?"))?;
        let timed = exported.boots.iter().find(|boot| {
            let word = boot.accelerator.as_deref();
            word.is_some_and(|word| word != "icount")
        });
        let timed = timed.ok_or("cannot make a table: no guest with a clock was booted")?;
        let blocks = exported.trials.iter().map(|trial| trial.block + 1).max();
        let blocks = blocks.ok_or("cannot make a table: nothing was run")?;
        let size = |treatment: &Treatment| treatment.levels.get("size")?.text.parse().ok();
        Ok(Self {
            version: VERSION,
            date: exported.run.created_at.clone(),
            toll_version: exported.run.toll_version.clone(),
            seed: exported.run.seed.clone(),
            machine,
            accelerator: timed.accelerator.clone().unwrap_or_default(),
            kernel: timed
                .facts
                .get("kernel release")
                .cloned()
                .unwrap_or_default(),
            size_bytes: exported.treatments.iter().find_map(size).unwrap_or(0),
            ways: exported
                .treatments
                .iter()
                .map(|treatment| exported.way(treatment, blocks))
                .collect(),
            notes: exported.notes(),
        })
    }

    fn way(&self, accelerator: &str, wanted: &[(&str, &str)], is_twin: bool) -> Option<&Way> {
        self.ways.iter().find(|way| {
            let has = |name: &str, text: &str| way.levels.get(name).is_some_and(|it| it == text);
            way.is_twin == is_twin
                && has("accelerator", accelerator)
                && wanted.iter().all(|(name, text)| has(name, text))
        })
    }
}

impl Exported {
    fn way(&self, treatment: &Treatment, blocks: usize) -> Way {
        let mut values = vec![None; blocks];
        let own = |trial: &&Trial| trial.treatment == treatment.index;
        for trial in self.trials.iter().filter(own) {
            let samples = METRICS.iter().find_map(|metric| trial.samples.get(*metric));
            values[trial.block] = samples
                .filter(|samples| !samples.is_empty())
                .map(|samples| median(samples));
        }
        let levels = treatment.levels.iter();
        Way {
            levels: levels
                .map(|(name, level)| (name.clone(), level.text.clone()))
                .collect(),
            is_twin: treatment.twin_of.is_some(),
            values,
        }
    }

    fn notes(&self) -> Vec<String> {
        let without = self.trials.iter().filter_map(|trial| {
            let message = trial.message.as_ref()?;
            Some(format!("block {}: {message}", trial.block + 1))
        });
        without.collect()
    }
}

/// What is to be at least as fast as what.
struct Goal {
    what: &'static str,
    of: &'static [(&'static str, &'static str)],
    to: &'static [(&'static str, &'static str)],
}

const MMAP_64K: &[(&str, &str)] = &[
    ("channel", "device"),
    ("sender", "mmap"),
    ("buffer", "64KiB"),
];
const MMAP_1M: &[(&str, &str)] = &[
    ("channel", "device"),
    ("sender", "mmap"),
    ("buffer", "1MiB"),
];
const SENDFILE_64K: &[(&str, &str)] = &[
    ("channel", "tcp"),
    ("sender", "sendfile"),
    ("buffer", "64KiB"),
];
const SENDFILE_1M: &[(&str, &str)] = &[
    ("channel", "tcp"),
    ("sender", "sendfile"),
    ("buffer", "1MiB"),
];
const DEVICE_READ_WRITE: &[(&str, &str)] = &[("channel", "device"), ("sender", "read-write")];
const TCP_READ_WRITE: &[(&str, &str)] = &[("channel", "tcp"), ("sender", "read-write")];

const GOALS: [Goal; 3] = [
    Goal {
        what: "mmap → mmap, 64 KiB at a time, over sendfile of two programs",
        of: MMAP_64K,
        to: SENDFILE_64K,
    },
    Goal {
        what: "mmap → mmap, 1 MiB at a time, over sendfile of two programs",
        of: MMAP_1M,
        to: SENDFILE_1M,
    },
    Goal {
        what: "fcntl → fcntl, 64 KiB a call, over read and write of two programs",
        of: DEVICE_READ_WRITE,
        to: TCP_READ_WRITE,
    },
];

/// Ratio of throughput, that of `of` over that of `to`, over the blocks that
/// have both; `None` if there is none.
fn throughput_ratio(of: &Way, to: &Way) -> Option<Interval> {
    let both = of.values.iter().zip(&to.values);
    let logarithms: Vec<f64> = both
        .filter_map(|(of, to)| Some(((*to)? / (*of)?).ln()))
        .collect();
    (!logarithms.is_empty()).then(|| hodges_lehmann(&logarithms, CONFIDENCE).map(f64::exp))
}

/// Whether a throughput is at least that of another.
fn verdict(ratio: &Interval) -> &'static str {
    match ratio {
        _ if !ratio.reaches(CONFIDENCE) => "too few blocks",
        _ if ratio.low >= 1.0 => "reached",
        _ if ratio.high < 1.0 => "missed",
        _ => "level",
    }
}

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# The virtual device beside two programs\n\n");
    head(&mut text, document);
    for (accelerator, of_what, remark) in [
        ("auto", "Time", emulation(document)),
        (
            "icount",
            "Path",
            "Instructions of both ends and the kernel together, on one processor.\n",
        ),
    ] {
        put(&mut text, format_args!("\n## {of_what}\n\n{remark}\n"));
        text += "| throughput of | ratio | at least 1 |\n|---|---|---|\n";
        for goal in &GOALS {
            let of = document.way(accelerator, goal.of, false);
            let ratio = of.zip(document.way(accelerator, goal.to, false));
            let ratio = ratio.and_then(|(of, to)| throughput_ratio(of, to));
            row(&mut text, goal.what, ratio.as_ref(), verdict);
        }
        let twin = document.ways.iter().find(|way| {
            way.is_twin
                && way
                    .levels
                    .get("accelerator")
                    .is_some_and(|it| it == accelerator)
        });
        if let Some(twin) = twin {
            let same = |way: &&Way| !way.is_twin && way.levels == twin.levels;
            let ratio = document.ways.iter().find(same);
            let ratio = ratio.and_then(|original| throughput_ratio(twin, original));
            row(
                &mut text,
                "sendfile, and the same once more",
                ratio.as_ref(),
                |_| "noise",
            );
        }
        medians(&mut text, document, accelerator);
    }
    if !document.notes.is_empty() {
        text += "\n## Without a value\n\n";
        for note in &document.notes {
            put(&mut text, format_args!("- {note}\n"));
        }
    }
    text
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing into a string cannot fail");
}

fn emulation(document: &Document) -> &'static str {
    match document.accelerator.as_str() {
        "kvm" => "Guests ran under KVM.\n",
        _ => {
            "Guests ran under emulation (TCG), which makes some instructions dearer than others: these ratios are those of \
             the emulation.\n"
        }
    }
}

fn head(text: &mut String, document: &Document) {
    let machine = &document.machine;
    put(
        text,
        format_args!(
            "- Date: {}\n- Machine: {}, {} CPUs, virtualisation {}, load before the run {:.2}\n\
             - System: Linux {}; guests: Linux {}, {}\n- Made by `bench-device` of toll {}, seed {}\n\
             - {} bytes, warm, into a file on tmpfs; the time lasts until the receiver has all of it\n\
             - A ratio is the Hodges–Lehmann estimate of the blocks' log-ratios with its 95 % signed-rank interval; above 1 \
             the first is faster. `reached` if the interval lies at or above 1, `missed` below it, else `level`\n",
            document.date,
            machine.cpu_model,
            machine.cpus,
            machine.virtualization,
            machine.load_before,
            machine.kernel,
            document.kernel,
            document.accelerator,
            document.toll_version,
            document.seed,
            document.size_bytes,
        ),
    );
}

fn row(
    text: &mut String,
    what: &str,
    ratio: Option<&Interval>,
    word: impl Fn(&Interval) -> &'static str,
) {
    match ratio {
        Some(ratio) => put(
            text,
            format_args!(
                "| {what} | {:.3} [{:.3}, {:.3}] | {} |\n",
                ratio.estimate,
                ratio.low,
                ratio.high,
                word(ratio)
            ),
        ),
        None => put(text, format_args!("| {what} | not measured | |\n")),
    }
}

/// What each way took, by its median.
fn medians(text: &mut String, document: &Document, accelerator: &str) {
    let unit = match accelerator {
        "icount" => "million instructions",
        _ => "ms",
    };
    put(
        text,
        format_args!("\n| channel | sender → receiver | buffer | median, {unit} | blocks |\n"),
    );
    *text += "|---|---|---|---|---|\n";
    for way in &document.ways {
        let level = |name: &str| way.levels.get(name).map_or("", String::as_str);
        let values: Vec<f64> = way.values.iter().flatten().copied().collect();
        if level("accelerator") != accelerator || way.is_twin || values.is_empty() {
            continue;
        }
        put(
            text,
            format_args!(
                "| {} | {} → {} | {} | {:.1} | {} |\n",
                level("channel"),
                level("sender"),
                level("receiver"),
                level("buffer"),
                median(&values) / 1e6,
                values.len()
            ),
        );
    }
}

#[cfg(test)]
mod tests;
