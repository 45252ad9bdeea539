//! Spellings that users bring from hyperfine.

use std::ffi::OsString;

/// Rewrites hyperfine's `-L NAME LEVELS` and `-P NAME MIN MAX [-D STEP]` into
/// the one-word forms that the parser takes. Leaves all other arguments unchanged.
pub fn normalise(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let input: Vec<OsString> = arguments.into_iter().collect();
    // After these verbs comes a command or another program's arguments, whose options differ.
    const WITH_OTHER_OPTIONS: [&str; 4] = ["guest", "mount", "observe", "trace"];
    if verb(&input).is_some_and(|verb| WITH_OTHER_OPTIONS.iter().any(|other| verb == *other)) {
        return input;
    }
    let mut input = input.into_iter().peekable();
    let mut output: Vec<OsString> = Vec::new();
    // A step may come before or after its range.
    let mut step: Option<OsString> = None;
    let mut scan: Option<usize> = None;
    while let Some(argument) = input.next() {
        let text = argument.to_str().unwrap_or_default();
        match text {
            "--" => {
                output.push(argument);
                output.extend(input);
                break;
            }
            "-L" | "--parameter-list" | "-P" | "--parameter-scan" => {
                let is_scan = matches!(text, "-P" | "--parameter-scan");
                output.push(argument);
                let Some(name) = input.next() else {
                    break;
                };
                if name.to_str().is_none_or(|name| name.contains('=')) {
                    output.push(name);
                    continue;
                }
                let mut word = name;
                if let Some(levels) = input.next() {
                    word.push("=");
                    word.push(levels);
                }
                if is_scan && let Some(max) = input.next() {
                    word.push("..");
                    word.push(max);
                    scan = Some(output.len());
                }
                output.push(word);
            }
            "-D" | "--parameter-step-size" => step = input.next(),
            _ => output.push(argument),
        }
    }
    match (scan, step) {
        (Some(place), Some(step)) => {
            output[place].push("+");
            output[place].push(step);
        }
        // A step without a range is a mistake that the parser will report.
        (None, Some(step)) => output.extend(["-D".into(), step]),
        _ => {}
    }
    output
}

/// The first word that is neither an option nor the value of one.
fn verb(arguments: &[OsString]) -> Option<&OsString> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--store") => _ = rest.next(),
            Some(text) if text.starts_with('-') => {}
            _ => return Some(argument),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        let words = input.split_whitespace().map(OsString::from);
        let normalised: Vec<_> = normalise(words)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        assert_eq!(normalised.join(" "), expected);
    }

    #[test]
    fn hyperfines_lists_and_scans_become_one_word() {
        check("toll run -L size 4k,64k cmd", "toll run -L size=4k,64k cmd");
        check("toll run -P n 1 10 cmd", "toll run -P n=1..10 cmd");
        check("toll run -D 2 -P n 1 10 cmd", "toll run -P n=1..10+2 cmd");
        check("toll run -P n 1 10 -D 2 cmd", "toll run -P n=1..10+2 cmd");
    }

    #[test]
    fn tolls_own_forms_stay() {
        check("toll run -L size=4k,64k cmd", "toll run -L size=4k,64k cmd");
        check("toll run -P n=1..8*2 cmd", "toll run -P n=1..8*2 cmd");
        check("toll run -- -L size 4k", "toll run -- -L size 4k");
        check("toll run -L", "toll run -L");
        check("toll run -D 2", "toll run -D 2");
    }

    #[test]
    fn the_options_of_a_traced_command_are_its_own() {
        check("toll trace grep -P a b -D 2", "toll trace grep -P a b -D 2");
        check(
            "toll --store x trace f -L a b",
            "toll --store x trace f -L a b",
        );
        check(
            "toll --store=x trace f -L a b",
            "toll --store=x trace f -L a b",
        );
    }
}
