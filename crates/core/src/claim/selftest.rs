//! Checks that comparisons on this machine are right: identical work is compared with itself
//! and, as the positive control, with work that is longer by a known share.

use toll_stats::{Rng, clopper_pearson, median};

use super::model::{Analysis, Estimate, Rate, Relation, SelftestArm, SelftestReport};
use super::{ALPHA, CONFIDENCE, MARGIN_MIN};
use crate::format;
use crate::spec::{Experiment, SpecError};

/// The experiment file of one comparison.
const TOML: &str = include_str!("selftest.toml");
/// Number of reads of 64 KiB in the shorter work. It is a multiple of 100, so that whole
/// percentages are whole reads.
const READS: u64 = 200;
const READ_BYTES: u64 = 64 << 10;

/// Bound on how much the work of identical treatments differs: a byte in 13 million.
const BYTE: f64 = 1e-6;

/// Injected differences, in percent of the work.
pub const DELAYS_PERCENT: [u32; 4] = [0, 1, 2, 5];
/// The difference that must be found, in percent.
const FOUND_PERCENT: u32 = 5;
/// Share of the comparisons with the difference [`FOUND_PERCENT`] that must find it: the customary
/// power (Cohen, "Statistical power analysis for the behavioral sciences", 2nd edition (1988)).
const POWER: f64 = 0.8;

/// Number of further comparisons of identical work for each wrong one.
const FURTHER: usize = 12;

/// Number of comparisons that a self-test makes.
///
/// A self-test adds comparisons of identical work as long as its errors leave open whether their
/// rate is over 5 %. Because this is a sequential test (Wald, "Sequential tests of statistical
/// hypotheses", Annals of Mathematical Statistics 16 (1945)), a sound machine needs few
/// comparisons.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Number of comparisons of identical work if none of them is wrong.
    identical: usize,
    /// Maximum number of comparisons of identical work.
    identical_max: usize,
    /// Minimum number of errors in `identical_max` comparisons that show a rate above 5 %, by the
    /// exact interval. They show it wherever the self-test ends, since comparisons not made count
    /// as right. So the chance of accusing a sound machine is at most 2.5 %.
    errors_over: usize,
    /// Number of comparisons for each delay.
    each_delay: usize,
}

impl Size {
    /// Size that finds a false-alarm rate of 15 % in nine of ten self-tests.
    pub const QUICK: Size = Size {
        identical: 20,
        identical_max: 125,
        errors_over: 12,
        each_delay: 10,
    };
    /// Size with a fixed number of comparisons, for narrow intervals of all rates.
    pub const FULL: Size = Size {
        identical: 200,
        identical_max: 200,
        errors_over: 17,
        each_delay: 50,
    };

    /// Returns the injected differences in percent, in random order, so that changes of the
    /// machine affect all of them alike. Comparisons after these are of identical work.
    pub fn schedule(self, seed: u64) -> Vec<u32> {
        let repeat = |percent: u32| {
            let count = match percent {
                0 => self.identical,
                _ => self.each_delay,
            };
            std::iter::repeat_n(percent, count)
        };
        let mut schedule: Vec<u32> = DELAYS_PERCENT.into_iter().flat_map(repeat).collect();
        Rng::new(seed).shuffle(&mut schedule);
        schedule
    }

    /// Returns the number of comparisons of identical work after which the self-test ends, if
    /// `errors` of the `made` comparisons are wrong.
    fn identical_planned(self, made: usize, errors: usize) -> usize {
        if errors >= self.errors_over {
            made.max(self.identical)
        } else {
            (self.identical + FURTHER * errors).min(self.identical_max)
        }
    }

    /// Returns the total number of comparisons, given the results of those `made` so far.
    pub fn planned(self, made: &[Compared]) -> usize {
        let identical = made.iter().filter(|compared| compared.delay_percent == 0);
        let count = |is: fn(&Compared) -> bool| identical.clone().filter(|one| is(one)).count();
        let errors = count(Compared::is_wrong).max(count(Compared::misses));
        let delays = self.each_delay * (DELAYS_PERCENT.len() - 1);
        delays + self.identical_planned(identical.clone().count(), errors)
    }
}

/// Result of one comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The injected difference, in percent.
    pub delay_percent: u32,
    relation: Relation,
    ratio: Estimate,
    blocks: usize,
    reach: f64,
}

/// Returns the experiment that compares work with work that is `delay_percent` longer.
pub fn experiment(delay_percent: u32) -> Result<Experiment, SpecError> {
    let bytes = READS * READ_BYTES;
    let other = match delay_percent {
        0 => bytes - 1,
        percent => bytes + bytes / 100 * u64::from(percent),
    };
    crate::spec::parse(
        &TOML.replace("{other}", &other.to_string()),
        "selftest",
        "standard",
    )
}

