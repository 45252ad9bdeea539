//! One self-contained page for the browser and for printing.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context};
use toll_document::sanitize;

use super::plots::palette::dark_rules;
use super::plots::{self, NamedPlot, flame};
use super::{comparison, explained, parts, terminal, words};
use crate::claim::model::{
    DerivedValue, Estimate, Explanation, ExplanatoryMetrics, Metric, NearestCache, Outcome,
    OverRuns, Price, PublishedGroup, PublishedRow, TreatmentSummary, Verdict,
};
use crate::claim::{Run, metric_words};
use crate::format;

const PAGE: &str = include_str!("assets/page.html");
const RUN: &str = include_str!("assets/run.html");
const PRICES: &str = include_str!("assets/prices.html");
const NOTES: &str = include_str!("assets/notes.html");
const STYLE: &str = include_str!("assets/page.css");

/// Builds a page of several runs.
pub fn page(runs: &[Run]) -> anyhow::Result<String> {
    let mut page = Page::default();
    runs.iter().for_each(|run| page.add(run, None));
    page.render()
}

/// A page to which runs are added as they end; each is drawn once.
#[derive(Default)]
pub struct Page {
    /// A price list of the machine, which comes first.
    prices: Option<Value>,
    runs: Vec<Value>,
    /// Number of runs that have verdicts.
    judged: usize,
    titles: Vec<String>,
}

impl Page {
    /// Adds a run, with the verdicts over comparable runs. A price list replaces an earlier one.
    pub fn add(&mut self, run: &Run, over: Option<&OverRuns>) {
        if !run.analysis.prices.is_empty() {
            self.prices = Some(price_list(run));
            return;
        }
        self.titles.push(run.stored.run.title.clone());
        self.runs.push(view(run, over));
        self.judged += usize::from(run.is_judged());
    }

    /// Renders the page so far: one file without scripts or outside references.
    pub fn render(&self) -> anyhow::Result<String> {
        self.rendered().map_err(fault)
    }

    fn rendered(&self) -> Result<String, Error> {
        let mut environment = environment();
        environment.add_template("page.html", PAGE)?;
        environment.add_template("run.html", RUN)?;
        environment.add_template("prices.html", PRICES)?;
        environment.add_template("notes.html", NOTES)?;
        let title = match self.titles.as_slice() {
            [] if self.prices.is_some() => "Prices – toll".to_owned(),
            [only] => format!("{only} – toll"),
            titles => format!("{} runs – toll", titles.len()),
        };
        let style = style();
        let page = environment.get_template("page.html")?;
        let (prices, runs) = (self.prices.clone(), self.runs.clone());
        let wrong_verdicts = words::wrong_verdicts(self.judged);
        page.render(context! { title, style, prices, runs, wrong_verdicts })
    }
}

/// Returns the environment for templates of pages, which escapes every value.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escape_and_sanitize);
    add_filters_of_numbers(&mut environment);
    add_filters_of_results(&mut environment);
    environment
}

pub fn style() -> Value {
    Value::from_safe_string(format!("{STYLE}\n{}", dark_rules()))
}

pub fn fault(error: Error) -> anyhow::Error {
    anyhow::anyhow!(
        "cannot build the report page: {error}; this is a fault in toll, please report it"
    )
}

/// Escapes every value and replaces its control characters, so that no template can forget this.
fn escape_and_sanitize(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => {
            minijinja::escape_formatter(out, state, &Value::from(sanitize(text)))
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

fn price_list(run: &Run) -> Value {
    let (record, analysis) = (&run.stored.run, &run.analysis);
    let mut groups: Vec<(&str, Vec<&Price>)> = Vec::new();
    for price in &analysis.prices {
        let Some(group) = &price.group else {
            continue;
        };
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, prices)) => prices.push(price),
            None => groups.push((group, vec![price])),
        }
    }
    context! {
        record => Serde(record),
        blocks_text => words::plural(analysis.blocks, "block"),
        machine_line => words::machine_line(&record.machine),
        groups => Serde(groups),
        plot => plots::prices(run).map(svg),
    }
}

