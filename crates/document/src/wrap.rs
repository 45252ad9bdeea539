//! Widths of text in columns of a terminal, and lines of limited width.

use unicode_width::UnicodeWidthStr;

use crate::sanitize::sanitize;

/// Returns the columns that a text takes when it is shown. Characters of double width
/// (East Asian scripts, emoji) count as two, combining marks as none.
pub fn columns(text: &str) -> usize {
    sanitize(text).width()
}

/// Breaks text into lines of at most `width` columns. Breaks a word only if it is
/// longer than a line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    // A non-breaking space keeps a number and its `%` on one line.
    let text = text.replace(" %", "\u{a0}%");
    let words = text.split([' ', '\n', '\r', '\t']);
    for word in words.filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if columns(&line) + gap + columns(word) <= width {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            let wider = format!("{line}{character}");
            if !line.is_empty() && columns(&wider) > width {
                let kept = break_within(&line);
                let rest = line.split_off(kept);
                lines.push(std::mem::replace(&mut line, rest));
            }
            line.push(character);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Where to break a word that is longer than a line: after the last character that joins parts of a
/// name, if this fills at least half of the line.
fn break_within(line: &str) -> usize {
    let joint = line.rfind(['-', '.', '/', '_', '=', ',', ':']);
    match joint {
        Some(joint) if joint + 1 >= line.len() / 2 => joint + 1,
        _ => line.len(),
    }
}

/// Pads to a width in columns, on the right.
pub(crate) fn left(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(padding))
}

/// Pads to a width in columns, on the left.
pub fn right(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(columns(text));
    format!("{}{text}", " ".repeat(padding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_inside_only_where_they_must() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("cat.cold-cache", 12), ["cat.cold-", "cache"]);
        assert_eq!(
            wrap("saves 17 %, or so", 10),
            ["saves", "17\u{a0}%, or", "so"]
        );
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrap("3\u{a0}ms is long", 6), ["3\u{a0}ms", "is", "long"]);
    }
}
