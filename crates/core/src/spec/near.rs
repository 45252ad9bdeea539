//! Suggestions for mistyped names.

/// Smallest likeness of two names, from 0 to 1, at which one may be a typing error for the
/// other.
const LIKENESS_MIN: f64 = 0.8;

/// Returns the name that is most similar to a word, if one is similar enough.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase());
    let rated = names.into_iter().map(|name| (likeness(name), name));
    let near = rated.filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    let best = near.max_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, name)| name)
}

/// Returns the nearest name as the end of a message; empty if there is none.
pub fn suggestion<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let names = ["sweep", "write", "duration_ns", "64KiB"];
        for (word, meant) in [
            ("swep", "sweep"),
            ("wirte", "write"),
            ("durtion_ns", "duration_ns"),
            ("duration", "duration_ns"),
            ("64kib", "64KiB"),
        ] {
            assert_eq!(nearest(word, names), Some(meant));
        }
        for word in ["true", "ls", "", "throughput"] {
            assert_eq!(nearest(word, names), None, "{word}");
        }
    }
}
