//! Explains the largest difference in a run.

use toll_core::claim::Run;
use toll_core::claim::model::Comparison;
use toll_host::store::Store;
use toll_system::Failure;

use crate::arguments::RunArguments;
use crate::conclude::Ending;
use crate::explain_options::{is_explained, is_in_guest};
use crate::launch::profile;
use crate::stores;

/// Explains a run with `--why` if it is complete. The run stays complete even if this fails.
pub(crate) fn explain(
    arguments: &RunArguments,
    store: &mut Store,
    run_id: i64,
    ending: Ending,
) -> Ending {
    if !arguments.explaining.why || !matches!(ending, Ending::Complete) {
        return ending;
    }
    let explained = stores::load_run(store, &run_id.to_string()).and_then(|run| {
        let is_profiled = |pair: &[usize; 2]| !is_in_guest(&run.stored.treatments, pair);
        let pair = most_different(&run, is_profiled)?;
        let (directories, is_quiet) = (&arguments.directories, arguments.results.quiet);
        profile(store, run.stored, pair, directories, is_quiet)
    });
    match explained {
        Ok(None) => Ending::Complete,
        Ok(Some(signal)) => Ending::Interrupted(signal),
        Err(error) => Ending::Failed(error),
    }
}

/// Returns the pair whose times differ most, among the compared pairs that satisfy `fits`.
///
/// # Errors
/// Fails if no such pair was compared.
pub fn most_different(run: &Run, fits: impl Fn(&[usize; 2]) -> bool) -> anyhow::Result<[usize; 2]> {
    let is_of_time =
        |one: &&Comparison| one.metric == run.analysis.primary_metric && is_explained(&one.metric);
    let compared = run.analysis.comparisons.iter().filter(is_of_time);
    let pairs = compared.map(|one| ([one.treatment, one.reference], one.ratio.value.ln().abs()));
    let most = pairs
        .filter(|(pair, _)| fits(pair))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    most.map(|(pair, _)| pair).ok_or_else(|| {
        Failure::Usage(format!(
            "cannot explain run {}: it compares no times of these treatments; name two with \
             --treatment and --reference of `toll why`",
            run.stored.run.id
        ))
        .into()
    })
}
