//! Looks up the texts of `messages.txt` for each type of message.

const MESSAGES: &str = include_str!("messages.txt");

/// Returns the name of a kind of message, its summary, and what happens if it is lost.
pub(super) fn words(kind: &str) -> Option<[&'static str; 3]> {
    let mut lines = MESSAGES.lines();
    let name = lines.find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
    Some([name, lines.next()?.trim_start(), lines.next()?.trim_start()])
}

#[must_use]
pub fn type_name(number: u8) -> String {
    let words = match number {
        // Every phase has the same name.
        3 => words("3-selecting"),
        number => words(&number.to_string()),
    };
    words.map_or_else(|| format!("type {number}"), |[name, ..]| name.to_owned())
}
