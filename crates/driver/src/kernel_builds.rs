//! Building kernels, and showing the progress.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use toll_host::environment::kernel::{
    BuildError, BuildEvent, Built, Kernel, build, check_requirements,
};
use toll_system::interrupt::Interrupt;
use toll_system::output;

use crate::progress::is_live;

/// Minimum time between plain lines of progress if there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(60);

/// Builds some kernels with `jobs` threads, or one for each CPU, and passes a line about each to
/// `say`. Returns the signal that interrupted the builds, if one did.
pub fn build_all(
    names: &[String],
    jobs: Option<NonZeroUsize>,
    say: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<i32>> {
    check_requirements(names)?;
    let threads = jobs.map_or_else(cpus, NonZeroUsize::get);
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    for name in names {
        let begin = Instant::now();
        let built = build_one(name, threads, &|| interrupt.signal().is_some());
        match built {
            Ok(built) => say(&success(&built, begin.elapsed()))?,
            Err(BuildError::Interrupted) => {
                output::note("interrupted; the same command continues from here");
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

/// Builds a kernel and shows the progress.
pub fn build_one(
    name: &str,
    threads: usize,
    interrupted: &dyn Fn() -> bool,
) -> Result<Built, BuildError> {
    let mut progress = Progress::new(name);
    let built = build(
        name,
        threads,
        &mut |event| progress.show(event),
        interrupted,
    );
    if let Some(bar) = &progress.bar {
        bar.finish_and_clear();
    }
    built
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn success(built: &Built, took: Duration) -> String {
    let Kernel {
        name,
        release,
        directory,
        ..
    } = &built.kernel;
    if let Some(why) = &built.unasked {
        output::note(&format!(
            "{name}: cannot tell whether there is a newer source: {why}"
        ));
    }
    let how = if built.is_new {
        format!("is built ({} s)", took.as_secs())
    } else {
        "is built already".to_owned()
    };
    let directory = directory.display();
    format!("{name}: Linux {release} {how}: {directory}")
}

/// Shows the progress of a build: a live bar on a terminal, plain lines elsewhere.
struct Progress {
    name: String,
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
    fn new(name: &str) -> Self {
        let bar = is_live().then(|| {
            let bar = ProgressBar::new(0)
                .with_style(template(STEP))
                .with_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            name: name.to_owned(),
            bar,
            last_line: Instant::now(),
        }
    }

    fn show(&mut self, event: BuildEvent<'_>) {
        match (event, &self.bar) {
            (BuildEvent::Step(what), None) => output::note(&format!("{}: {what}", self.name)),
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
                    let name = &self.name;
                    output::note(&format!(
                        "{name}: {objects} of about {expected} objects compiled"
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
}
