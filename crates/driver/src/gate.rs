//! `--fail-on`: the exit status 3, for scripts that act on the results.

use anyhow::bail;
use clap::Args;
use toll_core::claim::can_regress;
use toll_core::claim::model::{Analysis, Outcome, Replicates, RunComparison, Sessions};
use toll_core::claim::ratio::JudgedRatio;
use toll_core::format;
use toll_core::plan::Plan;
use toll_core::spec::Experiment;
use toll_core::spec::quantity::parse_share;
use toll_report::words;
use toll_stats::Decision;
use toll_system::{Failure, output};

/// A condition of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// A claim is refuted.
    Refuted,
    /// The interval of a ratio lies wholly past this share on the worse side.
    Regression(f64),
}

pub fn parse(text: &str) -> Result<Condition, String> {
    match text.split_once('=') {
        None if text == "refuted" => Ok(Condition::Refuted),
        Some(("regression", limit)) => parse_share(limit).map(Condition::Regression),
        _ => Err("expected refuted, or regression and a limit such as regression=5%".into()),
    }
}

#[derive(Debug, Clone, Args, Default)]
pub struct GateArguments {
    /// End with status 3, after everything was written, if a claim is refuted
    /// with the error rate of the whole run (refuted: ✘✘), or if the interval of
    /// a ratio lies wholly past a limit on the worse side (regression=5%). Several
    /// may be given; undecided and not testable results do not count
    #[arg(long, value_name = "CONDITION", value_parser = parse, value_delimiter = ',')]
    fail_on: Vec<Condition>,
}

/// A ratio that may show a regression.
pub struct GatedRatio {
    /// The two sides, the metric and the change, in words.
    text: String,
    /// New over old; absent if there is none.
    judged: Option<JudgedRatio>,
    /// The known shifts between sessions, if the interval does not include them.
    sessions: Option<Sessions>,
}

impl GateArguments {
    /// The smallest limit of a regression.
    pub fn regression_limit(&self) -> Option<f64> {
        let limits = self.fail_on.iter().filter_map(|condition| match condition {
            Condition::Regression(limit) => Some(*limit),
            Condition::Refuted => None,
        });
        limits.min_by(f64::total_cmp)
    }

    /// Adds a limit on regressions if no condition is named.
    pub fn or_regression(&mut self, limit: f64) {
        if self.fail_on.is_empty() {
            self.fail_on.push(Condition::Regression(limit));
        }
    }

    /// Whether `--fail-on` has a condition on regressions.
    pub fn watches_ratios(&self) -> bool {
        self.regression_limit().is_some()
    }

    /// Refuses conditions that nothing can meet, before any time is spent. Users would take a check
    /// that cannot fail for a check that passes.
    ///
    /// `why_no_ratio` has the reason for each experiment that compares nothing.
    pub fn check(
        &self,
        experiments: &[&Experiment],
        why_no_ratio: &[Option<String>],
    ) -> anyhow::Result<()> {
        let has_claims = experiments
            .iter()
            .any(|one| one.claim_family().next().is_some());
        if self.fail_on.contains(&Condition::Refuted) && !has_claims {
            bail!(Failure::Usage(
                "cannot fail on refuted claims: there are no claims; name an experiment with \
                 claims, or use --fail-on regression=5%"
                    .into(),
            ));
        }
        let reasons: Vec<&String> = why_no_ratio.iter().flatten().collect();
        if let Some(reason) = reasons.first()
            && self.watches_ratios()
            && reasons.len() == experiments.len()
        {
            bail!(Failure::Usage(format!(
                "cannot fail on a regression of {}: {reason}; compare two commands, or use \
                 --baseline to compare with a saved run",
                experiments[0].name
            )));
        }
        Ok(())
    }

    /// Prints what meets a condition, and fails if anything does.
    pub fn judge(&self, analyses: &[&Analysis], ratios: &[GatedRatio]) -> anyhow::Result<()> {
        let mut met = Vec::new();
        for condition in &self.fail_on {
            match condition {
                Condition::Refuted => met.extend(count_refuted(analyses)),
                Condition::Regression(limit) => met.extend(count_regressions(ratios, *limit)),
            }
        }
        if met.is_empty() {
            Ok(())
        } else {
            Err(Failure::Judged(format!("failed by --fail-on: {}", met.join("; "))).into())
        }
    }
}

/// Returns why an experiment compares nothing within one run; `None` if it compares something.
pub fn why_no_ratio(experiment: &Experiment) -> Option<String> {
    let plan = Plan::new(experiment, 0).ok()?;
    can_regress(experiment, &plan.treatments).err()
}

