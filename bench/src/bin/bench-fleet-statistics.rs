//! `bench-fleet-statistics`: shows how often `toll fleet report` is right about simulated fleets.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use clap::Parser;
use toll_core::claim::model::{ClaimDirection, Estimate, Outcome};
use toll_core::fleet::model::{FactRole, FleetClaim, FleetMachine, FleetVerdict};
use toll_core::fleet::report;
use toll_stats::{Rng, normal_quantile};

/// Simulates fleets with a known truth, and shows how often the intervals contain it and how
/// often the fact that matters is found. Nothing is measured.
#[derive(Parser)]
#[command(name = "bench-fleet-statistics")]
struct Arguments {
    /// Simulated fleets of each case
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    fleets: u64,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write fleet-statistics.md into this directory
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    out: PathBuf,
}

/// Number of levels of each fact. A fact is named by its index; only the first may matter.
const FACTS: [usize; 6] = [2, 2, 2, 2, 3, 3];
const CONFIDENCE: f64 = 0.95;
/// Share of outlying machines in fleets that have any.
const OUTLYING_SHARE: f64 = 0.1;
const OUTLYING: [&[f64]; 6] = [&[], &[4.0], &[-4.0, 4.0], &[6.0], &[-6.0, 6.0], &[10.0]];
/// Standard deviations between the machines' true values, one per case.
const BETWEEN: [f64; 4] = [0.0, 0.5, 1.0, 3.0];
/// The goal for the share of 95 % confidence intervals that contain the true centre.
const COVERAGE: std::ops::RangeInclusive<f64> = 0.94..=0.97;
/// The goal for how often the report finds a fact that matters. `REPORTED_MAX` is the goal for
/// other facts.
const FOUND_MIN: f64 = 0.95;
const REPORTED_MAX: f64 = 0.05;

/// Describes how the fleets of one case are drawn.
#[derive(Clone, Copy)]
struct Case {
    machines: usize,
    /// Standard deviation between the machines' true values, in units of the middle error.
    between: f64,
    /// Ratio of the largest to the smallest standard error of the machines.
    errors: f64,
    /// Positions of outlying machines, in standard deviations of a measured value. All positions
    /// are equally likely. Empty if no machine is outlying.
    outlying: &'static [f64],
    /// How many of the facts in `FACTS` a machine has.
    facts: usize,
    /// Number of machines on the second level of the first fact.
    second: usize,
    /// Distance of the second level from the first, in standard deviations of a measured value.
    effect: f64,
    /// Factor by which machines on the second level vary more widely.
    spread: f64,
}

/// A case of machines without facts, with centre 0.
const PLAIN: Case = Case {
    machines: 0,
    between: 1.0,
    errors: 9.0,
    outlying: &[],
    facts: 0,
    second: 0,
    effect: 0.0,
    spread: 1.0,
};

impl Case {
    fn draw(&self, rng: &mut Rng) -> Vec<FleetMachine> {
        let levels = (0..FACTS.len()).map(|fact| self.levels(fact, rng));
        let levels: Vec<Vec<usize>> = levels.collect();
        let machine = |number: usize| {
            let level = |fact: usize| (fact.to_string(), levels[fact][number].to_string());
            FleetMachine {
                id: number.to_string(),
                facts: (0..self.facts).map(level).collect(),
                verdicts: vec![self.verdict(levels[0][number] == 1, rng)],
                platforms: Vec::new(),
            }
        };
        (0..self.machines).map(machine).collect()
    }

    /// Returns the level that each machine has of a fact, in random order.
    fn levels(&self, fact: usize, rng: &mut Rng) -> Vec<usize> {
        let level = |number: usize| match fact {
            0 => usize::from(number < self.second),
            _ => number % FACTS[fact],
        };
        let mut levels: Vec<usize> = (0..self.machines).map(level).collect();
        rng.shuffle(&mut levels);
        levels
    }

