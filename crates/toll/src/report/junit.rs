//! Verdicts as a JUnit report, which continuous integration shows.

use super::sanitize::sanitize;
use super::words;
use crate::claim::Run;
use crate::claim::model::{Outcome, Verdict};
use crate::format;

/// Writes the claims of a run as one test suite (the XML of the JUnit task of
/// Apache Ant, as Jenkins and GitLab read it): a refuted claim is a failure,
/// one that is inconclusive or not testable is skipped, each with its reason
/// and figures.
pub fn junit(run: &Run) -> Result<String, String> {
    let (run, analysis) = (&run.stored.run, &run.analysis);
    if analysis.verdicts.is_empty() {
        let reason = "its experiment has no claim";
        return Err(super::does_not_apply("JUnit's XML", run.id, reason));
    }
    let outcomes = || analysis.verdicts.iter().map(|one| one.outcome);
    let count = |wanted| outcomes().filter(|one| *one == wanted).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        analysis.verdicts.len(),
        count(Outcome::Refuted),
        count(Outcome::Inconclusive) + count(Outcome::NotTestable)
    );
    // Without a fraction and zone, as the schema of Jenkins wants it.
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
    ] {
        text.push_str(&format!(
            "      <property name=\"{property}\" value=\"{}\"/>\n",
            escape(value)
        ));
    }
    text.push_str("    </properties>\n");
    for verdict in &analysis.verdicts {
        text.push_str(&case(verdict, &name));
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    Ok(text)
}

fn case(verdict: &Verdict, suite: &str) -> String {
    let head = format!(
        "    <testcase classname=\"{suite}\" name=\"{}\" time=\"0\">\n",
        escape(&verdict.id)
    );
    let message = escape(&match verdict.reason.is_empty() {
        true => words::outcome(verdict.outcome).to_owned(),
        false => format!("{}: {}", words::outcome(verdict.outcome), verdict.reason),
    });
    let figures = escape(&figures(verdict));
    let result = match verdict.outcome {
        Outcome::Supported => String::new(),
        Outcome::Refuted => {
            format!("      <failure message=\"{message}\" type=\"refuted\">{figures}</failure>\n")
        }
        Outcome::Inconclusive | Outcome::NotTestable => {
            format!("      <skipped message=\"{message}\"/>\n")
        }
    };
    format!("{head}{result}      <system-out>{figures}</system-out>\n    </testcase>\n")
}

/// The claim with what was measured, in a line.
fn figures(verdict: &Verdict) -> String {
    format!(
        "{}; {}; published {}, measured {}, margin {}, {}",
        verdict.text,
        verdict.contrast,
        format::published(verdict),
        format::measured(verdict),
        format::margin(verdict),
        words::plural(verdict.blocks, "block")
    )
}

/// Text that stays text in an element and in an attribute. Control characters
/// may not stand in XML at all, escaped or not, nor the two that Unicode has
/// no character for.
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
