//! `toll kernel show`: shows the sources and the files of a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use toll_host::environment::kernel::{Definition, Kernel, find, load, names, require};
use toll_system::{Failure, output};

/// Maximum number of differing options that are listed. The other options are only counted.
const DIFFERENCES_MAX: usize = 40;

const NOTES: &str = "\
Examples:
  toll kernel show
  toll kernel show toll-debug --against toll
  toll kernel show stock --json";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ShowArguments {
    /// Kernel to show
    #[arg(value_name = "NAME", default_value = "toll")]
    name: String,
    /// Compare the configuration with that of another kernel [default: its
    /// base, or else the first other built kernel]
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    kernel: Kernel,
    options_set: usize,
    /// The user's definition, for a kernel of `toll kernel add`.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Definition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

#[derive(Debug, Serialize)]
struct Comparison {
    against: String,
    against_config: PathBuf,
    differences: Vec<ConfigDifference>,
}

/// An option, without `CONFIG_`, that has different values in two configurations; `n` is off.
#[derive(Debug, PartialEq, Serialize)]
struct ConfigDifference {
    option: String,
    here: String,
    there: String,
}

pub fn run(arguments: &ShowArguments) -> anyhow::Result<()> {
    for name in std::iter::once(&arguments.name).chain(&arguments.against) {
        require(name).map_err(Failure::Usage)?;
    }
    let definition = load(&arguments.name).map_err(anyhow::Error::msg)?;
    let kernel = find(&arguments.name).map_err(Failure::Prerequisite)?;
    let base = definition.as_ref().and_then(|one| one.base.clone());
    let against = arguments.against.clone().or(base.map(String::from));
    let other = match against {
        Some(name) => Some(find(&name).map_err(Failure::Prerequisite)?),
        None => names()
            .into_iter()
            .filter(|name| *name != arguments.name)
            .find_map(|name| find(&name).ok()),
    };
    let read = |kernel: &Kernel| {
        let path = &kernel.config;
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::Ok(options(&text))
    };
    let own = read(&kernel)?;
    let compare = |other: Kernel| {
        anyhow::Ok(Comparison {
            against: other.name.to_string(),
            differences: differences(&own, &read(&other)?),
            against_config: other.config,
        })
    };
    let shown = Shown {
        comparison: other.map(compare).transpose()?,
        definition,
        options_set: own.len(),
        kernel,
    };
    if arguments.json {
        output::json(&shown)
    } else {
        output::listing(&lines(&shown))
    }
}

/// Reads the options that a configuration sets; options that are off are left out.
fn options(config: &str) -> BTreeMap<String, String> {
    config
        .lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
        .filter(|(_, value)| *value != "n")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn differences(
    here: &BTreeMap<String, String>,
    there: &BTreeMap<String, String>,
) -> Vec<ConfigDifference> {
    let names: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let off = "n".to_owned();
    let difference = |option: &String| ConfigDifference {
        option: option.clone(),
        here: here.get(option).unwrap_or(&off).clone(),
        there: there.get(option).unwrap_or(&off).clone(),
    };
    let all = names.into_iter().map(difference);
    all.filter(|difference| difference.here != difference.there)
        .collect()
}

fn lines(shown: &Shown) -> Vec<String> {
    let kernel = &shown.kernel;
    let own = |file: &PathBuf| file.display().to_string();
    let config = format!(
        "{} ({} options set)",
        own(&kernel.config),
        shown.options_set
    );
    let paths = |files: &[PathBuf]| files.iter().map(own).collect();
    let groups = [
        ("source", vec![kernel.source.clone()]),
        ("compiler", vec![kernel.compiler.clone()]),
        ("built (UTC)", vec![kernel.built_at.clone()]),
        ("key", vec![kernel.key.clone()]),
        ("recipe", vec![kernel.recipe.clone()]),
        ("image", vec![own(&kernel.image)]),
        ("configuration", vec![config]),
        ("build log", vec![own(&kernel.directory.join("build.log"))]),
        ("patches", kernel.patches.clone()),
        ("modules", paths(&kernel.modules)),
        ("trial modules", paths(&kernel.trial_modules)),
        ("boot modules", paths(&kernel.boot_modules)),
    ];
    let (word, release) = (&kernel.name, &kernel.release);
    let mut lines = vec![format!("Kernel {word}: Linux {release}")];
    for (name, mut values) in groups {
        if values.is_empty() {
            values.push("none".into());
        }
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        lines.extend(
            names
                .zip(values)
                .map(|(name, value)| format!("  {name:<14} {value}")),
        );
    }
    if let Some(comparison) = &shown.comparison {
        let (all, other) = (&comparison.differences, &comparison.against);
        lines.push(String::new());
        lines.push(format!("{} options differ from {other}:", all.len()));
        lines.push(format!("  {:<36} {word:<12} {other}", "option"));
        lines.extend(all.iter().take(DIFFERENCES_MAX).map(|difference| {
            let ConfigDifference {
                option,
                here,
                there,
            } = difference;
            format!("  {option:<36} {here:<12} {there}")
        }));
        if let more @ 1.. = all.len().saturating_sub(DIFFERENCES_MAX) {
            let (here, there) = (own(&kernel.config), own(&comparison.against_config));
            lines.push(format!("  and {more} more: diff {here} {there}"));
        }
    }
    lines
}

#[test]
fn differences_take_off_and_unknown_for_the_same() {
    let config = "#\n# General setup\n#\nCONFIG_SMP=y\nCONFIG_NR_CPUS=8\n\
                  # CONFIG_VT is not set\nCONFIG_LOCALVERSION=\"-toll\"\n";
    let other = "CONFIG_SMP=y\nCONFIG_NR_CPUS=8\nCONFIG_KASAN=y\n# CONFIG_FOO is not set\n";
    let found: Vec<String> = differences(&options(config), &options(other))
        .into_iter()
        .map(|d| format!("{} {} {}", d.option, d.here, d.there))
        .collect();
    assert_eq!(found, ["KASAN n y", "LOCALVERSION \"-toll\" n"]);
}