    fn verdict(&self, is_second: bool, rng: &mut Rng) -> FleetVerdict {
        let (shift, spread) = if is_second {
            (self.effect, self.spread)
        } else {
            (0.0, 1.0)
        };
        let error = spread * self.errors.powf(rng.uniform() - 0.5);
        let is_outlying = !self.outlying.is_empty() && rng.uniform() < OUTLYING_SHARE;
        let far = if is_outlying {
            self.outlying[rng.below(self.outlying.len())]
        } else {
            0.0
        };
        let deviation = self.between.hypot(1.0);
        let truth = deviation * (shift + far) + spread * self.between * rng.normal();
        let value = truth + error * rng.normal();
        let half = error * normal_quantile(f64::midpoint(1.0, CONFIDENCE));
        FleetVerdict {
            claim: "simulated".to_owned(),
            text: String::new(),
            report: None,
            quantity: String::new(),
            // Values with a unit are pooled unchanged, ratios as logarithms.
            unit: "ns".to_owned(),
            differ_by: None,
            outcome: Outcome::Supported,
            measured: Some(Estimate {
                value,
                low: value - half,
                high: value + half,
                confidence: CONFIDENCE,
            }),
            direction: ClaimDirection::Less,
            threshold: 0.0,
        }
    }
}

/// Answers two questions about the report on a fleet.
type Questions = fn(&Case, &FleetClaim, &mut Rng) -> [bool; 2];

/// Returns whether the intervals contain the centre, and whether they contain the true value of a
/// further machine that is not outlying.
fn covered(case: &Case, claim: &FleetClaim, rng: &mut Rng) -> [bool; 2] {
    let pooled = claim.pooled.as_ref().expect("machines have values");
    let covers = |interval: &Estimate, x: f64| interval.low <= x && x <= interval.high;
    let further = covers(&pooled.prediction, case.between * rng.normal());
    [covers(&pooled.mean, 0.0), further]
}

/// Returns whether the report says that the fact that matters explains the differences, and
/// whether it says so of any other fact.
fn explained(case: &Case, claim: &FleetClaim, _: &mut Rng) -> [bool; 2] {
    [true, false].map(|matters| {
        claim.facts.iter().any(|fact| {
            let fact_matters = fact.name == "0" && case.effect != 0.0;
            fact.role == FactRole::Explains && fact_matters == matters
        })
    })
}

/// Draws fleets and counts the answers about them.
struct Simulation {
    fleets: u64,
    seed: Rng,
    cases: u64,
}

