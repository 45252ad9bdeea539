//! Verdicts or comparisons as a JUnit report for continuous integration.

use toll_document::sanitize;
use toll_stats::Decision;

use super::words;
use crate::claim::model::{Analysis, Comparison, Outcome, Verdict};
use crate::claim::{MARGIN_MIN, Run};
use crate::format;

/// A test case.
struct Case {
    name: String,
    result: CaseResult,
    /// The measured values, in one line.
    figures: String,
}

/// A failure has a message and a type.
enum CaseResult {
    Passed,
    Failed(String, &'static str),
    Skipped(String),
}

/// Writes the claims of a run as one test suite, in the XML of Apache Ant's JUnit task that
/// Jenkins and GitLab read.
///
/// A claim that is refuted with the error rate of the whole run (✘✘) is a failure. A claim that
/// is undecided, not testable, or refuted without that error rate is skipped. Each has its reason
/// and figures. Without claims, comparisons are the cases: a regression past the run's limit is a
/// failure, and an undecided comparison is skipped.
pub fn junit(run: &Run) -> Result<String, String> {
    let limit = run.stored.experiment.run.regression_limit;
    let limit = limit.unwrap_or(MARGIN_MIN);
    let (run, analysis) = (&run.stored.run, &run.analysis);
    let cases: Vec<Case> = match analysis.verdicts.as_slice() {
        [] => {
            let judged = analysis.comparisons.iter().filter(|one| one.is_judged);
            judged.map(|one| compared(one, analysis, limit)).collect()
        }
        verdicts => verdicts.iter().map(judged).collect(),
    };
    if cases.is_empty() {
        let reason = "it has no claims and no comparisons";
        return Err(super::does_not_apply("JUnit's XML", run.id, reason));
    }
    let count = |is_meant: fn(&CaseResult) -> bool| {
        cases.iter().filter(|one| is_meant(&one.result)).count()
    };
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        cases.len(),
        count(|result| matches!(result, CaseResult::Failed(..))),
        count(|result| matches!(result, CaseResult::Skipped(_)))
    );
    // Jenkins' schema allows no fraction and no time zone.
    let timestamp = run.created_at.get(..19).unwrap_or_default();
    let name = escape(&run.experiment);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"toll\" {counts}>\n  \
         <testsuite name=\"{name}\" {counts} time=\"0\" timestamp=\"{}\" hostname=\"{}\">\n",
        escape(timestamp),
        escape(&run.machine.hostname)
    );
    text.push_str("    <properties>\n");
    for (property, value) in [
        ("run", run.uid.as_str()),
        ("profile", &run.profile),
        ("toll", &run.toll_version),
        ("machine", &words::machine_line(&run.machine)),
        ("command_line", &run.command_line),
        ("signs", &words::promise()),
    ] {
        text.push_str(&format!(
            "      <property name=\"{property}\" value=\"{}\"/>\n",
            escape(value)
        ));
    }
    text.push_str("    </properties>\n");
    text.extend(cases.iter().map(|one| written(one, &name)));
    text.push_str("  </testsuite>\n</testsuites>\n");
    Ok(text)
}

fn judged(verdict: &Verdict) -> Case {
    let outcome = format!("{} {}", words::sign(verdict), words::state(verdict));
    let message = if verdict.reason.is_empty() {
        outcome
    } else {
        format!("{outcome}: {}", verdict.reason)
    };
    Case {
        name: verdict.id.clone(),
        figures: figures(verdict),
        result: match verdict.outcome {
            Outcome::Supported => CaseResult::Passed,
            Outcome::Refuted if verdict.is_family_wise() => CaseResult::Failed(message, "refuted"),
            Outcome::Refuted | Outcome::Undecided | Outcome::NotTestable => {
                CaseResult::Skipped(message)
            }
        },
    }
}

fn compared(one: &Comparison, analysis: &Analysis, limit: f64) -> Case {
    let metric = &analysis.metrics[&one.metric];
    let [new, old] = [one.treatment, one.reference].map(|index| &analysis.treatments[index].label);
    let noise = one.noise(analysis);
    let past = limit.max(noise.unwrap_or_default());
    let change = words::change(one.relation, &one.ratio, metric);
    let noise = noise.map_or_else(String::new, |noise| {
        format!("; A/A twins agree within {}", format::percent(noise))
    });
    let blocks = words::plural(analysis.blocks, "block");
    Case {
        name: format!("{new}: {}", one.metric),
        figures: format!("{new} over {old}: {change}{noise}; {blocks}"),
        result: match one.judged(analysis).regression(limit) {
            Decision::Supported => {
                let message = format!(
                    "{change}: the interval lies wholly past {}",
                    format::percent(past)
                );
                CaseResult::Failed(message, "regression")
            }
            Decision::Inconclusive => {
                let reason = one
                    .reason
                    .as_deref()
                    .unwrap_or("the interval reaches past the limit");
                CaseResult::Skipped(format!("undecided: {reason}"))
            }
            Decision::Refuted => CaseResult::Passed,
        },
    }
}

fn written(case: &Case, suite: &str) -> String {
    let head = format!(
        "    <testcase classname=\"{suite}\" name=\"{}\" time=\"0\">\n",
        escape(&case.name)
    );
    let figures = escape(&case.figures);
    let result = match &case.result {
        CaseResult::Passed => String::new(),
        CaseResult::Failed(message, kind) => format!(
            "      <failure message=\"{}\" type=\"{kind}\">{figures}</failure>\n",
            escape(message)
        ),
        CaseResult::Skipped(message) => {
            format!("      <skipped message=\"{}\"/>\n", escape(message))
        }
    };
    format!("{head}{result}      <system-out>{figures}</system-out>\n    </testcase>\n")
}

/// The claim with its measured values, in one line.
fn figures(verdict: &Verdict) -> String {
    format!(
        "{}; {}; published {}, measured {}, margin {}, {}: {}",
        verdict.text,
        verdict.contrast,
        format::published(verdict),
        format::measured(verdict),
        format::margin(verdict),
        words::plural(verdict.blocks, "block"),
        words::sign(verdict)
    )
}

/// Escapes text for an element or an attribute. XML allows no control characters,
/// escaped or not, and neither U+FFFE nor U+FFFF, which are not characters.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in sanitize(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}