/// The run's own data, with the texts and plots of a report.
fn view(run: &Run, over: Option<&OverRuns>) -> Value {
    let (record, analysis) = (&run.stored.run, &run.analysis);
    let mut checks = analysis.checks.iter();
    let has_failed = checks.any(|one| one.outcome == Outcome::Refuted);
    let svgs = |plots: Vec<NamedPlot>| plots.into_iter().map(svg).collect::<Vec<Value>>();
    context! {
        anchor => format!("run-{}-{}", record.id, record.uid),
        record => Serde(record),
        analysis => Serde(analysis),
        counts_text => words::counts(&analysis.verdicts),
        checks_text => words::check_counts(&analysis.checks),
        has_failed_check => has_failed,
        over_runs => over_runs(run, over),
        promise_over_runs => terminal::promise_over_runs(),
        compared => Serde(comparison::table(run)),
        machine_line => words::machine_line(&record.machine),
        guest_lines => analysis.guests.iter().map(words::guest_line).collect::<Vec<_>>(),
        parts => Serde(parts::of_run(run)),
        claims_plot => plots::claims(run).map(svg),
        plots => svgs(plots::figures(run)),
        twin_plots => svgs(plots::twins(run)),
        explanations => explanations(run),
    }
}

/// The claims on which several runs have evidence: lines by the claims' names.
fn over_runs(run: &Run, over: Option<&OverRuns>) -> BTreeMap<String, String> {
    let claims = over.iter().flat_map(|over| &over.claims);
    let pairs = run.analysis.verdicts.iter().zip(claims);
    let shared = pairs.filter(|(_, claim)| claim.runs > 1);
    let line = |(verdict, claim)| terminal::over_runs_in_words(verdict, claim);
    shared.map(|pair| (pair.1.id.clone(), line(pair))).collect()
}

/// The explanations of a run, with their flame graphs.
fn explanations(run: &Run) -> Vec<Value> {
    let mut graphs = flame::all(run).into_iter();
    let one = |one: &Explanation| {
        let graph = graphs.next();
        context! {
            sentence => explained::sentence(one),
            notes => explained::notes(one),
            rows => Serde(explained::shown_rows(&one.rows, one).0),
            entries => Serde(explained::shown_rows(&one.entries, one).0),
            counts => Serde(explained::shown_counts(&one.counts).0),
            one => Serde(one),
            graph => graph.map(|graph| inline(&graph.svg)),
        }
    };
    run.analysis.explanations.iter().map(one).collect()
}

/// Turns a standalone SVG document into a part of the page. Its own style is removed, since
/// it would apply to the whole page.
fn inline(svg: &str) -> Value {
    let svg = &flame::without(svg, "<style", "</style>");
    let begin = svg.find("<svg").unwrap_or(0);
    let namespaces = [
        " xmlns=\"http://www.w3.org/2000/svg\"",
        " xmlns:xlink=\"http://www.w3.org/1999/xlink\"",
        " xmlns:fg=\"http://github.com/jonhoo/inferno\"",
    ];
    let bare = namespaces
        .iter()
        .fold(svg[begin..].to_owned(), |svg, namespace| {
            svg.replacen(namespace, "", 1)
        });
    Value::from_safe_string(bare)
}

/// Removes the namespace of a drawing, which HTML does not need.
fn svg(plot: NamedPlot) -> Value {
    let namespace = " xmlns=\"http://www.w3.org/2000/svg\"";
    Value::from_safe_string(plot.svg.replacen(namespace, "", 1))
}

fn or_nothing<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| format::NOTHING.to_owned(), text)
}

fn add_filters_of_numbers(environment: &mut Environment) {
    environment.add_filter("value", |value: f64, unit: String| {
        format::value(value, &unit)
    });
    environment.add_filter("interval", |one: Serde<Option<Estimate>>, unit: String| {
        or_nothing(one.0, |one| format::interval(&one, &unit))
    });
    environment.add_filter(
        "beyond",
        |one: Serde<Option<DerivedValue>>, unit: String| {
            or_nothing(one.0, |one| format::derived(&one, &unit))
        },
    );
    environment.add_filter("ratio_interval", |one: Serde<Option<Estimate>>| {
        or_nothing(one.0, |one| format::ratio_interval(&one))
    });
    environment.add_filter("share", |one: Serde<Option<Estimate>>| {
        or_nothing(one.0, |one| explained::share(&one))
    });
    environment.add_filter("counted_unit", |metric: String| {
        explained::counted_unit(&metric)
    });
    environment.add_filter("ratio", |one: Option<f64>| or_nothing(one, format::ratio));
    environment.add_filter("percent", format::percent);
    environment.add_filter("significant", format::significant);
    environment.add_filter("minute", |time: String| words::minute(&time));
}

