//! Files to which a run is exported, in the formats of other programs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use toll_core::claim::Run;
use toll_document::Markup;
use toll_host::store::exchange::RunDocument;
use toll_report::{benchmark_formats, benchstat, csv, document, hyperfine, junit};
use toll_system::{Failure, output};

/// Defines the options for files to write. Their long names begin with a prefix.
macro_rules! export_files {
    ($(#[$attribute:meta])* $name:ident, $prefix:literal) => {
        #[derive(Debug, Clone, Args, Default)]
        $(#[$attribute])*
        pub struct $name {
            /// Write everything, every sample included, as JSON, for `toll import` and other
            /// programs; hyperfine's JSON has a separate option
            #[arg(id = concat!($prefix, "json"), long = concat!($prefix, "json"), value_name = "FILE")]
            json: Option<PathBuf>,
            /// Write one line for each trial, iteration and metric as CSV
            #[arg(id = concat!($prefix, "csv"), long = concat!($prefix, "csv"), value_name = "FILE")]
            csv: Option<PathBuf>,
            /// Write verdicts and treatments as tables in Markdown
            #[arg(id = concat!($prefix, "markdown"), long = concat!($prefix, "markdown"), value_name = "FILE")]
            markdown: Option<PathBuf>,
            /// Write verdicts and treatments as tables in AsciiDoc
            #[arg(id = concat!($prefix, "asciidoc"), long = concat!($prefix, "asciidoc"), value_name = "FILE")]
            asciidoc: Option<PathBuf>,
            /// Write verdicts and treatments as tables for Emacs' Org mode
            #[arg(id = concat!($prefix, "orgmode"), long = concat!($prefix, "orgmode"), value_name = "FILE")]
            orgmode: Option<PathBuf>,
            /// Write hyperfine's metrics in hyperfine's JSON, for its scripts
            #[arg(id = concat!($prefix, "hyperfine"), long = concat!($prefix, "hyperfine"), value_name = "FILE")]
            hyperfine: Option<PathBuf>,
            /// Write durations in the text of Go's benchmarks, for benchstat
            #[arg(id = concat!($prefix, "benchstat"), long = concat!($prefix, "benchstat"), value_name = "FILE")]
            benchstat: Option<PathBuf>,
            /// Write medians in the JSON of github-action-benchmark
            #[arg(id = concat!($prefix, "github_action_benchmark"),
                  long = concat!($prefix, "github-action-benchmark"), value_name = "FILE")]
            github_action_benchmark: Option<PathBuf>,
            /// Write medians in the JSON of Bencher (Bencher Metric Format)
            #[arg(id = concat!($prefix, "bencher"), long = concat!($prefix, "bencher"), value_name = "FILE")]
            bencher: Option<PathBuf>,
            /// Write verdicts as a JUnit report, with a test case for each claim; without claims,
            /// with a test case for each comparison, which fails on a regression past the limit of
            /// --fail-on
            #[arg(id = concat!($prefix, "junit"), long = concat!($prefix, "junit"), value_name = "FILE")]
            pub junit: Option<PathBuf>,
        }

        impl $name {
            fn all(&self, schema: Schema) -> [(&Option<PathBuf>, Writer); 10] {
                let hyperfine: Writer = match schema {
                    Schema::First => |run| hyperfine::schema_1(run).map_err(refused),
                    Schema::Second => |run| hyperfine::schema_2(run).map_err(refused),
                };
                [
                    (&self.json, run_document),
                    (&self.csv, |run| Ok(csv::csv(&run.stored))),
                    (&self.markdown, |run| Ok(document::document(run).markup(Markup::Markdown))),
                    (&self.asciidoc, |run| Ok(document::document(run).markup(Markup::AsciiDoc))),
                    (&self.orgmode, |run| Ok(document::document(run).markup(Markup::Org))),
                    (&self.hyperfine, hyperfine),
                    (&self.benchstat, |run| benchstat::benchstat(run).map_err(refused)),
                    (&self.github_action_benchmark, |run| {
                        benchmark_formats::github_action_benchmark(run).map_err(refused)
                    }),
                    (&self.bencher, |run| benchmark_formats::bencher(run).map_err(refused)),
                    (&self.junit, |run| junit::junit(run).map_err(refused)),
                ]
            }

            /// The files that are named.
            pub fn files(&self) -> Vec<&Path> {
                let all = self.all(Schema::default());
                all.into_iter().filter_map(|(path, _)| path.as_deref()).collect()
            }

            /// Writes a run to the files that are named. If a format does not apply, the other
            /// files are still written, and the first error is returned.
            pub fn write(&self, run: &Run, schema: Schema) -> anyhow::Result<()> {
                let mut first_failure = Ok(());
                for (path, writer) in self.all(schema) {
                    if let Some(path) = path {
                        let text = writer(run);
                        let written =
                            text.and_then(|text| output::write_file(path, text.as_bytes()));
                        first_failure = first_failure.and(written);
                    }
                }
                first_failure
            }
        }
    };
}

export_files!(
    /// Files to write; `-` is standard output.
    ExportFiles,
    ""
);

export_files!(
    /// Files to write for `toll run`, under the names that hyperfine gives such options.
    RunExports,
    "export-"
);

/// A version of hyperfine's JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Schema {
    #[value(name = "1")]
    First,
    #[default]
    #[value(name = "2")]
    Second,
}

/// Writes a run in one format.
type Writer = fn(&Run) -> anyhow::Result<String>;

fn run_document(run: &Run) -> anyhow::Result<String> {
    let document = RunDocument::new(run.stored.clone(), run.analysis.clone());
    Ok(format!("{}\n", output::json_text(&document)?))
}

/// Makes a usage error: a format that does not apply was requested by mistake.
fn refused(reason: String) -> anyhow::Error {
    Failure::Usage(reason).into()
}
