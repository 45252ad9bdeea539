//! Searches a history by the code of `toll bisect`.

use toll_core::claim::model::Better;
use toll_versions::search::{Bisection, Ending, Limits, Next};

use super::laboratory::{Answer, History, Laboratory, Searched};

/// Searches a history as `toll` does.
pub fn search(history: History, seed: u64) -> Searched {
    let mut laboratory = Laboratory::new(history, seed);
    let limits = Limits::for_versions(history.versions);
    let mut bisection = Bisection::new(history.versions, Better::Lower, limits);
    loop {
        match bisection.next() {
            Next::Measure {
                stage,
                places,
                blocks,
            } => (0..blocks).for_each(|_| bisection.add(stage, laboratory.block(&places))),
            Next::Done(ending) => {
                return laboratory.searched(match ending {
                    Ending::NoDifference => Answer::NoDifference,
                    Ending::Confirmed { gap, .. } => Answer::Version(gap.at),
                    Ending::NotConfirmed { .. } => Answer::NotConfirmed,
                });
            }
        }
    }
}
