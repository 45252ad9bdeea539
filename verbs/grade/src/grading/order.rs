//! Checks that trials are in the order of their plan.

use std::collections::BTreeMap;

use toll_core::plan::{Plan, pairs};
use toll_core::run::{RunStatus, StoredRun, TrialRecord};
use toll_core::spec::Experiment;

/// Maximum number of questions for which every subset is tried. A resumed run may have new limits.
/// So a block before the first look by the new limits may come after a look by the earlier limits.
const QUESTIONS_MAX: usize = 8;

/// What contradicts the plan of a run, and why some blocks were not compared.
pub struct Compared {
    /// Blocks whose trials are not in any order that the plan allows.
    pub out_of_order: Vec<u32>,
    /// Blocks that lack trials although later blocks follow.
    pub incomplete: Vec<u32>,
    /// Why blocks after the first were not compared, if they were not.
    pub not_compared: Option<String>,
}

/// Compares the trials of a run with the orders of its plan.
pub fn compare(stored: &StoredRun, plan: &Plan) -> Compared {
    let not_compared = why_not_compared(&stored.experiment, plan);
    let last = stored.trials.iter().map(|trial| trial.block).max();
    let blocks = by_block(&stored.trials);
    let pieces = pieces(&stored.trials);
    let ended = match stored.run.status {
        RunStatus::Complete => last.map_or(0, |last| last + 1),
        RunStatus::Unfinished => last.unwrap_or_default(),
    };
    let mut compared = Compared {
        out_of_order: Vec::new(),
        incomplete: Vec::new(),
        not_compared,
    };
    for block in 0..last.map_or(0, |last| last + 1) {
        let of_block = blocks.get(&block).map_or(&[][..], Vec::as_slice);
        if of_block.is_empty() {
            compared.incomplete.push(block);
            continue;
        }
        // Later blocks run what the first look left open. The run does not record these questions.
        let is_before_looks = block < stored.experiment.run.min_blocks;
        if block > 0 && (compared.not_compared.is_some() || !is_before_looks) {
            continue;
        }
        let orders = orders(plan, block);
        let mut own = pieces.iter().filter(|piece| piece[0].block == block);
        if !own.all(|piece| may_be_of(piece, &orders)) {
            compared.out_of_order.push(block);
        }
        let is_complete = |order: &Vec<usize>| {
            order.iter().all(|one| {
                let is_there = of_block.iter().any(|trial| trial.treatment == *one);
                is_there || stored.treatments[*one].skipped.is_some()
            })
        };
        if block < ended && !orders.iter().any(is_complete) {
            compared.incomplete.push(block);
        }
    }
    compared
}

fn why_not_compared(experiment: &Experiment, plan: &Plan) -> Option<String> {
    let questions = plan.compared().len();
    if questions > QUESTIONS_MAX {
        return Some(format!(
            "only the first block was checked: in later blocks, too many combinations of the \
             {questions} questions may have been open"
        ));
    }
    let compares =
        experiment.reference.is_some() || !pairs(experiment, &plan.treatments).is_empty();
    compares.then(|| {
        "only the first block was checked: treatments are also compared with a reference, and it \
         is not known which of these comparisons were open in later blocks"
            .to_owned()
    })
}

fn by_block(trials: &[TrialRecord]) -> BTreeMap<u32, Vec<&TrialRecord>> {
    let mut blocks: BTreeMap<u32, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in trials {
        blocks.entry(trial.block).or_default().push(trial);
    }
    blocks
}

/// Groups trials of one block that ran one after another. A resumed run may go back to a
/// block for treatments that it left out at first.
fn pieces(trials: &[TrialRecord]) -> Vec<Vec<&TrialRecord>> {
    let mut by_time: Vec<&TrialRecord> = trials.iter().collect();
    by_time.sort_by_key(|trial| trial.run_ns);
    let pieces = by_time.chunk_by(|one, next| one.block == next.block);
    pieces.map(<[&TrialRecord]>::to_vec).collect()
}

/// Returns all orders in which a block may run. Before the first look all questions are
/// open.
fn orders(plan: &Plan, block: u32) -> Vec<Vec<usize>> {
    let mut orders = vec![plan.block_order(block, None)];
    if block > 0 {
        let all = plan.compared();
        let subset = |chosen: usize| {
            let own = all.iter().enumerate();
            let own = own.filter(|(place, _)| chosen >> place & 1 == 1);
            own.map(|(_, question)| question.clone())
                .collect::<Vec<_>>()
        };
        let subsets = (0..1_usize << all.len()).map(subset);
        orders.extend(subsets.map(|open| plan.block_order(block, Some(&open))));
        orders.sort();
        orders.dedup();
    }
    orders
}

/// Whether trials ran in one of the orders. The run may have been resumed between two of the
/// trials. So the first trials may also be in one order, and the others in another.
fn may_be_of(trials: &[&TrialRecord], orders: &[Vec<usize>]) -> bool {
    let stands = |trial: &&TrialRecord, order: &[usize]| {
        order.get(trial.position as usize) == Some(&trial.treatment)
    };
    let from_start = |order: &Vec<usize>| {
        let standing = trials.iter().take_while(|trial| stands(trial, order));
        standing.count()
    };
    let first = orders.iter().map(from_start).max().unwrap_or_default();
    let is_rest_in = |order: &Vec<usize>| trials[first..].iter().all(|trial| stands(trial, order));
    orders.iter().any(is_rest_in)
}