impl Simulation {
    /// Returns, for each of the two questions, the share of a case's fleets whose answer is yes.
    fn shares(&mut self, case: Case, questions: Questions) -> [f64; 2] {
        self.cases += 1;
        let seed = self.seed.fork(self.cases);
        let fleets = self.fleets;
        let threads = available_parallelism().map_or(1, std::num::NonZero::get);
        let yes = [const { AtomicU64::new(0) }; 2];
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (seed, yes) = (&seed, &yes);
                scope.spawn(move || {
                    for fleet in (thread as u64..fleets).step_by(threads) {
                        // Each fleet has its own generator, so that the number of threads changes
                        // nothing.
                        let mut rng = seed.fork(fleet);
                        let report = report(&case.draw(&mut rng));
                        let answers = questions(&case, &report.claims[0], &mut rng);
                        for (yes, answer) in yes.iter().zip(answers) {
                            yes.fetch_add(answer.into(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        yes.map(|yes| yes.into_inner() as f64 / fleets as f64)
    }

    fn intervals(&mut self) -> String {
        let mut text = INTERVALS.to_owned();
        for (machines, errors) in product([5, 20, 100], [1.0, 9.0]) {
            tell(&format!("intervals of {machines} machines"));
            for outlying in OUTLYING {
                let case = Case {
                    machines,
                    errors,
                    outlying,
                    ..PLAIN
                };
                let shares = BETWEEN.map(|between| self.shares(Case { between, ..case }, covered));
                let goal = met(shares.iter().all(|[centre, _]| COVERAGE.contains(centre)));
                let column = |at: usize| shares.map(|of| percent(of[at])).join(" | ");
                let (far, centre, further) = (words(outlying), column(0), column(1));
                text +=
                    &format!("| {machines} | {errors} | {far} | {centre} | {further} | {goal} |\n");
            }
        }
        text
    }

    fn facts(&mut self) -> String {
        let mut text = EXPLAINED.to_owned();
        for case in fact_cases() {
            tell(&format!("facts of {} machines", case.machines));
            let [found, wrong] = self.shares(case, explained);
            let (found, goal) = match case.effect {
                0.0 => ("–".to_owned(), met(wrong <= REPORTED_MAX)),
                _ => (percent(found), met(found >= FOUND_MIN)),
            };
            let (machines, facts, second) = (case.machines, case.facts, case.second);
            let (far, wrong) = (words(case.outlying), percent(wrong));
            text += &format!(
                "| {machines} | {facts} | {second} | {} | {far} ",
                case.spread
            );
            text += &format!("| {} | {found} | {wrong} | {goal} |\n", case.effect);
        }
        text
    }
}

fn fact_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (machines, part) in product([20, 40], [2, 4]) {
        for (outlying, effect) in product([OUTLYING[0], OUTLYING[4]], [0.0, 3.0]) {
            cases.push(Case {
                machines,
                outlying,
                facts: FACTS.len(),
                second: machines / part,
                effect,
                ..PLAIN
            });
        }
    }
    let alone = product([10, 3], [1.0, 3.0]).into_iter();
    cases.extend(alone.map(|(second, spread)| Case {
        machines: 20,
        facts: 1,
        second,
        spread,
        ..PLAIN
    }));
    cases
}

/// Pairs each item of the first array with each of the second.
fn product<A: Copy, B: Copy, const N: usize, const M: usize>(a: [A; N], b: [B; M]) -> Vec<(A, B)> {
    a.into_iter().flat_map(|a| b.map(|b| (a, b))).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "not met" }
}

fn words(outlying: &[f64]) -> String {
    match outlying {
        [] => "none".to_owned(),
        [far] => format!("{far}, one side"),
        [.., far] => format!("{far}, both sides"),
    }
}

const INTERVALS: &str = "
## Intervals of the pooled value

How often the 95 % intervals cover the centre, and the true value of a further machine that is not outlying. *Between* is the
standard deviation between true values. *Outlying* is how far one machine in ten is from the others, in standard deviations. The goal:
in each of the four columns the centre is covered in 94 to 97 %.

| machines | errors | outlying | centre: between 0 | 0.5 | 1 | 3 | further: between 0 | 0.5 | 1 | 3 | goal |
|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
";

const EXPLAINED: &str = "
## What machines differ by

Each machine has this number of *facts*, one of which may matter. *Second* is the number of machines on its second level, which
vary *spread* times as widely and are *effect* standard deviations away from the others. *Found*: the report says that the fact explains the
difference. *Wrong*: the report says this of a fact that does not matter; with an effect of 0 no fact matters. The goals: the fact is found
in 95 %; if no fact matters, one is reported in at most 5 %.

| machines | facts | second | spread | outlying | effect | found | wrong | goal |
|--:|--:|--:|--:|---|--:|--:|--:|---|
";

const METHOD: &str = "
## What is simulated

- **A machine** has a true value, normally distributed about the centre 0, and a measured value, normally distributed about the true
  one. Its interval is the measured value ± 1.96 standard errors. *Errors* is the ratio of the largest to the smallest standard error:
  all are 1, or each is 3 to the power of a number that is uniform in [−1, 1).
- **A standard deviation** is that of a measured value with the error 1: √(between² + 1).
- **Outlying**: each machine is outlying with a probability of 10 %. The given number of standard deviations is added to its true value
  or, on both sides, equally often subtracted from it.
- **Facts**: four have two levels and two have three. Machines are assigned to the levels at random, in equal numbers except for the
  fact that matters. Between is 1, and errors is 9. A level that varies more widely does so in true values and errors.
- **The report** is that of `toll_core::fleet`, as in `toll fleet report`, with Holm's procedure over the facts.

Not covered: true values that are not normally distributed, wrong standard errors, facts that are correlated.
";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut simulation = Simulation {
        fleets: arguments.fleets,
        seed: Rng::new(arguments.seed),
        cases: 0,
    };
    let error = (CONFIDENCE * (1.0 - CONFIDENCE) / arguments.fleets as f64).sqrt();
    let text = format!(
        "# How often a report on many machines is right\n\n`make bench-fleet-statistics`: {} simulated \
         fleets per share, seed {}. A share of 95 % has a standard error of {}. A goal that is\nmissed by \
         less than two standard errors may be missed by chance.\n{}{}{METHOD}",
        arguments.fleets,
        arguments.seed,
        percent(error),
        simulation.intervals(),
        simulation.facts(),
    );
    let file = arguments.out.join("fleet-statistics.md");
    let written =
        std::fs::create_dir_all(&arguments.out).and_then(|()| std::fs::write(&file, text));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let file = file.display();
            tell(&format!(
                "cannot write {file}: {error}; name another directory with --out"
            ));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress and errors go there")]
fn tell(what: &str) {
    eprintln!("bench-fleet-statistics: {what}");
}
