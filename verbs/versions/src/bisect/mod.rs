//! `toll bisect`: finds the commit that changed a metric.

mod arguments;
mod kernels;
mod measure;
pub mod show;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use measure::{Measured, Measurements};
use toll_core::claim::better_side;
use toll_driver::listen;
use toll_driver::measuring_lock;
use toll_driver::stores;
use toll_host::store::Store;
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, exit_code_of, output};

use super::ci::tell_last_of_build;
use crate::repository::{BuildFailure, Repository, Version};
use crate::search::{Bisection, Effect, Ending, Limits, Next, Stage};

pub use arguments::BisectArguments;

pub fn run(arguments: &BisectArguments, store: &Path) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let repository = Repository::open(&arguments.tree).map_err(Failure::Prerequisite)?;
    let (good, bad) = &arguments.range;
    let versions = repository.range(good, bad).map_err(Failure::Usage)?;
    let _lock = measuring_lock::take_or_wait(!arguments.no_wait, "leave out --no-wait to wait")?;
    let interrupt = listen()?;
    let mut store = stores::open_store(store)?;
    let measurements = Measurements::new(arguments, &repository, &versions, &mut store)?;
    let mut search = Search {
        arguments,
        repository: &repository,
        versions: &versions,
        measurements,
        interrupt,
    };
    search.run()
}

/// Compares two commits as the ends of a range, ignoring the commits between them. `error`
/// is the probability of a wrong verdict. Returns `None` if a signal ended the comparison.
pub fn compare_ends(
    arguments: &BisectArguments,
    repository: &Repository,
    versions: &[Version; 2],
    error: f64,
    store: &mut Store,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Effect>> {
    let measurements = Measurements::new(arguments, repository, versions, store)?;
    let mut search = Search {
        arguments,
        repository,
        versions,
        measurements,
        interrupt: interrupt.clone(),
    };
    let limits = Limits {
        error,
        ..Limits::for_versions(1)
    };
    let found = search.search(limits);
    search.remove_built();
    Ok(found?.and_then(|(bisection, _)| bisection.ends()))
}

struct Search<'a> {
    arguments: &'a BisectArguments,
    repository: &'a Repository,
    versions: &'a [Version],
    measurements: Measurements<'a>,
    interrupt: Interrupt,
}

impl Search<'_> {
    fn run(&mut self) -> anyhow::Result<ExitCode> {
        let last = self.versions.len() - 1;
        // An invalid experiment ends the search before the heading is printed.
        self.measurements.experiment(&[0, last], 1)?;
        output::line(&show::heading(self.versions, self.arguments.metric()))?;
        let found = self.search(Limits::for_versions(last));
        if !matches!(found, Ok(None)) {
            // A repeated search finds its answers in the store.
            self.remove_built();
        }
        match found? {
            Some((bisection, ending)) => self.conclude(&bisection, &ending),
            None => {
                let signal = self.interrupt.signal().expect("only a signal ends it");
                output::note("interrupted; run the same command again to continue");
                Ok(exit_code_of(signal))
            }
        }
    }

    /// Measures until the search has a result, or until a signal arrives (`None`).
    fn search(&mut self, limits: Limits) -> anyhow::Result<Option<(Bisection, Ending)>> {
        let last = self.versions.len() - 1;
        let experiment = self.measurements.experiment(&[0, last], 1)?;
        let better = better_side(&experiment, self.arguments.metric());
        let mut bisection = Bisection::new(last, better, limits);
        loop {
            if self.interrupt.signal().is_some() {
                return Ok(None);
            }
            match bisection.next() {
                Next::Done(ending) => return Ok(Some((bisection, ending))),
                Next::Measure {
                    stage,
                    places,
                    blocks,
                } => self.step(&mut bisection, stage, &places, blocks)?,
            }
        }
    }

    fn step(
        &mut self,
        bisection: &mut Bisection,
        stage: Stage,
        places: &[usize],
        blocks: usize,
    ) -> anyhow::Result<()> {
        if !self.measurements.are_stored(stage, places, blocks)?
            && let Some((place, why)) = self.prepare(places)?
        {
            return self.leave_out(bisection, place, &why);
        }
        if self.interrupt.signal().is_some() {
            return Ok(());
        }
        match self.measurements.measure(stage, places, blocks)? {
            Measured::Blocks(blocks) => {
                blocks
                    .into_iter()
                    .for_each(|block| bisection.add(stage, block));
                output::listing(&[show::step(self.versions, bisection, stage, places)])
            }
            Measured::Failed(place, why) => self.leave_out(bisection, place, &why),
            Measured::Interrupted => Ok(()),
        }
    }

    /// Builds versions. Returns the first version that does not build, with the reason.
    fn prepare(&self, places: &[usize]) -> anyhow::Result<Option<(usize, String)>> {
        let build = self.arguments.build.as_deref();
        for place in places {
            let version = &self.versions[*place];
            let is_interrupted = || self.interrupt.signal().is_some();
            let prepared = if self.arguments.kernel {
                kernels::prepare(self.repository, version, &is_interrupted)
            } else {
                self.repository.prepare(version, build, &is_interrupted)
            };
            match prepared {
                Ok(()) => {}
                Err(_) if is_interrupted() => return Ok(None),
                Err(BuildFailure::OfVersion(why)) => {
                    if self.is_end(*place) {
                        let directory = self.repository.directory_of(version, build);
                        tell_last_of_build(&directory.map_err(anyhow::Error::msg)?);
                    }
                    return Ok(Some((*place, format!("it does not build: {why}"))));
                }
                Err(BuildFailure::Other(why)) => bail!("{why}"),
            }
        }
        Ok(None)
    }

    fn is_end(&self, place: usize) -> bool {
        place == 0 || place + 1 == self.versions.len()
    }

    fn leave_out(&self, bisection: &mut Bisection, place: usize, why: &str) -> anyhow::Result<()> {
        let version = self.versions[place].short();
        if self.is_end(place) {
            return Err(anyhow!(
                "cannot measure {version}, an end of the range: {why}"
            ));
        }
        bisection.skip(place);
        output::listing(&[format!("{version} is left out: {why}")])
    }

    /// Removes the built versions.
    fn remove_built(&self) {
        let removed = if self.arguments.kernel {
            kernels::remove(self.versions)
        } else {
            let build = self.arguments.build.as_deref();
            self.repository.remove_built(build)
        };
        removed.unwrap_or_else(|why| output::note(&format!("warning: {why}")));
    }

    fn conclude(&self, bisection: &Bisection, ending: &Ending) -> anyhow::Result<ExitCode> {
        output::listing(&show::conclusion(
            self.versions,
            bisection,
            ending,
            self.arguments.metric(),
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
