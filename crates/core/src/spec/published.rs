//! Numbers that the reports print, and numbers computed from them.
//!
//! Each report is transcribed once, in `experiments/published/`. An experiment file names a
//! printed number, `meowlab.time.cat3`, or computes with several:
//! `meowlab.time.cat3 / meowlab.time.cat2`. Grammar, from loose to tight: `+` and `-`, `*` and
//! `/`, then a number, a name or a parenthesis. Signs need spaces around them, since a name may
//! contain a `-`.

use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::{Table, Value};

use super::Level;
use crate::format;

macro_rules! transcription {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/experiments/published/",
                $name,
                ".toml"
            )),
        )
    };
}

/// The transcriptions, by the first part of their numbers' names.
const TRANSCRIPTIONS: &[(&str, &str)] = &[
    transcription!("cs380l"),
    transcription!("lab-8-9"),
    transcription!("meowlab"),
    transcription!("timewrite"),
    transcription!("virtual-device"),
];

/// Maximum number of parentheses in an expression; bounds the parser's recursion.
const PARENTHESES_MAX: usize = 64;

static PRINTED: LazyLock<Table> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        let table: Table = text.parse().expect("a test reads every transcription");
        ((*name).to_owned(), Value::Table(table))
    };
    TRANSCRIPTIONS.iter().map(read).collect()
});

/// A printed number, with its standard deviation where the report prints one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Printed {
    pub value: f64,
    pub deviation: Option<f64>,
}

/// Returns the value under a name: a number, several, or a table of them. The last part of a
/// name may be an index, such as that of the median of a box.
fn find(name: &str) -> Option<&'static Value> {
    let mut parts = name.split('.');
    let first = PRINTED.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        Value::Array(values) => values.get(part.parse::<usize>().ok()?),
        value => value.as_table()?.get(part),
    })
}

fn unknown(name: &str) -> String {
    format!("cannot find {name}: no report prints it")
}

fn as_number(value: &Value) -> Option<f64> {
    let whole = value.as_integer().map(|whole| whole as f64);
    whole.or_else(|| value.as_float())
}

/// Returns the printed numbers under one name, such as the quartiles of a box.
fn numbers(name: &str) -> Result<Vec<f64>, String> {
    let found = find(name).ok_or_else(|| unknown(name))?;
    let all = match found {
        Value::Array(values) => values.iter().map(as_number).collect(),
        one => as_number(one).map(|number| vec![number]),
    };
    all.ok_or_else(|| format!("cannot use {name} as a number: it is a table of numbers"))
}

/// Returns the number under a name, with its deviation.
pub(super) fn printed(name: &str) -> Result<Printed, String> {
    match numbers(name)?[..] {
        [value] => Ok(value.into()),
        [value, deviation] => Ok(Printed {
            value,
            deviation: Some(deviation),
        }),
        ref all => Err(format!(
            "cannot use {name} as a number: it has {} numbers",
            all.len()
        )),
    }
}

/// Returns the printed number of each column; `None` for a column without one.
pub(super) fn by_column(name: &str, columns: &[&str]) -> Result<Vec<Option<Printed>>, String> {
    let table = find(name).ok_or_else(|| unknown(name))?;
    let table = table.as_table();
    let table = table.ok_or_else(|| format!("cannot use {name}: it has no columns"))?;
    let of_column = |column: &&str| {
        let is_there = table.contains_key(*column);
        is_there
            .then(|| printed(&format!("{name}.{column}")))
            .transpose()
    };
    let printed = columns.iter().map(of_column);
    let printed = printed.collect::<Result<Vec<_>, _>>()?;
    if printed.iter().all(Option::is_none) {
        Err(format!(
            "cannot use {name}: no condition names one of its columns"
        ))
    } else {
        Ok(printed)
    }
}

/// Computes an expression of numbers and names.
pub(super) fn evaluate(text: &str) -> Result<f64, String> {
    if text.matches('(').count() > PARENTHESES_MAX {
        return Err(format!(
            "cannot compute: over {PARENTHESES_MAX} parentheses"
        ));
    }
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let mut tokens = spaced.split_whitespace().peekable();
    let value = sum(&mut tokens)?;
    match tokens.next() {
        None if value.is_finite() => Ok(value),
        None => Err(format!("cannot compute {text:?}: it is not a number")),
        Some(token) => Err(format!(
            "cannot compute {text:?}: {token:?} does not belong there"
        )),
    }
}

type Tokens<'a, 'b> = &'a mut std::iter::Peekable<std::str::SplitWhitespace<'b>>;

fn sum(tokens: Tokens) -> Result<f64, String> {
    let mut value = product(tokens)?;
    while let Some(sign) = tokens.next_if(|token| ["+", "-"].contains(token)) {
        let next = product(tokens)?;
        value += if sign == "+" { next } else { -next };
    }
    Ok(value)
}

fn product(tokens: Tokens) -> Result<f64, String> {
    let mut value = factor(tokens)?;
    while let Some(sign) = tokens.next_if(|token| ["*", "/"].contains(token)) {
        let next = factor(tokens)?;
        value *= if sign == "*" { next } else { 1.0 / next };
    }
    Ok(value)
}

fn factor(tokens: Tokens) -> Result<f64, String> {
    match tokens.next() {
        None => Err("cannot compute: a number or a name is missing".to_owned()),
        Some("(") => {
            let value = sum(tokens)?;
            match tokens.next() {
                Some(")") => Ok(value),
                _ => Err("cannot compute: a parenthesis is not closed".to_owned()),
            }
        }
        Some(token) => match token.parse() {
            Ok(number) => Ok(number),
            Err(_) => Ok(printed(token)?.value),
        },
    }
}

