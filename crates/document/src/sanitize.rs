//! Makes text from outside safe to show.

/// Replaces characters that control a terminal or reorder a line.
///
/// Experiment files, host names and error messages are other people's text. A terminal obeys escape
/// sequences in such text (C0 and C1 controls, DEL), and Unicode's bidirectional controls can make
/// a line read differently from its content ("Trojan Source", Boucher and Anderson 2021). Each such
/// character becomes U+FFFD; line breaks and tabs become a space, since every caller shows one
/// line.
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

/// Whether a character may control a terminal or the layout of a line.
fn is_command(character: char) -> bool {
    let is_bidirectional = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_bidirectional || character.is_control()
}

/// Escapes the characters that [`sanitize`] replaces, in a JSON document. JSON itself requires that
/// only for the C0 controls. Outside of strings, the document has no such characters except line
/// breaks.
pub fn plain_json(text: String) -> String {
    let is_plain = |c: char| c == '\n' || !is_command(c) && !matches!(c, '\u{2028}' | '\u{2029}');
    if text.chars().all(is_plain) {
        return text;
    }
    let mut plain = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if is_plain(character) {
            plain.push(character)
        } else {
            // All these characters are in the Basic Multilingual Plane.
            plain.push_str(&format!("\\u{:04x}", u32::from(character)))
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
