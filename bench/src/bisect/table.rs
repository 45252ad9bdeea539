//! Makes many searches, and the table of their results.

use std::fmt::Write;

use toll_core::format;

use super::{Answer, Fixed, History, Noise, Searched, WORLDS, World, fixed, search};

/// Says how much to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of searches of each kind.
    pub runs: u64,
    /// Seed of all random draws.
    pub seed: u64,
    pub threads: usize,
}

/// The results of all searches of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub right: u64,
    pub wrong: u64,
    pub no_difference: u64,
    pub not_confirmed: u64,
    trials: usize,
    built: usize,
}

impl Tally {
    fn add(&mut self, history: History, searched: Searched) {
        match searched.answer {
            Answer::Version(place) if Some(place) == history.culprit => self.right += 1,
            Answer::Version(_) => self.wrong += 1,
            Answer::NoDifference => self.no_difference += 1,
            Answer::NotConfirmed => self.not_confirmed += 1,
        }
        self.trials += searched.trials;
        self.built += searched.built;
    }

    fn merge(self, other: Tally) -> Tally {
        Tally {
            right: self.right + other.right,
            wrong: self.wrong + other.wrong,
            no_difference: self.no_difference + other.no_difference,
            not_confirmed: self.not_confirmed + other.not_confirmed,
            trials: self.trials + other.trials,
            built: self.built + other.built,
        }
    }

    fn runs(&self) -> u64 {
        self.right + self.wrong + self.no_difference + self.not_confirmed
    }

    fn trials(&self) -> f64 {
        self.trials as f64 / self.runs() as f64
    }
}

/// Searches several histories, each with its own seed.
pub fn tally(
    effort: Effort,
    (versions, change, noise): (usize, f64, Noise),
    searching: impl Fn(History, u64) -> Searched + Sync,
) -> Tally {
    let part = |thread: usize| {
        let mut tally = Tally::default();
        for run in (thread as u64..effort.runs).step_by(effort.threads) {
            let seed = effort.seed + run;
            let history = History::drawn(versions, change, noise, seed);
            tally.add(history, searching(history, seed));
        }
        tally
    };
    std::thread::scope(|scope| {
        let threads = (0..effort.threads).map(|thread| scope.spawn(move || part(thread)));
        let threads = Vec::from_iter(threads);
        let tallies = threads.into_iter().map(|one| one.join().expect("it ends"));
        tallies.fold(Tally::default(), Tally::merge)
    })
}

/// The case in which the search is compared with a bisection of fixed blocks: plain noise of 2 %.
const COMPARED: (usize, f64, Noise) = (64, 0.03, Noise::Time(World::Plain));

/// Simulates all searches, and returns the table in Markdown. `tell` receives a line for each
/// kind.
pub fn table(effort: Effort, tell: &mut dyn FnMut(&str)) -> String {
    let mut kinds = vec![(32, 0.03, Noise::PathLength), (32, 0.0, Noise::PathLength)];
    for world in WORLDS {
        kinds.extend([0.05, 0.03, 0.0].map(|change| (32, change, Noise::Time(world))));
    }
    kinds.extend([0.03, 0.0].map(|change| (64, change, COMPARED.2)));
    let mut text = format!(
        "# Searches for the version that introduced a change\n\n\
         `make bench-bisect`: {} simulated searches per line, seed {}. A trial is one version in one block. *Wrong* is any \
         version that\nwas named but did not introduce the change.\n\n\
         | versions | noise | change | found | wrong | no difference | not confirmed | trials | built |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|\n",
        effort.runs, effort.seed
    );
    for kind in kinds {
        let (versions, change, noise) = kind;
        tell(&format!("{versions} versions, {noise:?}, {change}"));
        let tally = tally(effort, kind, search);
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / tally.runs() as f64);
        let found = match change {
            0.0 => "–".to_owned(),
            _ => share(tally.right),
        };
        writeln!(
            text,
            "| {versions} | {} | {} | {found} | {} | {} | {} | {:.0} | {:.1} |",
            words(noise),
            format::percent(change),
            share(tally.wrong),
            share(tally.no_difference),
            share(tally.not_confirmed),
            tally.trials(),
            tally.built as f64 / tally.runs() as f64
        )
        .expect("a string grows");
    }
    text + &beside_fixed(effort, tell) + METHOD
}

fn words(noise: Noise) -> String {
    match noise {
        Noise::PathLength => "path length".into(),
        Noise::Time(world) => format!("{world:?}").to_lowercase(),
    }
}

/// Compares the search with the cheapest bisection of fixed blocks that finds 95 % of the
/// changes.
fn beside_fixed(effort: Effort, tell: &mut dyn FnMut(&str)) -> String {
    let own = tally(effort, COMPARED, search);
    let mut best: Option<(Fixed, Tally)> = None;
    for verdict in (20..=60).step_by(5) {
        for step in (8..=32).step_by(2) {
            let blocks = Fixed { verdict, step };
            let tally = tally(effort, COMPARED, |history, seed| {
                fixed(history, blocks, seed)
            });
            // Further plans have more blocks and cost more, so they are not better.
            if best.is_some_and(|(_, other)| tally.trials() >= other.trials()) {
                break;
            }
            if tally.right * 100 >= 95 * tally.runs() {
                best = Some((blocks, tally));
                break;
            }
        }
        tell(&format!("fixed blocks: {verdict} for a verdict"));
    }
    let own_found = own.right as f64 / own.runs() as f64;
    let mut text = String::from("\n## Compared with fixed numbers of blocks\n\n");
    let Some((blocks, other)) = best else {
        return text + "No bisection of fixed blocks finds 95 %.\n";
    };
    writeln!(
        text,
        "64 versions, a change of 3 %, plain noise of 2 %. The cheapest bisection of fixed blocks that finds 95 % \
         has {} blocks for each verdict\nand {} for each step, and takes {:.0} trials. The search takes {:.0}, \
         {:.2} times as many, and finds {}.",
        blocks.verdict,
        blocks.step,
        other.trials(),
        own.trials(),
        own.trials() / other.trials(),
        format::percent(own_found),
    )
    .expect("a string grows");
    text
}

const METHOD: &str = "
## What is simulated

The first version with the change is drawn uniformly. Every block has its versions in random order. Noise continues from trial to trial, so drift and
bursts extend over blocks. Path lengths have 0.02 % of noise, drawn for each boot. The other kinds are the worlds of
[METHODOLOGY](../../docs/METHODOLOGY.md#how-often-verdicts-are-wrong); plain noise is 2 %. `toll_versions::search` does the search, as in `toll`.

A bisection of fixed blocks compares the ends first. Each step compares the middle with both ends and moves it to the nearer side. At the end the
version found is compared with the previous one. Its numbers of blocks are the cheapest among 20 to 60 for a verdict and 8 to 32 for a step.

Not covered: several changes in one history, versions that do not build, noise that depends on the version.
";