/// A published value in an experiment file: a number, a size, a name or an expression.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Level")]
pub(super) struct Published(pub Printed);

impl TryFrom<Level> for Published {
    type Error = String;

    fn try_from(level: Level) -> Result<Self, String> {
        let printed = match level.number {
            Some(value) => Ok(value.into()),
            None if find(&level.text).is_some() => printed(&level.text),
            None => evaluate(&level.text).map(Printed::from),
        };
        let advise = |why| {
            format!("{why}; give a number, a size, or the name of a number that a report prints")
        };
        printed.map(Self).map_err(advise)
    }
}

impl From<f64> for Printed {
    fn from(value: f64) -> Self {
        Self {
            value,
            deviation: None,
        }
    }
}

/// Reads a published value.
pub(super) fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let published = Option::<Published>::deserialize(from)?;
    Ok(published.map(|Published(printed)| printed.value))
}

/// Reads two published values.
pub(super) fn pair<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(f64, f64)>, D::Error> {
    let pair = Option::<(Published, Published)>::deserialize(from)?;
    Ok(pair.map(|(Published(one), Published(other))| (one.value, other.value)))
}

/// Several published values: typed, or the name under which a report prints them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "cannot read published values: they must be numbers or a name"
)]
pub(super) enum Several {
    Typed(Vec<f64>),
    One(f64),
    Named(String),
}

impl Default for Several {
    fn default() -> Self {
        Self::Typed(Vec::new())
    }
}

/// Reads one published value or several, such as those of a box.
pub(super) fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    match Several::deserialize(from)? {
        Several::Typed(values) => Ok(values),
        Several::One(value) => Ok(vec![value]),
        Several::Named(name) => numbers(&name).map_err(D::Error::custom),
    }
}

/// Reads published points: typed pairs, or the name of a table from x to y.
pub(super) fn points<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "cannot read published points: they must be pairs or a name"
    )]
    enum Points {
        Typed(Vec<(Level, f64)>),
        Named(String),
    }
    let typed = match Points::deserialize(from)? {
        Points::Typed(points) => points,
        Points::Named(name) => table_of_points(&name).map_err(D::Error::custom)?,
    };
    let points = typed.into_iter().map(|(x, y)| Ok((x.to_number()?, y)));
    let mut points = points.collect::<Result<Vec<_>, D::Error>>()?;
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(points)
}

fn table_of_points(name: &str) -> Result<Vec<(Level, f64)>, String> {
    let table = find(name).ok_or_else(|| unknown(name))?.as_table();
    let table = table.ok_or_else(|| format!("cannot draw {name}: it is not a table"))?;
    let point = |x: &String| Ok((Level::new(x), printed(&format!("{name}.{x}"))?.value));
    table.keys().map(point).collect()
}

/// Replaces each expression in braces in a text by its value.
pub(super) fn filled(text: &str) -> Result<String, String> {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part
            .split_once('}')
            .ok_or_else(|| format!("cannot fill in {text:?}: a brace is not closed"))?;
        filled += &format::significant(evaluate(expression)?);
        filled += rest;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transcription_holds_numbers() {
        fn check(name: &str, value: &Value) -> usize {
            match value {
                Value::Table(table) => {
                    assert!(!table.is_empty(), "{name}");
                    let inner = table.iter();
                    inner
                        .map(|(key, one)| check(&format!("{name}.{key}"), one))
                        .sum()
                }
                _ => numbers(name).unwrap().len(),
            }
        }
        let all = PRINTED.iter().map(|(name, one)| check(name, one));
        assert!(all.sum::<usize>() > 400);
    }

    #[test]
    fn an_expression_computes_with_printed_numbers() {
        for (text, value) in [
            ("meowlab.time.cat3 / meowlab.time.cat2", 707.2 / 775.1),
            (
                "1 - virtual-device.large.sync.mmap-mmap / virtual-device.large.sync.fcntl-fcntl",
                1.0 - 15049.3584 / 24996.9545,
            ),
            ("(lab-8-9.user.10 - 247) * 2", 6000.0),
            ("2 * 3 + 4 / 8", 6.5),
            ("cs380l.figure-6.major-faults.private-modified", 10.6),
            ("virtual-device.box.4.mmap-mmap.2", 0.0313),
        ] {
            assert_eq!(evaluate(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_no_report_prints_is_an_error() {
        for (text, why) in [
            (
                "meowlab.time.cat9",
                "cannot find meowlab.time.cat9: no report prints it",
            ),
            ("meowlab.time", "it is a table"),
            ("virtual-device.box.4.mmap-mmap", "it has 5 numbers"),
            ("meowlab.time.cat2 /", "is missing"),
            (
                "meowlab.time.cat2 meowlab.time.cat3",
                "does not belong there",
            ),
            ("(meowlab.time.cat2", "not closed"),
            ("1 / 0", "it is not a number"),
            ("nan", "it is not a number"),
            (&"(".repeat(1_000_000), "over 64 parentheses"),
        ] {
            let error = evaluate(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn braces_of_a_text_hold_expressions() {
        let text = "{lab-8-9.system-call.10 / lab-8-9.module.10} of its time";
        assert_eq!(filled(text).unwrap(), "0.813 of its time");
        assert!(filled("{lab-8-9.user.10").is_err());
    }
}
