//! Reads the timing file of `script --log-timing`.
//!
//! Each line of the classic form has a delay and a number of bytes. In the other form
//! (util-linux 2.35 and later), a letter precedes them: `O` for output, `I` for input,
//! `S` for signals (SIGWINCH with the new size) and `H` for facts (script(1),
//! scriptreplay(1)).

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Output(usize),
    Input(usize),
    Resize { columns: usize, lines: usize },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    /// Each step with its time, in nanoseconds since the start.
    pub(super) steps: Vec<(u64, Step)>,
    pub(super) facts: BTreeMap<String, String>,
}

impl Timing {
    /// Reads a timing file. The error names the first line that has neither of the two
    /// forms.
    pub fn parse(file: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(file);
        let mut timing = Self::default();
        let mut now_ns = 0_u64;
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            timing.take(line, &mut now_ns).ok_or_else(|| {
                let shown: String = line.chars().take(40).collect();
                format!(
                    "line {} is {shown:?}; expected a delay in seconds and a number of bytes, \
                     as script --log-timing writes them",
                    index + 1
                )
            })?;
        }
        Ok(timing)
    }

    fn take(&mut self, line: &str, now_ns: &mut u64) -> Option<()> {
        let (first, rest) = line.split_once(' ')?;
        let has_letter = first.len() == 1 && first.chars().all(|c| c.is_ascii_uppercase());
        let (letter, delay, rest) = if has_letter {
            let (delay, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (first, delay, rest)
        } else {
            ("O", first, rest)
        };
        *now_ns = now_ns.saturating_add(nanoseconds(delay)?);
        let step = match letter {
            "O" => Step::Output(rest.trim().parse().ok()?),
            "I" => Step::Input(rest.trim().parse().ok()?),
            "S" => match size(rest) {
                Some((columns, lines)) => Step::Resize { columns, lines },
                None => return Some(()),
            },
            "H" => {
                let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                self.facts.insert(name.to_owned(), value.to_owned());
                return Some(());
            }
            _ => return None,
        };
        self.steps.push((*now_ns, step));
        Some(())
    }

    /// Returns whether input is in the same file as output.
    pub(super) fn is_mixed(&self) -> bool {
        let logs = (self.facts.get("INPUT_LOG"), self.facts.get("OUTPUT_LOG"));
        matches!(logs, (Some(input), Some(output)) if input == output)
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.facts.get(name)?.parse().ok()
    }
}

/// Parses `SIGWINCH ROWS=30 COLS=100`, and returns columns and lines.
fn size(text: &str) -> Option<(usize, usize)> {
    let value = |name: &str| {
        let mut words = text.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.parse().ok())
    };
    let size = (value("COLS=")?, value("ROWS=")?);
    (size.0 > 0 && size.1 > 0).then_some(size)
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(decimals) {
        return None;
    }
    let decimals = &decimals[..decimals.len().min(9)];
    let fraction: u64 = format!("{decimals:0<9}").parse().ok()?;
    let whole: u64 = seconds.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let classic = Timing::parse(b"0.010126 3\n1.5 40\n").unwrap();
        assert_eq!(
            classic.steps,
            [
                (10_126_000, Step::Output(3)),
                (1_510_126_000, Step::Output(40))
            ]
        );
        let other = Timing::parse(
            b"H 0.000000 COLUMNS 80\nH 0.000000 INPUT_LOG t\nH 0.000000 OUTPUT_LOG t\n\
              O 0.002066 3\nI 0.1 7\nS 0.195220 SIGWINCH ROWS=30 COLS=100\nS 0.1 SIGTSTP\n",
        )
        .unwrap();
        assert!(other.is_mixed());
        assert_eq!(other.number("COLUMNS"), Some(80));
        let resize = Step::Resize {
            columns: 100,
            lines: 30,
        };
        assert_eq!(
            other.steps,
            [
                (2_066_000, Step::Output(3)),
                (102_066_000, Step::Input(7)),
                (297_286_000, resize)
            ]
        );
    }

    #[test]
    fn what_is_no_timing_is_refused_with_its_line() {
        let error = Timing::parse(b"0.1 3\nhello\n").unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("hello"),
            "{error}"
        );
        assert!(Timing::parse(b"x 3").is_err());
        assert!(Timing::parse(b"0.1 x").is_err());
        assert!(Timing::parse(b"99999999999999999999 3").is_err());
    }
}
