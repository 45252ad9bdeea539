//! Which treatments a block runs, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::Rng;

use super::{Boot, Plan, Treatment};

/// Number of first blocks that run every treatment: as many as an interval of 95 % needs.
const FULL_BLOCKS: u32 = 6;
/// After the first full blocks, one block in this many runs every treatment.
const FULL_EVERY: u32 = 16;

impl Plan {
    /// Returns the indices of the treatments that a block runs, in order. `open` has the
    /// treatments of each question that is not settled; without it, all questions are open.
    /// A block runs what open questions need. The first blocks, and one in sixteen after
    /// them, run everything, for figures, tables and twins.
    ///
    /// Treatments of one question are adjacent: a disturbance of the machine lasts from one trial
    /// to the next, so it cancels between neighbours. Questions, and the treatments of each, are in
    /// random order. A treatment that many questions share tends to come early. So the whole order
    /// is reversed for every second block on average, and such a treatment comes late just as
    /// often.
    ///
    /// Skipped treatments are included: their place is drawn as well, so that the order of
    /// the others does not depend on what this machine has. Treatments that share a boot of
    /// a guest are adjacent, since each block boots it once. Boots are in random order, and
    /// so are the treatments within each.
    pub fn block_order(&self, block: u32, open: Option<&[Vec<usize>]>) -> Vec<usize> {
        let mut rng = Rng::new(self.seed).fork(u64::from(block));
        let is_full = block < FULL_BLOCKS || block % FULL_EVERY == FULL_EVERY - 1;
        let mut groups = open.unwrap_or(&self.compared).to_vec();
        if is_full || groups.is_empty() {
            let others = (0..self.treatments.len()).map(|treatment| vec![treatment]);
            let in_groups: BTreeSet<usize> = groups.iter().flatten().copied().collect();
            let others = others.filter(|other| !in_groups.contains(&other[0]));
            groups.extend(others);
        }
        rng.shuffle(&mut groups);
        let mut order: Vec<usize> = Vec::new();
        for group in &mut groups {
            rng.shuffle(group);
            group.retain(|treatment| !order.contains(treatment));
            order.append(group);
        }
        if rng.below(2) == 1 {
            order.reverse();
        }
        self.by_boot(order, &mut rng)
    }

    /// Returns the treatments of each question that a run has to answer.
    pub fn compared(&self) -> &[Vec<usize>] {
        &self.compared
    }

    fn by_boot(&self, mut order: Vec<usize>, rng: &mut Rng) -> Vec<usize> {
        let boots: Vec<Option<Boot>> = self.treatments.iter().map(Treatment::boot).collect();
        if boots.iter().all(Option::is_none) {
            return order;
        }
        let mut seen = BTreeSet::new();
        let mut places: Vec<&Option<Boot>> = boots.iter().collect();
        places.retain(|boot| seen.insert(*boot));
        // If boots came in the order of their first trials, the boot with the most trials would
        // lead too often.
        rng.shuffle(&mut places);
        let numbered = places.into_iter().enumerate();
        let place_of: BTreeMap<_, _> = numbered.map(|(place, boot)| (boot, place)).collect();
        order.sort_by_key(|treatment| place_of[&boots[*treatment]]);
        order
    }
}
