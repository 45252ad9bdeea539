//! One line for each trial, iteration and metric, for spreadsheets and scripts.

use std::borrow::Cow;

use toll_core::run::StoredRun;
use toll_document::sanitize;

use crate::claim::Run;
use crate::claim::model::Price;

/// Writes a run as CSV (RFC 4180): a header, then one line for every sample,
/// and one without a value for every trial that failed.
pub fn csv(stored: &StoredRun) -> String {
    let factors: Vec<&str> = stored
        .experiment
        .factors
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    let mut head = vec!["run", "block", "position", "treatment", "twin_of"];
    head.extend(&factors);
    head.extend(["state", "message", "iteration", "metric", "value"]);
    let mut text = line(head.iter().map(|field| Cow::Borrowed(*field)));
    for trial in &stored.trials {
        let treatment = &stored.treatments[trial.treatment];
        let mut fixed: Vec<String> = vec![
            stored.run.uid.clone(),
            trial.block.to_string(),
            trial.position.to_string(),
            trial.treatment.to_string(),
            treatment
                .twin_of
                .map_or_else(String::new, |of| of.to_string()),
        ];
        let level = |name: &&str| treatment.levels.get(*name).map_or("", |level| &level.text);
        fixed.extend(factors.iter().map(|name| level(name).to_owned()));
        fixed.push(trial.state.name().to_owned());
        fixed.push(trial.message.clone().unwrap_or_default());
        let mut push = |own: [String; 3]| {
            let fields = fixed.iter().map(|field| Cow::Borrowed(field.as_str()));
            text.push_str(&line(fields.chain(own.into_iter().map(Cow::Owned))));
        };
        if trial.samples.is_empty() {
            push([String::new(), String::new(), String::new()]);
        }
        for (metric, values) in &trial.samples {
            for (iteration, value) in values.iter().enumerate() {
                push([iteration.to_string(), metric.clone(), value.to_string()]);
            }
        }
    }
    text
}

/// Writes the selected lines of a price list as CSV.
pub fn prices(run: &Run, is_shown: &dyn Fn(&Price) -> bool) -> String {
    let head = [
        "group",
        "name",
        "value",
        "low",
        "high",
        "confidence",
        "unit",
        "per",
        "note",
    ];
    let mut text = line(head.into_iter().map(Cow::Borrowed));
    for price in run.analysis.prices.iter().filter(|price| is_shown(price)) {
        let value = price.value.as_ref();
        let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
        let fields = [
            price.group.clone().unwrap_or_default(),
            price.name.clone(),
            end(value.and_then(|value| value.value)),
            end(value.and_then(|value| value.low)),
            end(value.and_then(|value| value.high)),
            end(value.map(|value| value.confidence)),
            price.unit.clone(),
            price.per.clone(),
            price.note.clone().unwrap_or_default(),
        ];
        text.push_str(&line(fields.into_iter().map(Cow::Owned)));
    }
    text
}

fn line<'a>(fields: impl Iterator<Item = Cow<'a, str>>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    format!("{}\r\n", fields.join(","))
}

/// Removes terminal control characters from a field and quotes it if necessary. A field
/// that a spreadsheet would take for a formula gets an apostrophe in front, since levels
/// and messages come from other people's files and commands.
fn quoted(field: &str) -> String {
    let lines: Vec<String> = field.split('\n').map(sanitize).collect();
    let field = lines.join("\n");
    let is_formula = field.starts_with(['=', '@'])
        || (field.starts_with(['+', '-']) && field.parse::<f64>().is_err());
    let field = if is_formula {
        format!("'{field}")
    } else {
        field
    };
    if field.contains(['"', ',', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
        assert_eq!(quoted("-1.5"), "-1.5");
        assert_eq!(quoted("=1+2"), "'=1+2");
        assert_eq!(quoted("-cmd|x"), "'-cmd|x");
        assert_eq!(quoted("\t=1\u{1b}[1m"), " =1\u{fffd}[1m");
    }
}
