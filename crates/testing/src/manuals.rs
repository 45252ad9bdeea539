//! Manual pages beside the help of the programs that they describe.

use std::collections::BTreeSet;
use std::path::Path;

/// Panics unless the manual page of `program` in docs/man describes exactly the long options
/// that `help` describes.
#[track_caller]
pub fn assert_manual_has_options_of(program: &str, help: &str) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = project.join(format!("docs/man/{program}.1"));
    let manual = std::fs::read_to_string(&page).expect("the program has a manual page");
    let manual = manual.replace(r"\-", "-");
    assert_eq!(described(&manual), described(help), "{program}");
}

/// Long options that begin a line, or follow a short one there. Other lines also name options
/// of other programs.
fn described(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let lines = text.lines().map(str::trim_start);
    lines
        .map(|line| line.strip_prefix(".B ").unwrap_or(line))
        .map(|line| line.strip_prefix(".BR ").unwrap_or(line))
        .filter(|line| line.starts_with('-'))
        .flat_map(|line| line.split(|letter: char| !is_part(letter)))
        .filter(|word| word.strip_prefix("--").is_some_and(|name| !name.is_empty()))
        .collect()
}
