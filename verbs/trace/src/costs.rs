//! Prices of calls: from a stored price list, or measured now.

use std::path::Path;

use anyhow::anyhow;
use toll_calls::costs::Costs;
use toll_core::claim::Run;
use toll_driver::Purpose;
use toll_driver::price_lists;
use toll_driver::stores;
use toll_host::store::Store;
use toll_host::trial::SessionEnd;
use toll_system::Failure;

/// Prices known before the command runs.
pub enum Prices {
    NotWanted,
    /// The prices must be measured.
    Missing,
    Found(Box<Costs>),
}

/// Loads prices from the store: the prices of the named run, if a run is named. Otherwise takes
/// this machine's newest price list that was measured while the machine was quiet, or else its
/// newest list.
pub fn stored(name: Option<&str>, store: &Path, work_dir: Option<&Path>) -> anyhow::Result<Prices> {
    if let Some(name) = name {
        let run = stores::load_run(&Store::read(store)?, name)?;
        return Ok(Prices::Found(Box::new(costs_of(&run)?)));
    }
    // A damaged store does not stop a trace. Storing prices reports the error.
    let newest = newest(store, work_dir).ok().flatten();
    Ok(newest.map_or(Prices::Missing, |costs| Prices::Found(Box::new(costs))))
}

fn newest(store: &Path, work_dir: Option<&Path>) -> anyhow::Result<Option<Costs>> {
    let store = Store::read(store)?;
    let here = price_lists::here(work_dir)?;
    let mut noisy = None;
    for run in price_lists::of_machine(&store, &here)?.filter(|run| !run.stored.run.imported) {
        // A list of other rows has no prices of calls.
        if let Ok(costs) = costs_of(&run) {
            if !costs.is_noisy() {
                return Ok(Some(costs));
            }
            noisy = noisy.or(Some(costs));
        }
    }
    Ok(noisy)
}

fn costs_of(run: &Run) -> anyhow::Result<Costs> {
    let mut costs = Costs::from_run(&run.stored).map_err(Failure::Usage)?;
    costs.noise_band = run.analysis.twins.first().map(|twin| twin.ratio.reach());
    Ok(costs)
}

/// Measures the row of the price list that calls are priced by, and stores it.
pub fn measure(store: &Path, work_dir: Option<&Path>) -> anyhow::Result<Costs> {
    let mut store = stores::open_store(store)?;
    let mut experiment = price_lists::experiment()?;
    price_lists::keep_rows(&mut experiment, [price_lists::PRICING_ROW].into_iter())?;
    let how = ("toll trace".to_owned(), Purpose::Aside);
    let launched = price_lists::measure(&mut store, experiment, work_dir, how)?;
    match launched.end? {
        SessionEnd::Complete(_) => {
            costs_of(&stores::load_run(&store, &launched.run_id.to_string())?)
        }
        SessionEnd::Interrupted(_) => Err(anyhow!("measuring what calls cost was interrupted")),
    }
}
