//! One self-contained page for the browser and for paper.

use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context};

use super::plots::palette::dark_rules;
use super::sanitize::sanitize;
use super::{ReportError, ReportedRun};

mod table;
mod view;

const PAGE: &str = include_str!("../assets/page.html");
const RUN: &str = include_str!("../assets/run.html");
const NOTES: &str = include_str!("../assets/notes.html");
const STYLE: &str = include_str!("../assets/page.css");

/// Builds the page: one file without scripts or outside references.
///
/// # Errors
///
/// [`ReportError::Template`] if the page's template does not render.
pub fn page(runs: &[ReportedRun]) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escape_and_sanitize);
    environment.add_template("page.html", PAGE)?;
    environment.add_template("run.html", RUN)?;
    environment.add_template("notes.html", NOTES)?;
    let style = format!("{STYLE}\n{}", dark_rules());
    let title = match runs {
        [run] => format!("{} – toll", run.run.title),
        runs => format!("{} runs – toll", runs.len()),
    };
    let runs: Vec<Value> = runs.iter().map(view::run).collect();
    let page = environment.get_template("page.html")?;
    let style = Value::from_safe_string(style);
    Ok(page.render(context! { title, style, runs })?)
}

/// Escapes every value, and takes control characters out of it, so that no
/// template can forget to.
fn escape_and_sanitize(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => {
            minijinja::escape_formatter(out, state, &Value::from(sanitize(text)))
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}
