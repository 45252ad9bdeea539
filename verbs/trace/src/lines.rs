//! Formats system calls and signals for the list.

use toll_calls::model::{ListedCall, ListedSignal};
use toll_core::format;
use toll_document::{Document, Paint};

/// Indent of a call's continuation lines, in columns.
const INDENT: usize = 4;

/// Formats one call: when it began, its arguments, what it returned, and how long it took under
/// trace.
pub fn of_call(call: &ListedCall, has_thread: bool) -> String {
    let mut line = begin(has_thread.then_some(call.thread), call.begin_ns);
    let arguments = call.arguments.join(", ");
    line.push_str(&format!("{}(", call.name));
    match call.returned {
        Some(returned) => line.push_str(&format!("{arguments}) = {returned}")),
        None => line.push_str(&format!("{} never returned", arguments.trim_end())),
    }
    if let Some(duration_ns) = call.duration_ns {
        line.push_str(&format!(" <{}>", format::duration_ns(duration_ns as f64)));
    }
    line
}

/// Formats one signal: when it came, and its source or its effect.
pub fn of_signal(signal: &ListedSignal, has_thread: bool) -> String {
    let begin = begin(has_thread.then_some(signal.thread), signal.begin_ns);
    let ListedSignal {
        signal, details, ..
    } = signal;
    format!("{begin}--- {signal} {details} ---")
}

/// The time, and the thread if it is shown.
fn begin(thread: Option<u32>, begin_ns: u64) -> String {
    let thread = thread.map_or_else(String::new, |thread| format!("[{thread}] "));
    let (seconds, rest_ns) = (begin_ns / 1_000_000_000, begin_ns % 1_000_000_000);
    format!("{thread}+{seconds}.{:06} s ", rest_ns / 1_000)
}

/// Breaks a line after spaces where possible. All spaces stay, since they may be
/// part of a name or of data that was read. Each character takes one column:
/// strace escapes everything that is not ASCII.
pub fn fold(line: &str, width: usize) -> Document {
    let mut text = Document::default();
    let mut indent = String::new();
    let mut rest = line;
    let mut room = width;
    while let Some((end, _)) = rest.char_indices().nth(room) {
        // `=` stays on the line of the returned value.
        let mut spaces = rest[..end].rmatch_indices(' ');
        let space = spaces.find(|(at, _)| !rest[..*at].ends_with(" ="));
        let end = match space {
            Some((space, _)) if space >= end / 4 => space + 1,
            _ => end,
        };
        text += Document::line(indent + &rest[..end], Paint::Plain);
        indent = " ".repeat(INDENT);
        rest = &rest[end..];
        room = width.saturating_sub(INDENT).max(1);
    }
    text + Document::line(indent + rest, Paint::Plain)
}

#[cfg(test)]
mod tests {
    use toll_document::Style;

    use super::*;

    #[test]
    fn folding_keeps_every_character() {
        let line = "+0.000001 s read(0, \"a  b   c    d\", 32) = 14";
        let folded = |line| fold(line, 24).show(Style::new(false, 24, true));
        let short = folded("short");
        let folded = folded(line);
        let lines: Vec<&str> = folded.lines().collect();
        assert!(lines.len() > 2, "{folded}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 24),
            "{folded}"
        );
        let together: Vec<&str> = lines
            .iter()
            .enumerate()
            .map(|(number, line)| if number == 0 { line } else { &line[INDENT..] })
            .collect();
        assert_eq!(together.concat(), line);
        assert_eq!(short, "short\n");
    }
}
