use super::*;

/// Values that repeat exactly, and the versions that cannot be measured.
struct History {
    values: Vec<f64>,
    broken: Vec<usize>,
    /// What was requested, without repetition.
    asked: Vec<(Stage, Vec<usize>)>,
    blocks: usize,
}

impl History {
    fn new(values: &[f64]) -> Self {
        Self {
            values: values.to_vec(),
            broken: Vec::new(),
            asked: Vec::new(),
            blocks: 0,
        }
    }

    /// Versions that cost 1, and `cost` from the version `first` on.
    fn step(versions: usize, first: usize, cost: f64) -> Self {
        let value = |place| if place >= first { cost } else { 1.0 };
        Self::new(&(0..=versions).map(value).collect::<Vec<f64>>())
    }

    fn broken(self, broken: &[usize]) -> Self {
        let broken = broken.to_vec();
        Self { broken, ..self }
    }

    fn search(&mut self) -> (Bisection, Ending) {
        let last = self.values.len() - 1;
        let mut bisection = Bisection::new(last, Better::Lower, Limits::for_versions(last));
        loop {
            assert!(self.blocks < 1000, "{:?}", self.asked);
            match bisection.next() {
                Next::Done(ending) => return (bisection, ending),
                Next::Measure {
                    stage,
                    places,
                    blocks,
                } => self.measure(&mut bisection, stage, &places, blocks),
            }
        }
    }

    fn measure(&mut self, to: &mut Bisection, stage: Stage, places: &[usize], blocks: usize) {
        assert!(blocks > 0 && places.is_sorted());
        if let Some(broken) = places.iter().find(|place| self.broken.contains(place)) {
            return to.skip(*broken);
        }
        let asked = (stage, places.to_vec());
        if !self.asked.contains(&asked) {
            self.asked.push(asked);
        }
        self.blocks += blocks;
        for _ in 0..blocks {
            let values = places
                .iter()
                .map(|place| (*place, self.values[*place].ln()));
            to.add(stage, values.collect());
        }
    }
}

fn confirmed(history: &mut History) -> Gap {
    match history.search().1 {
        Ending::Confirmed { gap, .. } => gap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_place_of_a_step_is_found_by_halves() {
    for first in 1..=32 {
        let mut history = History::step(32, first, 1.05);
        let gap = confirmed(&mut history);
        assert_eq!((gap.before, gap.at), (first - 1, first));
        let steps = history.asked.iter();
        let steps = steps.filter(|(stage, _)| *stage == Stage::Search).count();
        assert!(steps <= 5, "{first}: {:?}", history.asked);
    }
}

#[test]
fn a_gain_is_found_as_a_loss_is() {
    let mut history = History::step(10, 4, 0.9);
    let (_, ending) = history.search();
    let Ending::Confirmed { gap, effect } = ending else {
        panic!("{ending:?}");
    };
    assert_eq!((gap.at, effect.relation), (4, Relation::Better));
    assert!((effect.ratio.value - 0.9).abs() < 1e-9);
}

#[test]
fn without_a_difference_nothing_is_searched() {
    let mut history = History::step(10, 4, 1.005);
    let (bisection, ending) = history.search();
    assert_eq!(ending, Ending::NoDifference);
    assert_eq!(
        bisection.ends().map(|ends| ends.relation),
        Some(Relation::Same)
    );
    assert_eq!(history.asked, [(Stage::Ends, vec![0, 10])]);
}

#[test]
fn a_single_version_is_confirmed_by_the_ends() {
    let mut history = History::step(1, 1, 1.1);
    let gap = confirmed(&mut history);
    assert_eq!(gap.suspects(), 1..=1);
    assert_eq!(history.asked.len(), 1);
}

#[test]
fn versions_that_cannot_be_measured_are_suspects_with_their_next() {
    let mut history = History::step(16, 8, 1.1).broken(&[7, 8, 9]);
    assert_eq!(confirmed(&mut history).suspects(), 7..=10);
    let mut history = History::step(16, 8, 1.1).broken(&[3, 9]);
    assert_eq!(confirmed(&mut history).suspects(), 8..=8);
    let mut history = History::step(4, 2, 1.1).broken(&[1, 2, 3]);
    assert_eq!(confirmed(&mut history).suspects(), 1..=4);
}

#[test]
fn of_two_equal_steps_the_first_is_found() {
    for (first, second) in [(3, 4), (3, 20), (10, 30), (16, 17), (1, 32)] {
        let mut history = History::step(32, first, 1.05);
        history.values[second..].fill(1.05 * 1.05);
        let gap = confirmed(&mut history);
        let found = [first, second].contains(&gap.at);
        assert!(
            found && gap.before + 1 == gap.at,
            "{first} {second}: {gap:?}"
        );
        assert!(history.blocks < 150, "{first} {second}: {}", history.blocks);
    }
}

#[test]
fn of_a_gradual_change_no_version_is_named() {
    let values: Vec<f64> = (0..=32).map(|place| 1.002_f64.powi(place)).collect();
    let mut history = History::new(&values);
    let (_, ending) = history.search();
    let Ending::NotConfirmed { effect, .. } = ending else {
        panic!("{ending:?}");
    };
    assert_eq!(effect.relation, Relation::Same);
}

/// A version is measured as worse during the search, but not during its confirmation: the
/// search continues with what it knows by then.
#[test]
fn a_search_that_was_misled_goes_on_after_the_confirmation() {
    let mut misled = History::step(8, 6, 1.05);
    let truth = misled.values.clone();
    let mut bisection = Bisection::new(8, Better::Lower, Limits::for_versions(8));
    loop {
        match bisection.next() {
            Next::Done(ending) => {
                let Ending::Confirmed { gap, .. } = ending else {
                    panic!("{ending:?}");
                };
                assert_eq!(gap.at, 6);
                break;
            }
            Next::Measure {
                stage,
                places,
                blocks,
            } => {
                let is_misled = stage == Stage::Search && misled.blocks < 30;
                misled.values.clone_from(&truth);
                if is_misled {
                    misled.values[4] = 1.05;
                }
                misled.measure(&mut bisection, stage, &places, blocks);
            }
        }
    }
    let confirmed = misled
        .asked
        .iter()
        .filter(|(stage, _)| *stage > Stage::Search);
    let confirmed: Vec<&Vec<usize>> = confirmed.map(|(_, places)| places).collect();
    assert_eq!(confirmed, [&vec![3, 4], &vec![5, 6]]);
}

/// A search that continues from what was stored requests the same blocks.
#[test]
fn what_is_next_follows_from_what_was_measured() {
    let (bisection, ending) = History::step(32, 11, 1.05).search();
    let mut again = Bisection::new(32, Better::Lower, bisection.limits);
    let mut measured = bisection.measured.iter().cloned();
    while let Next::Measure { stage, blocks, .. } = again.next() {
        for (of, block) in measured.by_ref().take(blocks) {
            assert_eq!(of, stage);
            again.add(of, block);
        }
    }
    assert_eq!(again.next(), Next::Done(ending));
}
