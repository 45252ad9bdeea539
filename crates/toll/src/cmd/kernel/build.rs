//! `toll kernel build`

use std::io::{IsTerminal, stderr};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::output;
use crate::cmd::run::exit_code_of;
use crate::environment::kernel::{
    BuildError, BuildObserver, Built, Kernel, Variant, build, check_requirements,
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
    let variants = arguments.asked();
    check_requirements(&variants)?;
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = arguments.jobs.map_or(cpus, NonZeroUsize::get);
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    for variant in variants {
        let mut progress = Progress::new(variant, &interrupt);
        let built = build(variant, threads, &mut progress);
        progress.finish();
        match built {
            Ok(built) => tell(&built, progress.begin.elapsed())?,
            Err(BuildError::Interrupted) => {
                output::note("interrupted; the same command goes on from here");
                return Ok(exit_code_of(interrupt.signal().unwrap_or(2)));
            }
            Err(error) => return Err(explain(error)),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The lines of a log that an error brings stand before it, each by itself.
fn explain(error: BuildError) -> anyhow::Error {
    let BuildError::Failed(message) = &error else {
        return error.into();
    };
    let (first, log) = message.split_once('\n').unwrap_or((message, ""));
    for line in log.lines() {
        output::note(&format!("  | {line}"));
    }
    anyhow::Error::msg(first.to_owned())
}

fn tell(built: &Built, took: Duration) -> anyhow::Result<()> {
    let line = |kernel: &Kernel, how: &str| {
        let directory = kernel.directory.display();
        let word = kernel.variant.word();
        output::result(&format!(
            "{word}: Linux {} {how}: {directory}",
            kernel.release
        ))
    };
    match built {
        Built::Found(kernel) => line(kernel, "is built already"),
        Built::FoundUnasked(kernel, why) => {
            output::note(&format!(
                "{}: whether there is a newer source is not known: {why}",
                kernel.variant.word()
            ));
            line(kernel, "is built already")
        }
        Built::Made(kernel) => line(kernel, &format!("is built ({} s)", took.as_secs())),
    }
}

/// Shows how a build goes on: a live bar on a terminal, plain lines elsewhere.
struct Progress<'a> {
    variant: Variant,
    interrupt: &'a Interrupt,
    bar: Option<ProgressBar>,
    begin: Instant,
    last_line: Instant,
}

impl<'a> Progress<'a> {
    fn new(variant: Variant, interrupt: &'a Interrupt) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_live = stderr().is_terminal() && !is_dumb;
        let bar = is_live.then(|| {
            let bar = ProgressBar::new(0);
            // The templates are constant; a test draws one.
            bar.set_style(ProgressStyle::with_template(STEP).expect("template is right"));
            bar.set_prefix(variant.word());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            variant,
            interrupt,
            bar,
            begin: Instant::now(),
            last_line: Instant::now(),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const STEP: &str = "{prefix:.bold} {spinner} {msg} {elapsed}";
const COMPILATION: &str =
    "{prefix:.bold} {wide_bar:.cyan/dim} {pos} of about {len} objects, {elapsed}";

impl BuildObserver for Progress<'_> {
    fn step(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_style(ProgressStyle::with_template(STEP).expect("template is right"));
                bar.set_message(what.to_owned());
            }
            None => output::note(&format!("{}: {what}", self.variant.word())),
        }
    }

    fn compiled(&mut self, objects: u64, expected: u64) {
        let expected = expected.max(objects);
        if let Some(bar) = &self.bar {
            if bar.length() != Some(expected) {
                bar.set_style(
                    ProgressStyle::with_template(COMPILATION).expect("template is right"),
                );
                bar.set_length(expected);
            }
            bar.set_position(objects);
        } else if self.last_line.elapsed() >= PLAIN_LINE_EVERY {
            self.last_line = Instant::now();
            output::note(&format!(
                "{}: {objects} of about {expected} objects compiled",
                self.variant.word()
            ));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.signal().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_right() {
        for template in [STEP, COMPILATION] {
            ProgressStyle::with_template(template).unwrap();
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
