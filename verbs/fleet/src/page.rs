//! The HTML page of a fleet: which claim holds on which machine.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{Value, context};
use toll_core::claim::model::Outcome;
use toll_core::fleet::model::{FactRole, FleetClaim, FleetFact, FleetReport};
use toll_core::spec::Platform;
use toll_report::html::{environment, fault, style};
use toll_report::words;

const PAGE: &str = include_str!("assets/fleet.html");

/// Width of all cells of a row together, and of the widest cell.
const ROW_WIDTH: f64 = 720.0;
const CELL_WIDTH_MAX: f64 = 22.0;
const ROW_HEIGHT: f64 = 18.0;
/// Width of a character of a claim's name.
const CHARACTER_WIDTH: f64 = 7.4;
/// Largest number of machines that are drawn with their names. With more, neighbours with the same
/// outcome are drawn as one cell, so that a page of a thousand machines stays small.
const NAMED_MACHINES_MAX: usize = 60;

/// Builds the page: one file without scripts or external references.
pub fn page(report: &FleetReport) -> anyhow::Result<String> {
    let mut environment = environment();
    let rendered = environment.add_template("fleet.html", PAGE).and_then(|()| {
        let claims = report.claims.iter();
        let claims = claims.map(|one| claim(one, &report.published_platforms));
        let claims: Vec<Value> = claims.collect();
        environment.get_template("fleet.html")?.render(context! {
            style => style(),
            claims_text => words::plural(report.claims.len(), "claim"),
            machines => words::plural(report.machines.len(), "machine"),
            facts => Serde(fact_names(report.machines.iter().map(|one| &one.facts))),
            platforms => Serde(&report.published_platforms),
            platform_facts => {
                let facts = report.published_platforms.iter().map(|one| &one.facts);
                Serde(fact_names(facts))
            },
            machine_rows => Serde(&report.machines),
            has_machine_rows => report.machines.len() <= NAMED_MACHINES_MAX,
            matrix => matrix(report),
            claims,
        })
    });
    rendered.map_err(fault)
}

fn fact_names<'a>(
    machines: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeSet<&'a str> {
    let names = machines.flat_map(BTreeMap::keys);
    names.map(String::as_str).collect()
}

fn claim(one: &FleetClaim, platforms: &[Platform]) -> Value {
    let recorded = one
        .facts
        .iter()
        .filter(|fact| fact.role != FactRole::NotTested);
    let facts: Vec<Value> = recorded.map(fact).collect();
    let platforms = platforms.iter();
    let concluded = platforms.filter_map(|platform| {
        let concluded = platform.concluded.get(&one.claim)?;
        Some((&platform.name, concluded))
    });
    let concluded: Vec<(&String, &String)> = concluded.collect();
    context! {
        concluded => Serde(concluded),
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

/// Describes how a fact is related to differences between machines.
pub fn role(fact: &FleetFact) -> String {
    let with = fact.with.as_deref().unwrap_or("another fact");
    match fact.role {
        FactRole::Explains => "explains how machines differ".to_owned(),
        FactRole::Confounded => {
            format!("splits the machines as {with} does: either may be the cause")
        }
        FactRole::Associated => {
            format!("no difference remains among machines that are alike in {with}")
        }
        FactRole::NoDifference => "no difference found".to_owned(),
        FactRole::NotTested => "too few machines".to_owned(),
    }
}

/// Data of the picture. It has a row for each claim and a column for each machine. After a gap, it
/// has a column for each published platform.
fn matrix(report: &FleetReport) -> Value {
    let machines = report.machines.len();
    // Columns of published platforms follow after a gap of one cell.
    let platforms_width = match report.published_platforms.len() {
        0 => 0.0,
        some => CELL_WIDTH_MAX * (some + 1) as f64,
    };
    let machines_width = (ROW_WIDTH - platforms_width).max(ROW_WIDTH / 2.0);
    let cell_width = (machines_width / machines.max(1) as f64).min(CELL_WIDTH_MAX);
    let lengths = report.claims.iter().map(|one| one.claim.len());
    // A sign may follow the name.
    let names_width = CHARACTER_WIDTH * (lengths.max().unwrap_or(0) + 2) as f64;
    let platforms_x = cell_width * machines as f64 + CELL_WIDTH_MAX;
    let rows: Vec<Value> = report
        .claims
        .iter()
        .enumerate()
        .map(|(index, claim)| {
            context! {
                y => index as f64 * ROW_HEIGHT,
                claim => &claim.claim,
                anchor => anchor(claim),
                sign => claim.difference.as_ref().map(|one| words::symbol(one.outcome)),
                outcome => Serde(claim.difference.as_ref().map(|one| one.outcome)),
                cells => cells(report, claim, cell_width),
                published => published_cells(report, claim, platforms_x),
            }
        })
        .collect();
    context! {
        width => names_width + cell_width * machines as f64 + platforms_width,
        cell_width => CELL_WIDTH_MAX,
        height => ROW_HEIGHT * report.claims.len() as f64,
        names_width,
        row_height => ROW_HEIGHT,
        rows,
    }
}

/// Cells for the platforms about which a publication concludes something. The first cell begins at
/// `x` = `from`.
fn published_cells(report: &FleetReport, claim: &FleetClaim, from: f64) -> Vec<Value> {
    let platforms = report.published_platforms.iter().enumerate();
    let cell = |(index, platform): (usize, &Platform)| {
        let concluded = platform.concluded.get(&claim.claim)?;
        let (name, report) = (&platform.name, &platform.report);
        Some(context! {
            x => from + CELL_WIDTH_MAX * index as f64,
            title => format!("{}, {name}, published by {report}: {concluded}", claim.claim),
        })
    };
    platforms.filter_map(cell).collect()
}

/// Consecutive machines with the same outcome.
struct Cell {
    first: usize,
    machines: usize,
    outcome: Outcome,
}

fn cells(report: &FleetReport, claim: &FleetClaim, width: f64) -> Vec<Value> {
    let outcomes: BTreeMap<&str, Outcome> = claim
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
