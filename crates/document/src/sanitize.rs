//! Text that came from outside, made safe to show.

/// Replaces what could command a terminal or reorder a line.
///
/// Experiment files, host names and error messages are other people's text. A
/// terminal obeys escape sequences in it (C0 and C1 controls, DEL), and the
/// bidirectional controls of Unicode can make a line read other than it is
/// ("Trojan Source", Boucher and Anderson 2021). Each becomes U+FFFD; line
/// breaks and tabs become a space, since every caller shows one line.
pub fn sanitize(text: &str) -> String {
    text.chars().map(safe).collect()
}

fn safe(character: char) -> char {
    match character {
        '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        other if is_command(other) => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

/// Whether a terminal, or whoever lays out a line, may obey a character.
fn is_command(character: char) -> bool {
    let is_bidirectional = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_bidirectional || character.is_control()
}

/// The same JSON document with such characters escaped. JSON demands that of the
/// C0 controls alone, and outside of strings it has only line breaks of them.
pub fn plain_json(text: String) -> String {
    let is_plain = |c: char| c == '\n' || !is_command(c) && !matches!(c, '\u{2028}' | '\u{2029}');
    if text.chars().all(is_plain) {
        return text;
    }
    let mut plain = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        match is_plain(character) {
            true => plain.push(character),
            // All of them are in the first plane.
            false => plain.push_str(&format!("\\u{:04x}", u32::from(character))),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_line_breaks_do_not_reach_a_terminal() {
        assert_eq!(sanitize("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb c");
    }

    #[test]
    fn json_escapes_what_a_terminal_may_obey() {
        assert_eq!(plain_json("[\"\u{9b}1m\"]\n".into()), "[\"\\u009b1m\"]\n");
    }
}
