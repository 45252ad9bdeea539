//! `toll kernel show`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::{Failure, output};
use crate::environment::kernel::{
    ConfigDifference, Kernel, Variant, config_differences, find, options_set,
};
use crate::report::sanitize::sanitize;

/// Differing options that are shown; more are counted.
const DIFFERENCES_MAX: usize = 40;

const NOTES: &str = "\
Examples:
  toll kernel show
  toll kernel show toll-debug --against toll
  toll kernel show stock --json";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct ShowArguments {
    /// Which kernel
    #[arg(value_name = "VARIANT", value_enum, default_value = "toll")]
    variant: Variant,
    /// Compare the configuration with that of another kernel [default: the
    /// first other one that is built]
    #[arg(long, value_name = "VARIANT", value_enum)]
    against: Option<Variant>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    kernel: Kernel,
    options_set: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

#[derive(Debug, Serialize)]
struct Comparison {
    against: Variant,
    against_config: PathBuf,
    differences: Vec<ConfigDifference>,
}

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let kernel = find(arguments.variant).map_err(Failure::Prerequisite)?;
    let other = match arguments.against {
        Some(variant) => Some(find(variant).map_err(Failure::Prerequisite)?),
        None => Variant::ALL
            .into_iter()
            .filter(|variant| *variant != arguments.variant)
            .find_map(|variant| find(variant).ok()),
    };
    let comparison = other
        .map(|other| {
            Ok::<_, anyhow::Error>(Comparison {
                against: other.variant,
                differences: config_differences(&kernel, &other).map_err(anyhow::Error::msg)?,
                against_config: other.config,
            })
        })
        .transpose()?;
    let shown = Shown {
        options_set: options_set(&kernel).map_err(anyhow::Error::msg)?,
        kernel,
        comparison,
    };
    match arguments.json {
        true => output::json(&shown)?,
        false => output::listing(&text(&shown))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(shown: &Shown) -> String {
    let kernel = &shown.kernel;
    let mut lines = vec![format!(
        "Kernel {}: Linux {}",
        kernel.variant.word(),
        kernel.release
    )];
    let mut field = |name: &str, value: &str| lines.push(format!("  {name:<14} {value}"));
    field("source", &kernel.source);
    field("compiler", &kernel.compiler);
    field("built (UTC)", &kernel.built_at);
    field("key", &kernel.key);
    field("recipe", &kernel.recipe);
    field("image", &kernel.image.display().to_string());
    let config = format!(
        "{} ({} options set)",
        kernel.config.display(),
        shown.options_set
    );
    field("configuration", &config);
    field(
        "build log",
        &kernel.directory.join("build.log").display().to_string(),
    );
    let mut group = |name: &str, values: &[String]| {
        for (number, value) in values.iter().enumerate() {
            field(if number == 0 { name } else { "" }, value);
        }
        if values.is_empty() {
            field(name, "none");
        }
    };
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    group("patches", &kernel.patches);
    group("modules", &paths(&kernel.modules));
    group("boot modules", &paths(&kernel.boot_modules));
    if let Some(comparison) = &shown.comparison {
        lines.push(String::new());
        lines.extend(compared(shown, comparison));
    }
    let lines: Vec<String> = lines.iter().map(|line| sanitize(line)).collect();
    lines.join("\n")
}

fn compared(shown: &Shown, comparison: &Comparison) -> Vec<String> {
    let (word, other) = (shown.kernel.variant.word(), comparison.against.word());
    let all = &comparison.differences;
    let mut lines = vec![format!("{} options differ from {other}:", all.len())];
    lines.push(format!("  {:<36} {word:<12} {other}", "option"));
    for difference in all.iter().take(DIFFERENCES_MAX) {
        let ConfigDifference {
            option,
            here,
            there,
        } = difference;
        lines.push(format!("  {option:<36} {here:<12} {there}"));
    }
    if all.len() > DIFFERENCES_MAX {
        lines.push(format!(
            "  and {} more: diff {} {}",
            all.len() - DIFFERENCES_MAX,
            shown.kernel.config.display(),
            comparison.against_config.display()
        ));
    }
    lines
}
