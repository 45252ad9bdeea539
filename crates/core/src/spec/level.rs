//! Factors and their levels.

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use toll_wire::quantity::{format_size, has_size_unit, parse_share, parse_size};

/// Maximum number of levels that one factor may have. A range that yields more levels has wrong
/// bounds.
pub const LEVELS_MAX: usize = 1000;

/// One value of a factor. In an experiment file it is a number or a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenLevel")]
#[schemars(!from)]
pub struct Level {
    /// The value as given, which command templates receive.
    pub text: String,
    /// The value as a number (bytes for a size); `None` if it is not a number.
    pub number: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a text")]
enum WrittenLevel {
    Integer(i64),
    Float(f64),
    Text(String),
    Stored { text: String, number: Option<f64> },
}

impl From<WrittenLevel> for Level {
    fn from(written: WrittenLevel) -> Self {
        match written {
            WrittenLevel::Integer(value) => Self::new(&value.to_string()),
            WrittenLevel::Float(value) => Self::new(&value.to_string()),
            WrittenLevel::Text(text) => Self::new(&text),
            WrittenLevel::Stored { text, number } => Self { text, number },
        }
    }
}

/// Reads a share, `5%` or 0.05.
pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let level = Option::<Level>::deserialize(from)?;
    let share = level.map(|level| parse_share(&level.text).map_err(D::Error::custom));
    share.transpose()
}

/// Reads a required share.
pub(super) fn one_share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    share(from)?.ok_or_else(|| D::Error::custom("cannot read a share: it is missing"))
}

impl Level {
    /// Returns the value as a number, for a serde reader.
    pub(super) fn to_number<E: Error>(&self) -> Result<f64, E> {
        let cannot = || E::custom(format!("cannot read {} as a number or size", self.text));
        self.number.ok_or_else(cannot)
    }

    /// Reads a level from its text.
    pub fn new(text: &str) -> Self {
        let number = match parse_size(text) {
            Ok(bytes) => Some(bytes as f64),
            Err(_) => text.trim().parse::<f64>().ok().filter(|n| n.is_finite()),
        };
        Self {
            text: text.to_owned(),
            number,
        }
    }

    /// Whether two texts mean the same level: `4k` and `4KiB` do.
    pub fn same(&self, other: &Level) -> bool {
        match (self.number, other.number) {
            (Some(a), Some(b)) => a == b,
            _ => self.text == other.text,
        }
    }
}

/// A factor, with its levels in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    pub name: String,
    /// Levels of the factor, at least one, all different.
    pub levels: Vec<Level>,
    /// Whether the levels are byte sizes.
    pub is_size: bool,
}

impl Factor {
    /// Makes a factor. Its levels are sizes if all are numbers and one has a unit, or if
    /// `force_size` is set.
    pub fn new(name: &str, levels: Vec<Level>, force_size: bool) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "cannot use factor name {name:?}: use letters, digits, '_' and '-'"
            ));
        }
        if levels.is_empty() {
            return Err(format!("cannot vary {name}: it has no levels"));
        }
        if levels.len() > LEVELS_MAX {
            return Err(format!(
                "cannot vary {name}: {} levels exceed the limit of {LEVELS_MAX}",
                levels.len()
            ));
        }
        for (i, level) in levels.iter().enumerate() {
            if levels[..i].iter().any(|other| other.same(level)) {
                return Err(format!(
                    "cannot vary {name}: level {} is given twice",
                    level.text
                ));
            }
        }
        let all_numbers = levels.iter().all(|level| level.number.is_some());
        let is_size =
            all_numbers && (force_size || levels.iter().any(|level| has_size_unit(&level.text)));
        Ok(Self {
            name: name.to_owned(),
            levels,
            is_size,
        })
    }

    /// Returns the label of a level for people: sizes in their largest exact unit.
    pub fn label(&self, level: &Level) -> String {
        match level.number {
            Some(bytes) if self.is_size => format_size(bytes as u64),
            _ => level.text.clone(),
        }
    }

    /// Returns the factor's level that means the same as `wanted`, if there is one.
    pub fn find(&self, wanted: &Level) -> Option<&Level> {
        self.levels.iter().find(|level| level.same(wanted))
    }
}

/// Levels as an experiment file gives them.
#[derive(Debug)]
pub(super) enum Levels {
    List(Vec<Level>),
    Range(Range),
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = Levels;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of levels, or a range: from, to and one of times, step or points")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Levels, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Levels::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, range: A) -> Result<Levels, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(range)).map(Levels::Range)
    }
}

impl Levels {
    /// Returns the levels, and whether they are sizes even if their texts have no unit.
    pub fn read(&self) -> Result<(Vec<Level>, bool), String> {
        match self {
            Self::List(list) => Ok((list.clone(), false)),
            Self::Range(range) => range.levels(),
        }
    }
}

/// A range of levels: from, to, and how to step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub from: Level,
    /// Last level; included if a step leads exactly to it.
    pub to: Level,
    /// Factor from one level to the next.
    pub times: Option<f64>,
    /// Difference from one level to the next.
    pub step: Option<Level>,
    /// Number of levels, evenly spaced on `scale`, both ends included.
    pub points: Option<usize>,
    /// Spacing of `points`: logarithmic by default.
    pub scale: Option<Scale>,
}

/// Spacing of a range's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Log,
    Linear,
}

