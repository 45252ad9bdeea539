//! Explains a claim's result in a sentence or two.

use toll_core::claim::model::{Outcome, Verdict};
use toll_core::claim::work::Difference;
use toll_core::claim::{Run, blocks_needed};
use toll_core::format;

use super::model::{ClaimResult, Grade};

/// Maximum number of differences between machines that a sentence names.
const NAMED_MAX: usize = 3;

/// A verdict on this machine, its run, and how the machines differ.
type Here<'a> = (&'a Verdict, &'a Run, &'a Vec<Difference>);

/// Explains a claim's result from its verdicts.
pub fn explain(
    result: ClaimResult,
    (verdict, submitted): (&Verdict, &Run),
    here: Option<Here>,
) -> String {
    let data = measured(verdict);
    match (result, here) {
        (ClaimResult::RefutedBySubmission, here) => {
            let same = match here.map(|(own, ..)| own.outcome) {
                Some(Outcome::Refuted) => " The run here refutes it, too.",
                Some(Outcome::Supported) => " The run here supports it.",
                _ => "",
            };
            format!(
                "The submitted data refute it: {data}; {}.{same}",
                verdict.reason
            )
        }
        (ClaimResult::RefutedHere, Some((own, _, differences))) => {
            let of_data = match verdict.outcome {
                Outcome::Supported => format!("The submitted data support it ({data})"),
                _ => "The submitted data do not decide it".to_owned(),
            };
            format!(
                "{of_data}, the run here refutes it ({}). {}",
                measured(own),
                machines(differences)
            )
        }
        (ClaimResult::Holds, Some((own, run, _))) => match own.outcome {
            Outcome::Supported => format!(
                "Both support it: {data} in the submitted data, {} here.",
                measured(own)
            ),
            _ => format!(
                "The submitted data support it: {data}. The run here does not decide it: {}",
                open(own, run)
            ),
        },
        (ClaimResult::Holds, None) => {
            format!("The submitted data support it: {data}. It was not measured here.")
        }
        (ClaimResult::Undecided, _) if verdict.outcome == Outcome::Supported => format!(
            "The submitted data support it so far ({data}), but the run is unfinished; \
             `toll run --resume` continues it."
        ),
        _ => {
            let supported = match here.map(|(own, ..)| own.outcome) {
                Some(Outcome::Supported) => " The run here supports it.",
                _ => "",
            };
            format!(
                "The submitted data do not decide it: {}{supported}",
                open(verdict, submitted)
            )
        }
    }
}

fn measured(verdict: &Verdict) -> String {
    if verdict.measured.is_some() || verdict.beyond.is_some() {
        format!("measured {}", format::measured(verdict))
    } else {
        verdict.reason.clone()
    }
}

/// Explains why a claim is undecided, and what would decide the claim.
fn open(verdict: &Verdict, run: &Run) -> String {
    if verdict.outcome == Outcome::NotTestable {
        return format!("{}.", verdict.reason);
    }
    let stored = &run.stored;
    let fewest = blocks_needed(&stored.experiment, &stored.treatments).unwrap_or_default();
    let more = |needed: usize| needed.max(fewest).saturating_sub(verdict.blocks);
    let advice = match verdict.blocks_expected().map(more) {
        Some(0) => "A few more blocks may decide it".to_owned(),
        Some(1) => "About 1 more block would decide it".to_owned(),
        Some(more) => format!("About {more} more blocks would decide it"),
        None => "The value is so near the bound that no run decides it".to_owned(),
    };
    format!("{}; {}. {advice}.", measured(verdict), verdict.reason)
}

fn machines(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "The machines do not differ in anything that was recorded.".to_owned();
    }
    let named = differences.iter().take(NAMED_MAX);
    let named = named.map(|difference| {
        let values = difference.values.join(" here, ");
        format!("{} ({values} there)", difference.what)
    });
    let more = match differences.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named: Vec<String> = named.collect();
    format!(
        "The machines differ in {}{more}; each may be the cause.",
        named.join(", ")
    )
}

/// Summarises the results of a submission's claims, and whether its data are contradicted.
pub fn sentence(grade: &Grade) -> String {
    let count = |wanted| {
        let claims = grade.claims.iter();
        claims.filter(|claim| claim.result == wanted).count()
    };
    let parts = [
        (ClaimResult::Holds, "holds"),
        (ClaimResult::RefutedBySubmission, "refuted by its own data"),
        (ClaimResult::RefutedHere, "refuted here"),
        (ClaimResult::Undecided, "undecided"),
    ];
    let claims = parts.into_iter().filter_map(|(result, word)| {
        let count = count(result);
        let word = match (word, count) {
            ("holds", 2..) => "hold",
            _ => word,
        };
        (count > 0).then(|| format!("{count} {word}"))
    });
    let mut summary = if grade.claims.is_empty() {
        "no claim is judged, since the submission varies something else".to_owned()
    } else {
        format!(
            "of {}, {}",
            format::counted(grade.claims.len() as u64, "claim"),
            claims.collect::<Vec<_>>().join(", ")
        )
    };
    if !grade.experiment_differences.is_empty() {
        summary = format!("its experiment is not yours; {summary}");
    }
    let failed: Vec<&str> = grade
        .failed_checks()
        .map(|check| check.id.as_str())
        .collect();
    if !failed.is_empty() {
        summary = format!(
            "checks that the data fail: {}; {summary}",
            failed.join(", ")
        );
    }
    if grade.here.is_none() {
        summary += "; not measured here";
    }
    summary
}