fn add_filters_of_results(environment: &mut Environment) {
    environment.add_filter("price", |one: Serde<Price>| {
        let value = one.value.as_ref();
        let parts = value.map(|value| format::price_parts(value, &one.unit));
        let (value, ends) = parts.unwrap_or_else(|| (format::NOTHING.to_owned(), String::new()));
        vec![value, ends]
    });
    environment.add_filter("outcome", |one: Serde<Outcome>| words::outcome(one.0));
    environment.add_filter("state", |one: Serde<Verdict>| words::state(&one));
    environment.add_filter("check_state", |one: Serde<Verdict>| {
        words::check_state(&one)
    });
    environment.add_filter("sign", |one: Serde<Verdict>| words::sign(&one));
    environment.add_filter("symbol", |one: Serde<Outcome>| words::symbol(one.0));
    environment.add_filter("published", |one: Serde<Verdict>| format::published(&one));
    environment.add_filter("measured", |one: Serde<Verdict>| {
        let (value, interval) = format::measured_parts(&one);
        vec![value, interval]
    });
    environment.add_filter("margin", |one: Serde<Verdict>| format::margin(&one));
    environment.add_filter("metric", |name: String| metric_words(&name));
    environment.add_filter(
        "brief",
        |one: Serde<ExplanatoryMetrics>, metrics: Serde<BTreeMap<String, Metric>>| {
            words::explanatory_metrics_brief(&one, &metrics)
        },
    );
    environment.add_filter(
        "unit",
        |name: String, metrics: Serde<BTreeMap<String, Metric>>| {
            words::unit(&metrics, &name).to_owned()
        },
    );
    environment.add_filter("trials", |one: Serde<TreatmentSummary>| words::trials(&one));
    environment.add_filter("cache", |one: Serde<Option<NearestCache>>| {
        words::nearest_cache(one.0.as_ref())
    });
    environment.add_filter("disturbance_unit", |name: String| {
        words::disturbance_unit(&name)
    });
    environment.add_filter("means", |groups: Serde<Vec<PublishedGroup>>| {
        let rows = groups.iter().flat_map(|group| &group.rows);
        let means: Vec<_> = rows.filter_map(|row| row.measured_mean).collect();
        Value::from(Serde(means))
    });
    environment.add_filter("missing", |group: Serde<PublishedGroup>| {
        missing(&group).map(str::to_owned)
    });
    environment.add_filter(
        "published_cell",
        |row: Serde<PublishedRow>, group: Serde<PublishedGroup>| published_cell(&row, &group),
    );
}

/// Why no row of a group was measured, if one reason holds for all.
fn missing(group: &PublishedGroup) -> Option<&str> {
    let mut reasons = group.rows.iter().map(|row| row.missing.as_deref());
    let first = reasons.next()??;
    reasons.all(|reason| reason == Some(first)).then_some(first)
}

/// The published value, and the same in the measured unit if the units differ.
fn published_cell(row: &PublishedRow, group: &PublishedGroup) -> Vec<Option<String>> {
    let published_value = |value| format::value(value, &group.published_unit);
    let number = row.printed.published.map(published_value);
    let converted = row
        .published_converted
        .map(|value| format::value(value, &group.unit))
        .filter(|converted| number.as_ref() != Some(converted));
    let deviation = row.printed.deviation.map(published_value);
    let with_deviation = number.map(|number| match deviation {
        Some(deviation) => format!("{number} ± {deviation}"),
        None => number,
    });
    let parts = with_deviation.into_iter().chain(row.printed.text.clone());
    let parts: Vec<String> = parts.collect();
    let text = or_nothing((!parts.is_empty()).then_some(parts), |parts| {
        parts.join(", ")
    });
    vec![Some(text), converted]
}
