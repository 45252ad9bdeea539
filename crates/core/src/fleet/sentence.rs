//! A claim's result on all machines, as a sentence.

use super::model::{FactRole, FleetFact, OutcomeCounts};

/// Returns the result, such as `holds on 37 of 40 machines, refuted on 2, undecided on 1;
/// differs by file system, not by kernel`.
pub(super) fn sentence(counts: &OutcomeCounts, facts: &[FleetFact]) -> String {
    match by_facts(facts) {
        Some(by_facts) => format!("{}; {by_facts}", on_machines(counts)),
        None => on_machines(counts),
    }
}

fn on_machines(counts: &OutcomeCounts) -> String {
    let plural = if counts.total() == 1 { "" } else { "s" };
    let mut text = format!(
        "holds on {} of {} machine{plural}",
        counts.supported,
        counts.total()
    );
    for (what, count) in [
        ("refuted", counts.refuted),
        ("undecided", counts.undecided),
        ("not testable", counts.not_testable),
    ] {
        if count > 0 {
            text += &format!(", {what} on {count}");
        }
    }
    text
}

/// Returns the facts by which the machines differ; `None` if no fact could be tested.
fn by_facts(facts: &[FleetFact]) -> Option<String> {
    let of = |role: FactRole| {
        let facts = facts.iter().filter(move |fact| fact.role == role);
        facts.map(|fact| fact.name.as_str()).collect::<Vec<&str>>()
    };
    let (explaining, others) = (of(FactRole::Explains), of(FactRole::NoDifference));
    if explaining.is_empty() {
        let is_tested = !others.is_empty();
        return is_tested.then(|| format!("no difference by {} found", list(&others, "or")));
    }
    let explaining: Vec<String> = explaining
        .iter()
        .map(|name| {
            let confounded = facts.iter().filter(|fact| {
                fact.role == FactRole::Confounded && fact.with.as_deref() == Some(name)
            });
            let confounded: Vec<&str> = confounded.map(|fact| fact.name.as_str()).collect();
            if confounded.is_empty() {
                (*name).to_owned()
            } else {
                format!("{name} (confounded with {})", list(&confounded, "and"))
            }
        })
        .collect();
    let explaining: Vec<&str> = explaining.iter().map(String::as_str).collect();
    let mut text = format!("differs by {}", list(&explaining, "and"));
    if !others.is_empty() {
        text += &format!(", not by {}", list(&others, "or"));
    }
    Some(text)
}

/// Joins words, such as `a, b and c`.
pub(super) fn list(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