impl Range {
    /// Returns the levels of the range, and whether its bounds were written as sizes.
    pub fn levels(&self) -> Result<(Vec<Level>, bool), String> {
        let bound = |level: &Level| {
            let cannot = || {
                format!(
                    "cannot make a range: {} is not a number or size",
                    level.text
                )
            };
            level.number.ok_or_else(cannot)
        };
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        let is_size = has_size_unit(&self.from.text) || has_size_unit(&self.to.text);
        let numbers = match (self.times, &self.step, self.points) {
            (Some(times), None, None) => multiplied(from, to, times)?,
            (None, Some(step), None) => stepped(from, to, bound(step)?)?,
            (None, None, Some(points)) => {
                spaced(from, to, points, self.scale.unwrap_or(Scale::Log))?
            }
            _ => {
                return Err("cannot make a range: give one of `times`, `step` and `points`".into());
            }
        };
        let mut levels: Vec<Level> = Vec::with_capacity(numbers.len());
        for number in numbers {
            let number = if is_size { number.round() } else { number };
            let level = Level::new(&number.to_string());
            if levels.last().is_none_or(|last| !last.same(&level)) {
                levels.push(level);
            }
        }
        Ok((levels, is_size))
    }
}

fn multiplied(from: f64, to: f64, times: f64) -> Result<Vec<f64>, String> {
    if !(times > 1.0 && from > 0.0 && to >= from) {
        return Err(
            "cannot make a range: `times` must be above 1, `from` above 0, and `to` not below \
             `from`"
                .into(),
        );
    }
    Ok(collect_while(to, (0..).map(|i| from * times.powi(i))))
}

fn stepped(from: f64, to: f64, step: f64) -> Result<Vec<f64>, String> {
    if !(step > 0.0 && to >= from) {
        return Err(
            "cannot make a range: `step` must be above 0, and `to` not below `from`".into(),
        );
    }
    Ok(collect_while(to, (0..).map(|i| from + step * f64::from(i))))
}

/// Collects numbers up to `to`, but at most one more than a factor may have levels. The factor then
/// refuses them.
fn collect_while(to: f64, numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let last = to * (1.0 + 1e-9);
    numbers
        .take_while(|number| *number <= last)
        .take(LEVELS_MAX + 1)
        .collect()
}

fn spaced(from: f64, to: f64, points: usize, scale: Scale) -> Result<Vec<f64>, String> {
    if !(2..=LEVELS_MAX).contains(&points) || to <= from {
        return Err(format!(
            "cannot make a range: `points` must be 2 to {LEVELS_MAX}, and `to` above `from`"
        ));
    }
    if scale == Scale::Log && from <= 0.0 {
        return Err("cannot make a range: a logarithmic range starts above 0".into());
    }
    let share = |i: usize| i as f64 / (points - 1) as f64;
    Ok((0..points)
        .map(|i| match scale {
            Scale::Log => from * (to / from).powf(share(i)),
            Scale::Linear => from + (to - from) * share(i),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: &str, to: &str) -> Range {
        Range {
            from: Level::new(from),
            to: Level::new(to),
            times: None,
            step: None,
            points: None,
            scale: None,
        }
    }

    fn numbers(range: &Range) -> Vec<f64> {
        let (levels, _) = range.levels().unwrap();
        levels.iter().map(|level| level.number.unwrap()).collect()
    }

    #[test]
    fn a_doubling_range_includes_both_ends() {
        let mut doubling = range("4KiB", "64KiB");
        doubling.times = Some(2.0);
        assert_eq!(
            numbers(&doubling),
            [4096.0, 8192.0, 16384.0, 32768.0, 65536.0]
        );
        assert!(doubling.levels().unwrap().1, "its levels are sizes");
    }

    #[test]
    fn a_linear_step_stops_at_the_last_level_inside() {
        let mut linear = range("1", "10");
        linear.step = Some(Level::new("4"));
        assert_eq!(numbers(&linear), [1.0, 5.0, 9.0]);
    }

    #[test]
    fn points_are_spaced_on_their_scale() {
        let mut points = range("1", "100");
        points.points = Some(3);
        assert_eq!(numbers(&points), [1.0, 10.0, 100.0]);
        points.scale = Some(Scale::Linear);
        assert_eq!(numbers(&points), [1.0, 50.5, 100.0]);
    }

    #[test]
    fn a_range_without_sense_is_refused() {
        assert!(range("1", "10").levels().is_err(), "there is no step");
        let mut backwards = range("10", "1");
        backwards.times = Some(2.0);
        assert!(backwards.levels().is_err());
        let mut endless = range("1", "10");
        endless.times = Some(1.0);
        assert!(endless.levels().is_err());
        let mut words = range("small", "large");
        words.points = Some(3);
        assert!(words.levels().is_err());
    }

    #[test]
    fn levels_that_mean_the_same_are_refused() {
        let levels = vec![Level::new("4k"), Level::new("4096")];
        let error = Factor::new("size", levels, false).unwrap_err();
        assert!(error.contains("twice"), "{error}");
    }

    #[test]
    fn labels_show_sizes_and_commands_get_the_text_as_given() {
        let factor =
            Factor::new("size", vec![Level::new("4k"), Level::new("65536")], false).unwrap();
        assert_eq!(factor.label(&factor.levels[0]), "4KiB");
        assert_eq!(factor.label(&factor.levels[1]), "64KiB");
        assert_eq!(factor.levels[0].text, "4k");
    }
}
