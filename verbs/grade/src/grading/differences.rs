//! Finds how a submitted experiment differs from the grader's own copy.

use std::collections::BTreeMap;

use serde_json::Value;
use toll_core::claim::work::{Difference, differing};
use toll_core::spec::Experiment;

/// Members that affect neither the measurement nor the claims.
const LEFT_OUT: [&str; 9] = [
    "title",
    "question",
    "report",
    "profile",
    "twins",
    "tables",
    "figures",
    "advice",
    "platforms",
];

/// Settings of a run that change what a trial measures. The other settings set the number of
/// trials.
const RUN_SETTINGS: [&str; 2] = ["iterations", "warmup_iterations"];

/// Returns what differs between two experiments, such as `claims pair.longer threshold`.
pub fn between(own: &Experiment, submitted: &Experiment) -> Vec<Difference> {
    differing(&[own, submitted].map(statements))
}

fn statements(experiment: &Experiment) -> BTreeMap<String, String> {
    let mut all = serde_json::to_value(experiment).unwrap_or_default();
    if let Value::Object(members) = &mut all {
        members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
        if let Some(Value::Object(run)) = members.get_mut("run") {
            run.retain(|name, _| RUN_SETTINGS.contains(&name.as_str()));
        }
    }
    let mut found = BTreeMap::new();
    flatten("", &all, &mut found);
    found
}

/// Lists plain values by their path. Items of lists are named by their `id` or `name`; a
/// list of levels is one value.
fn flatten(prefix: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| format!("{prefix} {name}").trim_start().to_owned();
    match value {
        Value::Null => {}
        Value::Object(members) if level_text(value).is_none() => {
            for (name, member) in members {
                flatten(&below(name), member, found);
            }
        }
        Value::Array(items) if items.iter().any(|item| own_name(item).is_some()) => {
            for item in items {
                flatten(&below(own_name(item).unwrap_or_default()), item, found);
            }
        }
        Value::Array(items) => {
            let items = items.iter().map(text).collect::<Vec<_>>();
            found.insert(prefix.to_owned(), items.join(", "));
        }
        other => _ = found.insert(prefix.to_owned(), text(other)),
    }
}

fn own_name(item: &Value) -> Option<&str> {
    ["id", "name"]
        .into_iter()
        .find_map(|key| item.get(key)?.as_str())
}

/// Returns the text of a level, which is stored with its number.
fn level_text(value: &Value) -> Option<&str> {
    value.get("number")?;
    value.get("text")?.as_str()
}

fn text(value: &Value) -> String {
    match level_text(value).or(value.as_str()) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}
