//! The page of a fleet: which claim holds on which machine.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::html::{environment, fault, style};
use super::words;
use crate::claim::model::Outcome;
use toll_core::fleet::model::{FactRole, FleetClaim, FleetFact, FleetReport};

const PAGE: &str = include_str!("assets/fleet.html");

/// Width of all cells of a row together, and of a cell at most.
const ROW_WIDTH: f64 = 760.0;
const CELL_WIDTH_MAX: f64 = 22.0;
const ROW_HEIGHT: f64 = 18.0;
/// Room for a character of a claim's name.
const CHARACTER_WIDTH: f64 = 7.4;
/// From so many machines on, neighbours of one outcome are drawn as one, without a name
/// for each: a page of a thousand machines stays small.
const NAMED_MACHINES_MAX: usize = 60;

/// Builds the page: one file without scripts or outside references.
pub fn page(report: &FleetReport) -> anyhow::Result<String> {
    let mut environment = environment();
    let rendered = environment.add_template("fleet.html", PAGE).and_then(|()| {
        let claims: Vec<Value> = report.claims.iter().map(claim).collect();
        environment.get_template("fleet.html")?.render(context! {
            style => style(),
            claims_text => words::plural(report.claims.len(), "claim"),
            machines => words::plural(report.machines.len(), "machine"),
            facts => Serde(fact_names(report)),
            machine_rows => Serde(&report.machines),
            has_machine_rows => report.machines.len() <= NAMED_MACHINES_MAX,
            matrix => matrix(report),
            claims,
        })
    });
    rendered.map_err(fault)
}

fn fact_names(report: &FleetReport) -> Vec<&str> {
    let names = report.machines.iter().flat_map(|one| one.facts.keys());
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn claim(one: &FleetClaim) -> Value {
    let told = one
        .facts
        .iter()
        .filter(|fact| fact.role != FactRole::NotTested);
    let facts: Vec<Value> = told.map(fact).collect();
    context! {
        one => Serde(one),
        anchor => anchor(one),
        facts,
    }
}

fn anchor(one: &FleetClaim) -> String {
    format!("{}-{}-{}", one.claim, one.quantity, one.unit)
}

fn fact(one: &FleetFact) -> Value {
    context! { one => Serde(one), role => role(one) }
}

/// What a fact has to do with differences, in words.
pub fn role(fact: &FleetFact) -> String {
    let with = fact.with.as_deref().unwrap_or("another fact");
    match fact.role {
        FactRole::Explains => "machines differ by it".to_owned(),
        FactRole::Confounded => {
            format!("splits the machines as {with} does: either may be the cause")
        }
        FactRole::Associated => format!("no difference is left among machines alike in {with}"),
        FactRole::NoDifference => "no difference found".to_owned(),
        FactRole::NotTested => "too few machines".to_owned(),
    }
}

/// A picture: a row a claim, a column a machine.
fn matrix(report: &FleetReport) -> Value {
    let machines = report.machines.len();
    let cell_width = (ROW_WIDTH / machines.max(1) as f64).min(CELL_WIDTH_MAX);
    let lengths = report.claims.iter().map(|one| one.claim.len());
    let names_width = CHARACTER_WIDTH * (lengths.max().unwrap_or(0) + 2) as f64;
    let rows: Vec<Value> = report
        .claims
        .iter()
        .enumerate()
        .map(|(index, claim)| {
            context! {
                y => index as f64 * ROW_HEIGHT,
                claim => &claim.claim,
                anchor => anchor(claim),
                cells => cells(report, claim, cell_width),
            }
        })
        .collect();
    context! {
        width => names_width + cell_width * machines as f64,
        height => ROW_HEIGHT * report.claims.len() as f64,
        names_width,
        row_height => ROW_HEIGHT,
        rows,
    }
}

/// A stretch of machines of one outcome.
struct Cell {
    first: usize,
    machines: usize,
    outcome: Outcome,
}

fn cells(report: &FleetReport, claim: &FleetClaim, width: f64) -> Vec<Value> {
    let outcomes: std::collections::BTreeMap<&str, Outcome> = claim
        .machines
        .iter()
        .map(|one| (one.machine.as_str(), one.outcome))
        .collect();
    let merges = report.machines.len() > NAMED_MACHINES_MAX;
    let mut cells: Vec<Cell> = Vec::new();
    for (index, machine) in report.machines.iter().enumerate() {
        let Some(outcome) = outcomes.get(machine.id.as_str()) else {
            continue;
        };
        match cells.last_mut() {
            Some(last)
                if merges && last.outcome == *outcome && last.first + last.machines == index =>
            {
                last.machines += 1;
            }
            _ => cells.push(Cell {
                first: index,
                machines: 1,
                outcome: *outcome,
            }),
        }
    }
    let drawn = |cell: Cell| {
        let name = report.machines[cell.first].id.as_str();
        let what = match cell.machines {
            1 => name.to_owned(),
            more => words::plural(more, "machine"),
        };
        context! {
            x => cell.first as f64 * width,
            width => cell.machines as f64 * width,
            outcome => Serde(cell.outcome),
            title => format!("{}, {what}: {}", claim.claim, words::outcome(cell.outcome)),
        }
    };
    cells.into_iter().map(drawn).collect()
}
