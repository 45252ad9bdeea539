//! Text that came from outside, made safe to show.

/// Replaces what could command a terminal or reorder a line.
///
/// Experiment files, host names and error messages are other people's text. A
/// terminal obeys escape sequences in it (C0 and C1 controls, DEL), and the
/// bidirectional controls of Unicode can make a line read other than it is
/// ("Trojan Source", Boucher and Anderson 2021). Each becomes U+FFFD; line
/// breaks and tabs become a space, since every caller shows one line.
///
/// ```
/// use toll::report::sanitize::sanitize;
/// assert_eq!(sanitize("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb c");
/// ```
#[must_use]
pub fn sanitize(text: &str) -> String {
    text.chars().map(safe).collect()
}

fn safe(character: char) -> char {
    match character {
        '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}
