//! The table in Markdown.

use std::fmt::Write;

use toll_stats::{hodges_lehmann, median};

use super::{Case, Document};

const CONFIDENCE: f64 = 0.95;
/// Predicted and measured savings should agree within this share.
const AGREEMENT: f64 = 0.25;

const METHOD: &str = "\
1. A round measures prices anew, in a store of its own, and then for each case, in random order, what `toll trace` predicts of
   the probe as it copies in small pieces, and what the larger buffer really saves.
2. Predicted: the savings that `toll trace --json` advises without a condition, for one copy.
3. Measured, without trace: 25 processes copy in small pieces and 25 with the buffer that was advised, by turns. The saving
   is the difference of the medians over processes, each a median over ten copies.
4. The ratio is the Hodges-Lehmann estimate of the rounds' ratios with its 95 % interval, the other values are medians of the rounds.
";

/// Writes the whole table of a document.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# What `toll trace` predicts, and what is saved\n\n");
    text += &document.machine.head(&document.date);
    let mut put = |what: std::fmt::Arguments<'_>| {
        text.write_fmt(what).expect("a String takes everything");
    };
    put(format_args!(
        "- Work file system: {}\n- Command: `{}`\n- Programs: {}\n",
        document.machine.work_file_system, document.command_line, document.toll
    ));
    if document.machine.was_busy() {
        put(format_args!(
            "- **The machine was not quiet before the run.**\n"
        ));
    }
    put(format_args!(
        "\n| one copy | advised buffer | predicted saving | measured saving | predicted over measured | within {:.0} % |\n\
         |---|---|---|---|---|---|\n",
        AGREEMENT * 100.0
    ));
    for (case, savings) in &document.savings {
        let median_of =
            |of: fn(&super::Saving) -> f64| median(&savings.iter().map(of).collect::<Vec<_>>());
        let sizes = savings.iter().map(|saving| saving.best_bytes >> 10);
        let (least, most) = (sizes.clone().min(), sizes.max());
        let sizes = match (least.unwrap_or(0), most.unwrap_or(0)) {
            (least, most) if least == most => format!("{least} KiB"),
            (least, most) => format!("{least} to {most} KiB"),
        };
        put(format_args!(
            "| {} | {sizes} | {:.1} µs | {:.1} µs | {} |\n",
            words(*case),
            median_of(|saving| saving.predicted_ns) / 1e3,
            median_of(|saving| saving.measured_ns) / 1e3,
            agreement(savings)
        ));
    }
    text += "\n## Method\n\n";
    text + METHOD
}

/// The ratio with its interval, and whether all of it agrees, none of it, or a
/// part.
fn agreement(savings: &[super::Saving]) -> String {
    let ratios = savings
        .iter()
        .map(|saving| saving.predicted_ns / saving.measured_ns);
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    // A larger buffer that saved nothing has no ratio.
    if logs.is_empty() || !logs.iter().all(|log| log.is_finite()) {
        return "none: a round saved nothing | no".to_owned();
    }
    let ratio = hodges_lehmann(&logs, CONFIDENCE).map(f64::exp);
    let (least, most) = (1.0 - AGREEMENT, 1.0 + AGREEMENT);
    let is_within = ratio.low >= least && ratio.high <= most;
    // Too few rounds show neither.
    let agrees = match (ratio.reaches(CONFIDENCE), is_within) {
        (false, _) => "undecided",
        (_, true) => "yes",
        _ if ratio.high < least || ratio.low > most => "no",
        _ => "undecided",
    };
    format!(
        "{:.3} [{:.3}, {:.3}] | {agrees}",
        ratio.estimate, ratio.low, ratio.high
    )
}

fn words(case: Case) -> &'static str {
    match case {
        Case::ByteToNull => "1 KiB to `/dev/null`, byte by byte",
        Case::ByteToFile => "1 KiB to a file, byte by byte",
        Case::PageToNull => "4 MiB to `/dev/null`, page by page",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Saving;
    use super::*;

    fn agreement_of(ratios: &[f64]) -> String {
        let savings = ratios.iter().map(|ratio| Saving {
            predicted_ns: 1000.0 * ratio,
            measured_ns: 1000.0,
            best_bytes: 65_536,
        });
        agreement(&savings.collect::<Vec<_>>())
    }

    #[test]
    fn a_prediction_holds_if_all_of_its_interval_does() {
        let near = [0.9, 0.95, 1.0, 1.05, 1.1, 1.0, 0.98, 1.02];
        assert!(agreement_of(&near).ends_with("| yes"), "{near:?}");
        let far = near.map(|ratio| ratio * 1.6);
        assert!(agreement_of(&far).ends_with("| no"), "{far:?}");
        let around = near.map(|ratio| ratio * 1.25);
        assert!(agreement_of(&around).ends_with("| undecided"), "{around:?}");
        assert!(agreement_of(&[1.0, 0.0]).ends_with("| no"));
    }

    #[test]
    fn few_rounds_decide_nothing() {
        assert!(agreement_of(&[1.0, 1.01]).ends_with("| undecided"));
    }
}
