//! How long a tool needs for a right decision.

use std::fmt;

use toll_stats::median;

use super::tool::answer_at;
use super::{Answer, Comparison, Condition, Document, LEVEL, POWER, Tool};

/// What trying longer and longer settings came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Search {
    /// The first setting that was right often enough.
    Found {
        setting: String,
        right: usize,
        of: usize,
        seconds: f64,
    },
    /// The longest setting that was tried was not.
    Over { setting: String, seconds: f64 },
    /// None was tried to its end.
    Nothing,
}

impl Search {
    /// Goes through the settings of a tool, Welch's test at a level.
    pub(super) fn of(
        document: &Document,
        tool: Tool,
        condition: Condition,
        difference: u32,
        level: f64,
    ) -> Search {
        let made = of(document, tool, condition, difference);
        let mut settings: Vec<&str> = Vec::new();
        for comparison in &made {
            if !settings.contains(&comparison.setting.as_str()) {
                settings.push(&comparison.setting);
            }
        }
        let mut search = Search::Nothing;
        for setting in settings {
            let at: Vec<&Comparison> = made
                .iter()
                .filter(|it| it.setting == setting)
                .copied()
                .collect();
            let right = at.iter().filter(|it| is_right(it, level)).count();
            let seconds = median_s(&at);
            let setting = setting.to_owned();
            if at.len() - right > wrong_max(document.different) {
                search = Search::Over { setting, seconds };
            } else if at.len() >= document.different {
                let of = at.len();
                return Search::Found {
                    setting,
                    right,
                    of,
                    seconds,
                };
            }
        }
        search
    }

    /// How long the decision took, if there was one.
    pub(super) fn seconds(&self) -> Option<f64> {
        match self {
            Search::Found { seconds, .. } => Some(*seconds),
            _ => None,
        }
    }

    /// This time over another, and whether it is at most half, in words.
    pub(super) fn beside(&self, other: &Search) -> (String, &'static str) {
        let (Some(own), other_s) = (self.seconds(), other.least_seconds()) else {
            return ("–".to_owned(), "–");
        };
        let Some(other_s) = other_s else {
            return ("–".to_owned(), "–");
        };
        let ratio = own / other_s;
        match other {
            Search::Found { .. } if ratio <= 0.5 => (format!("{ratio:.2}"), "yes"),
            Search::Found { .. } => (format!("{ratio:.2}"), "no"),
            // The other takes longer than it was given, so the ratio is less.
            _ if ratio <= 0.5 => (format!("under {ratio:.2}"), "yes"),
            _ => (format!("under {ratio:.2}"), "–"),
        }
    }

    fn least_seconds(&self) -> Option<f64> {
        match self {
            Search::Found { seconds, .. } | Search::Over { seconds, .. } => Some(*seconds),
            Search::Nothing => None,
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |setting: &str| match setting {
            "" => "defaults".to_owned(),
            setting => format!("`{setting}`"),
        };
        match self {
            Search::Found {
                setting,
                right,
                of,
                seconds,
            } => write!(
                formatter,
                "{seconds:.2} s, {}, {right} of {of}",
                shown(setting)
            ),
            Search::Over { setting, seconds } => {
                write!(formatter, "over {seconds:.2} s, {}", shown(setting))
            }
            Search::Nothing => formatter.write_str("–"),
        }
    }
}

/// Comparisons that may be wrong at a setting that is long enough.
pub(super) fn wrong_max(different: usize) -> usize {
    (different as f64 * (1.0 - POWER) + 1e-9) as usize
}

/// Whether a comparison of different commands found the second to take longer,
/// Welch's test at a level.
pub(super) fn is_right(comparison: &Comparison, level: f64) -> bool {
    let answer = match comparison.p {
        Some(p) => answer_at(p, comparison.ratio, level),
        None => comparison.answer,
    };
    answer == Answer::Longer
}

/// The level at which hyperfine's comparisons of identical commands would have
/// raised no more false alarms than the level promises: that level itself where
/// they did not.
pub(super) fn calibrated_level(document: &Document, condition: Condition) -> f64 {
    let mut ps: Vec<f64> = of(document, Tool::Hyperfine, condition, 0)
        .iter()
        .filter_map(|comparison| comparison.p)
        .collect();
    ps.sort_by(f64::total_cmp);
    let allowed = (LEVEL * ps.len() as f64) as usize;
    ps.get(allowed).map_or(LEVEL, |p| p.min(LEVEL))
}

/// The comparisons of a tool under a condition of commands that differ by so much.
pub(super) fn of(
    document: &Document,
    tool: Tool,
    condition: Condition,
    difference: u32,
) -> Vec<&Comparison> {
    let is_one = |it: &&Comparison| {
        it.tool == tool && it.condition == condition && it.difference_percent == difference
    };
    document.comparisons.iter().filter(is_one).collect()
}

/// Median time of comparisons, in seconds.
pub(super) fn median_s(comparisons: &[&Comparison]) -> f64 {
    let seconds: Vec<f64> = comparisons.iter().map(|it| it.wall_s).collect();
    median(&seconds)
}
