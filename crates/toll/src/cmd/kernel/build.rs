//! `toll kernel build`

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::output;
use crate::cmd::progress::is_live;
use crate::cmd::run::exit_code_of;
use crate::environment::kernel::{
    BuildError, BuildEvent, Built, Kernel, Variant, build, check_requirements,
};
use crate::trial::Interrupt;

/// Least time between plain lines where there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(10);

const NOTES: &str = "\
Examples:
  toll kernel build
  toll kernel build toll stock
  toll kernel build --debug --jobs 2

The source comes from Debian's archive through apt, nothing is installed and no step needs root;
everything lies below $XDG_CACHE_HOME/toll. From source it takes a few minutes and 2 GB, stock a few
seconds. An interrupted build goes on where it was. A kernel is built anew when its configuration,
patches or compiler change or the archive has a newer point release; a changed module takes seconds.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct BuildArguments {
    /// Kernels to build [default: toll]. toll: the pinned source, patched and
    /// configured for guests; toll-debug: with the kernel's own checks, not
    /// for measuring; stock: Debian's as it is
    #[arg(value_name = "VARIANT", value_enum)]
    variants: Vec<Variant>,
    /// As the variant toll-debug
    #[arg(long)]
    debug: bool,
    /// As the variant stock
    #[arg(long)]
    stock: bool,
    /// Compile with so many threads [default: one for each CPU]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl BuildArguments {
    /// What is asked for, each once, in the order in which it is listed.
    fn asked(&self) -> Vec<Variant> {
        let is_asked = |variant: &Variant| {
            self.variants.contains(variant)
                || (self.debug && *variant == Variant::Debug)
                || (self.stock && *variant == Variant::Stock)
        };
        let asked: Vec<Variant> = Variant::ALL.into_iter().filter(is_asked).collect();
        match asked.is_empty() {
            true => vec![Variant::Toll],
            false => asked,
        }
    }
}

pub(super) fn run(arguments: &BuildArguments) -> anyhow::Result<ExitCode> {
    Ok(
        match build_all(&arguments.asked(), arguments.jobs, &|text| {
            output::line(text)
        })? {
            Some(signal) => exit_code_of(signal),
            None => ExitCode::SUCCESS,
        },
    )
}

/// Builds some kernels with so many threads, or one for each CPU, and says what it
/// has built. Gives the signal that interrupted it, if one did.
pub(in crate::cmd) fn build_all(
    variants: &[Variant],
    jobs: Option<NonZeroUsize>,
    say: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<i32>> {
    check_requirements(variants)?;
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = jobs.map_or(cpus, NonZeroUsize::get);
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    for variant in variants.iter().copied() {
        let begin = Instant::now();
        let mut progress = Progress::new(variant);
        let mut on_event = |event: BuildEvent<'_>| progress.show(event);
        let built = build(variant, threads, &mut on_event, &|| {
            interrupt.signal().is_some()
        });
        if let Some(bar) = &progress.bar {
            bar.finish_and_clear();
        }
        match built {
            Ok(built) => say(&told(&built, begin.elapsed()))?,
            Err(BuildError::Interrupted) => {
                output::note("interrupted; the same command goes on from here");
                return Ok(Some(interrupt.signal().unwrap_or(2)));
            }
            Err(BuildError::Failed { message, log }) => {
                for line in log {
                    output::note(&format!("  | {line}"));
                }
                return Err(anyhow::Error::msg(message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn told(built: &Built, took: Duration) -> String {
    let Kernel {
        variant,
        release,
        directory,
        ..
    } = &built.kernel;
    if let Some(why) = &built.unasked {
        output::note(&format!(
            "{}: whether there is a newer source is not known: {why}",
            variant.word()
        ));
    }
    let how = match built.is_new {
        true => format!("is built ({} s)", took.as_secs()),
        false => "is built already".to_owned(),
    };
    let directory = directory.display();
    format!("{}: Linux {release} {how}: {directory}", variant.word())
}

/// Shows how a build goes on: a live bar on a terminal, plain lines elsewhere.
struct Progress {
    word: &'static str,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

const STEP: &str = "{prefix:.bold} {spinner} {msg} {elapsed}";
const COMPILATION: &str =
    "{prefix:.bold} {wide_bar:.cyan/dim} {pos} of about {len} objects, {elapsed}";

fn template(text: &str) -> ProgressStyle {
    // The templates are constant; a test draws them.
    ProgressStyle::with_template(text).expect("template is right")
}

impl Progress {
    fn new(variant: Variant) -> Self {
        let word = variant.word();
        let bar = is_live().then(|| {
            let bar = ProgressBar::new(0)
                .with_style(template(STEP))
                .with_prefix(word);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            word,
            bar,
            last_line: Instant::now(),
        }
    }

    fn show(&mut self, event: BuildEvent<'_>) {
        match (event, &self.bar) {
            (BuildEvent::Step(what), None) => output::note(&format!("{}: {what}", self.word)),
            (BuildEvent::Step(what), Some(bar)) => {
                bar.set_style(template(STEP));
                bar.set_message(output::shown(what));
            }
            (BuildEvent::Compiled { objects, expected }, Some(bar)) => {
                if bar.length() != Some(expected) {
                    bar.set_style(template(COMPILATION));
                    bar.set_length(expected);
                }
                bar.set_position(objects);
            }
            (BuildEvent::Compiled { objects, expected }, None) => {
                if self.last_line.elapsed() >= PLAIN_LINE_EVERY {
                    self.last_line = Instant::now();
                    let word = self.word;
                    output::note(&format!(
                        "{word}: {objects} of about {expected} objects compiled"
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_right() {
        for template in [STEP, COMPILATION] {
            super::template(template);
        }
    }

    #[test]
    fn each_variant_is_built_once_and_toll_if_none_is_named() {
        let asked = |variants: &[Variant], debug, stock| {
            let arguments = BuildArguments {
                variants: variants.to_vec(),
                debug,
                stock,
                jobs: None,
            };
            arguments.asked()
        };
        assert_eq!(asked(&[], false, false), [Variant::Toll]);
        assert_eq!(asked(&[], true, false), [Variant::Debug]);
        let twice = [Variant::Stock, Variant::Toll, Variant::Stock];
        assert_eq!(asked(&twice, false, true), [Variant::Toll, Variant::Stock]);
    }
}