/// Takes the result of a comparison from its analysis. Fails with the reason if there is none.
pub fn compared(delay_percent: u32, analysis: &Analysis) -> Result<Compared, String> {
    let failure = || {
        let mut messages = analysis.treatments.iter().filter_map(|treatment| {
            treatment
                .skipped
                .as_ref()
                .or(treatment.first_failure.as_ref())
        });
        let why = messages
            .next()
            .map_or("no block is complete", String::as_str);
        format!("cannot compare anything: {why}")
    };
    let comparison = analysis.comparisons.first().ok_or_else(failure)?;
    let twin = analysis.twins.first().ok_or_else(failure)?;
    Ok(Compared {
        delay_percent,
        relation: comparison.relation,
        ratio: comparison.ratio,
        blocks: analysis.blocks,
        reach: twin.ratio.reach(),
    })
}

impl Compared {
    fn truth(&self) -> f64 {
        1.0 + f64::from(self.delay_percent) / 100.0
    }

    fn is_wrong(&self) -> bool {
        match self.relation {
            Relation::Worse | Relation::Different => self.delay_percent == 0,
            Relation::Better => true,
            Relation::Same => self.truth() > 1.0 + MARGIN_MIN,
            Relation::Undecided => false,
        }
    }

    fn misses(&self) -> bool {
        !self.holds(self.truth())
    }

    fn holds(&self, ratio: f64) -> bool {
        self.ratio.low * (1.0 - BYTE) <= ratio && ratio <= self.ratio.high * (1.0 + BYTE)
    }
}

/// Summarises a self-test; `trials` and `wall_s` are only recorded.
pub fn report(
    seed: u64,
    size: Size,
    made: &[Compared],
    trials: usize,
    wall_s: f64,
) -> SelftestReport {
    let arms: Vec<SelftestArm> = DELAYS_PERCENT.map(|percent| arm(percent, made)).into();
    let reaches: Vec<f64> = made.iter().map(|compared| compared.reach).collect();
    let noise_floor = (!reaches.is_empty()).then(|| median(&reaches).max(MARGIN_MIN));
    SelftestReport {
        seed,
        planned: size.planned(made),
        made: made.len(),
        trials,
        wall_s,
        noise_floor,
        problems: problems(size, &arms, noise_floor),
        arms,
    }
}

fn arm(percent: u32, made: &[Compared]) -> SelftestArm {
    let of: Vec<&Compared> = made
        .iter()
        .filter(|compared| compared.delay_percent == percent)
        .collect();
    let rate_of = |is: &dyn Fn(&Compared) -> bool| {
        rate(of.iter().filter(|compared| is(compared)).count(), of.len())
    };
    let median_of = |value: &dyn Fn(&Compared) -> f64| {
        let values: Vec<f64> = of.iter().map(|compared| value(compared)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    SelftestArm {
        delay: f64::from(percent) / 100.0,
        called_different: rate_of(&|one| one.relation.differs()),
        wrong: rate_of(&Compared::is_wrong),
        seen: rate_of(&|compared| !compared.holds(1.0)),
        missed: rate_of(&Compared::misses),
        ratio: median_of(&|compared| compared.ratio.value),
        half_width: median_of(&|Compared { ratio, .. }| {
            ((ratio.high / ratio.low).ln() / 2.0).exp_m1()
        }),
        blocks: median_of(&|compared| compared.blocks as f64),
    }
}

fn rate(count: usize, of: usize) -> Rate {
    let (low, high) = match of {
        0 => (0.0, 1.0),
        _ => {
            let interval = clopper_pearson(count, of, CONFIDENCE);
            (interval.low, interval.high)
        }
    };
    Rate {
        count,
        of,
        low,
        high,
    }
}

/// Returns the problems found. A rate is a problem only if its whole interval is too high or too
/// low, so that a single wrong comparison raises no alarm.
fn problems(size: Size, arms: &[SelftestArm], noise_floor: Option<f64>) -> Vec<String> {
    let mut problems = Vec::new();
    let in_words = |rate: &Rate| format!("in {} of {} comparisons", rate.count, rate.of);
    let often = format!("more than {}", format::percent(ALPHA));
    for arm in arms {
        let work = match arm.delay {
            0.0 => "identical work".to_owned(),
            delay => format!("work longer by {}", format::percent(delay)),
        };
        let is_over = |rate: &Rate| match arm.delay {
            0.0 => rate.count >= size.errors_over,
            _ => rate.low > ALPHA,
        };
        if is_over(&arm.wrong) {
            problems.push(format!(
                "the verdict on {work} is wrong {}: {often}",
                in_words(&arm.wrong)
            ));
        }
        if arm.delay == 0.0 && is_over(&arm.missed) {
            problems.push(format!(
                "the interval of the ratio excludes 1 for {work} {}: {often}",
                in_words(&arm.missed)
            ));
        }
        let has_to_be_found = arm.delay == f64::from(FOUND_PERCENT) / 100.0;
        if has_to_be_found && arm.called_different.high < POWER {
            let floor = noise_floor.map_or_else(String::new, |floor| {
                format!("; the noise floor is {}", format::percent(floor))
            });
            problems.push(format!(
                "{work} is called different only {}, less than {}{floor}; close other \
                 programs, or give real runs more blocks",
                in_words(&arm.called_different),
                format::percent(POWER)
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