/// The comparisons within a run, for `--fail-on`.
pub fn ratios_within(analysis: &Analysis) -> Vec<GatedRatio> {
    let label = |index: usize| analysis.treatments[index].label.clone();
    let comparisons = analysis.comparisons.iter();
    comparisons
        .filter(|comparison| comparison.is_judged)
        .map(|comparison| {
            let (name, metric) = (&comparison.metric, &analysis.metrics[&comparison.metric]);
            let [new, old] = [comparison.treatment, comparison.reference].map(label);
            let change = words::change(comparison.relation, &comparison.ratio, metric);
            GatedRatio {
                text: format!("{new} over {old}: {name}: {change}"),
                judged: Some(comparison.judged(analysis)),
                sessions: None,
            }
        })
        .collect()
}

/// The ratios of runs to earlier runs, for `--fail-on`.
pub fn ratios_between(comparison: &RunComparison) -> Vec<GatedRatio> {
    let [new, old] = [&comparison.new_runs, &comparison.old_runs].map(|ids| words::runs(ids));
    let is_of_trials = comparison.replicates == Replicates::Trials;
    let ratios = comparison.ratios.iter().filter(|_| comparison.is_judged);
    ratios
        .map(|one| {
            let (label, name) = (&one.label, &comparison.metric);
            let change = words::change_between_runs(one, &comparison.described, true);
            GatedRatio {
                text: format!("{label} in {new} over {old}: {name}: {change}"),
                judged: comparison.judged(one),
                sessions: is_of_trials.then_some(comparison.sessions),
            }
        })
        .collect()
}

fn count_refuted(analyses: &[&Analysis]) -> Option<String> {
    let verdicts = || analyses.iter().flat_map(|analysis| &analysis.verdicts);
    let refuted: Vec<_> = verdicts()
        .filter(|verdict| verdict.outcome == Outcome::Refuted && verdict.is_family_wise())
        .collect();
    for verdict in &refuted {
        output::note(&format!(
            "refuted: {}: {}: measured {}: {}",
            verdict.id,
            verdict.text,
            format::measured(verdict),
            verdict.reason
        ));
    }
    let undecided = verdicts()
        .filter(|verdict| verdict.outcome != Outcome::NotTestable && !verdict.is_family_wise())
        .count();
    if refuted.is_empty() {
        output::note(&format!(
            "--fail-on refuted: {} judged, none refuted family-wise (✘✘); {undecided} undecided",
            words::plural(verdicts().count(), "claim")
        ));
        return None;
    }
    let are = if refuted.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} {are} refuted",
        words::plural(refuted.len(), "claim")
    ))
}

fn count_regressions(ratios: &[GatedRatio], limit: f64) -> Option<String> {
    let mut worse = 0;
    let mut undecided = 0;
    let mut noise: f64 = 0.0;
    for GatedRatio { text, judged, .. } in ratios {
        let Some(judged) = judged else {
            undecided += 1;
            continue;
        };
        noise = noise.max(judged.noise);
        match judged.regression(limit) {
            Decision::Supported => {
                worse += 1;
                let past = format::percent(limit.max(judged.noise));
                output::note(&format!("regression: {text}, wholly past {past}"));
            }
            Decision::Inconclusive => undecided += 1,
            Decision::Refuted => {}
        }
    }
    let noisy = if noise > limit {
        format!(" and past the noise, at most {}", format::percent(noise))
    } else {
        String::new()
    };
    let limit = format::percent(limit);
    let blind = ratios.iter().filter_map(|one| one.sessions);
    let blind = blind.max_by(|a, b| reach(a).total_cmp(&reach(b)));
    let blind = blind.map_or_else(String::new, |sessions| {
        format!("; {}", words::unexcluded_shift(sessions))
    });
    if worse == 0 {
        output::note(&format!(
            "--fail-on regression: {} judged, none wholly past {limit}{noisy}; {undecided} \
             undecided{blind}",
            words::plural(ratios.len(), "ratio")
        ));
        return None;
    }
    let lie = if worse == 1 { "lies" } else { "lie" };
    Some(format!(
        "{} {lie} wholly past {limit} on the worse side{blind}",
        words::plural(worse, "ratio")
    ))
}

/// The size of a possible shift between sessions; infinite if unknown.
fn reach(sessions: &Sessions) -> f64 {
    sessions.shift.unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_with_their_limits() {
        assert_eq!(parse("refuted"), Ok(Condition::Refuted));
        assert_eq!(parse("regression=5%"), Ok(Condition::Regression(0.05)));
        assert_eq!(parse("regression=0.5"), Ok(Condition::Regression(0.5)));
        for wrong in [
            "",
            "regression",
            "regression=",
            "regression=0",
            "refuted=1",
            "slow",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
