//! Levels set on the command line: `-L buffer=4k,64k`, `-P threads=1..8`.

use super::level::{Factor, Level, Range};
use super::{Experiment, Selector, SpecError};

/// Levels for one factor, replacing the experiment's.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelOverride {
    /// Factor, or fixed parameter that becomes one.
    pub name: String,
    pub levels: Vec<Level>,
    /// Whether the levels are byte sizes even if their texts have no unit.
    pub is_size: bool,
}

/// Reads `NAME=a,b,c` or `NAME=FROM..TO`; `*FACTOR`, `+STEP` or `/POINTS` may follow a
/// range. A range without any of these steps by 1.
pub fn parse_override(text: &str) -> Result<LevelOverride, String> {
    let Some((name, levels)) = text.split_once('=') else {
        return Err(format!(
            "cannot set levels from {text:?}: expected NAME=LEVEL,LEVEL or NAME=FROM..TO"
        ));
    };
    let (levels, is_size) = match levels.split_once("..") {
        Some((from, rest)) => range(from, rest)?.levels()?,
        None => (
            split_commas(levels)
                .iter()
                .map(|text| Level::new(text))
                .collect(),
            false,
        ),
    };
    // Checked here, so that a mistake is reported before any file is read.
    Factor::new(name, levels.clone(), is_size)?;
    Ok(LevelOverride {
        name: name.to_owned(),
        levels,
        is_size,
    })
}

fn range(from: &str, rest: &str) -> Result<Range, String> {
    let at = rest.find(['*', '+', '/']);
    let (to, step) = at.map_or((rest, None), |at| (&rest[..at], Some(&rest[at..])));
    let mut range = Range {
        from: Level::new(from),
        to: Level::new(to),
        times: None,
        step: None,
        points: None,
        scale: None,
    };
    let wrong =
        || format!("cannot read the range {from}..{rest}: end it with *FACTOR, +STEP or /POINTS");
    match step.map(|step| step.split_at(1)) {
        None => range.step = Some(Level::new("1")),
        Some(("*", factor)) => range.times = Some(factor.parse().map_err(|_| wrong())?),
        Some(("+", step)) => range.step = Some(Level::new(step)),
        Some((_, points)) => range.points = Some(points.parse().map_err(|_| wrong())?),
    }
    Ok(range)
}

/// Splits at commas; `\,` is a comma inside a level, as in hyperfine.
fn split_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.last_mut().expect("starts with one part");
        match character {
            '\\' if characters.peek() == Some(&',') => last.extend(characters.next()),
            ',' => parts.push(String::new()),
            _ => last.push(character),
        }
    }
    parts
}

/// Replaces levels of an experiment's factors. A fixed parameter of that name becomes
/// a factor, and for a command any name may become one. Drops twins and the reference
/// if they name levels that no longer exist.
pub fn apply_levels(
    experiment: &mut Experiment,
    overrides: &[LevelOverride],
) -> Result<(), SpecError> {
    for chosen in overrides {
        let wrong = |message: String| SpecError {
            origin: experiment.name.clone(),
            line: None,
            message,
        };
        let factor =
            Factor::new(&chosen.name, chosen.levels.clone(), chosen.is_size).map_err(wrong)?;
        if let Some(existing) = experiment
            .factors
            .iter_mut()
            .find(|f| f.name == chosen.name)
        {
            let is_size = existing.is_size && factor.levels.iter().all(|l| l.number.is_some());
            *existing = factor;
            existing.is_size |= is_size;
        } else if experiment
            .workload
            .parameters
            .remove(&chosen.name)
            .is_some()
            || experiment.is_of_guest(&chosen.name)
            || (experiment.rows.is_empty() && experiment.workload.kind.has(&chosen.name))
        {
            if let Some(guest) = &mut experiment.guest {
                guest.vary(&chosen.name);
            }
            experiment.factors.push(factor);
        } else {
            let known: Vec<_> = experiment.factors.iter().map(|f| f.name.as_str()).collect();
            return Err(wrong(format!(
                "cannot set levels of {}: the experiment has no such factor; it has {}",
                chosen.name,
                known.join(", ")
            )));
        }
    }
    // A user who names levels wants to measure them, even if no claim needs them.
    experiment.run.claims_only &= overrides.is_empty();
    let factors = experiment.factors.clone();
    let exists = |selector: &Selector| {
        selector.iter().all(|(name, level)| {
            factors
                .iter()
                .find(|factor| factor.name == *name)
                .is_none_or(|factor| factor.find(level).is_some())
        })
    };
    experiment.twins.retain(&exists);
    experiment.reference = experiment.reference.take().filter(&exists);
    super::validate::check(experiment).map_err(|problem| SpecError {
        origin: experiment.name.clone(),
        line: None,
        message: problem.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let parsed = parse_override(text).unwrap();
        parsed.levels.into_iter().map(|level| level.text).collect()
    }

    #[test]
    fn lists_keep_their_texts() {
        assert_eq!(texts("size=4k,64k"), ["4k", "64k"]);
        assert_eq!(texts(r"word=a\,b,c"), ["a,b", "c"]);
    }

    #[test]
    fn ranges_multiply_step_or_spread() {
        assert_eq!(texts("n=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(texts("size=4k..16k*2"), ["4096", "8192", "16384"]);
        assert_eq!(texts("n=0..10+5"), ["0", "5", "10"]);
        assert_eq!(texts("n=1..100/3"), ["1", "10", "100"]);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in [
            "size", "=1,2", "a b=1", "n=1..x", "n=5..1", "n=1,1", "n=1..4*1",
        ] {
            assert!(parse_override(text).is_err(), "{text}");
        }
    }
}
