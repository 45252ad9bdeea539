//! Reads the lines that `script` writes before and after what it records.

/// One recording in a file. `script -a` puts several recordings into one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The line `Script started on …`, without its line end.
    pub header: Option<&'a [u8]>,
    pub body: &'a [u8],
    /// The line `Script done on …`.
    pub footer: Option<&'a [u8]>,
}

const STARTED: &[u8] = b"Script started on ";
const DONE: &[u8] = b"\nScript done on ";

/// Splits a file into its recordings. Text without a header, such as that of an old
/// `script -q`, is a recording as well.
pub(super) fn split(file: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = file;
    loop {
        let mut part = Part::default();
        if rest.starts_with(STARTED) {
            let (header, behind) = cut_line(rest);
            part.header = Some(header);
            rest = behind;
        }
        let Some((body, footer, behind)) = find_footer(rest) else {
            part.body = rest;
            parts.push(part);
            return parts;
        };
        part.body = body;
        part.footer = Some(footer);
        parts.push(part);
        if behind.is_empty() {
            return parts;
        }
        rest = behind;
    }
}

fn cut_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

/// Finds the line that ends a recording. Returns the text before it, its content, and
/// the text after it. A program in the recording may show the same words. Those end in
/// a carriage return, which the terminal's driver adds, and more follows.
fn find_footer(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let begins = |at: &usize| bytes[*at..].starts_with(DONE);
    (0..bytes.len()).filter(begins).find_map(|at| {
        let (footer, behind) = cut_line(&bytes[at + 1..]);
        let is_last = behind.is_empty() || behind.starts_with(STARTED);
        (is_last && !footer.ends_with(b"\r")).then_some((&bytes[..at], footer, behind))
    })
}

#[derive(Debug, Default)]
pub(super) struct Says {
    /// Time of the recording, in the words of the line.
    pub time: Option<String>,
    pub command: Option<String>,
    pub terminal: Option<String>,
    pub tty: Option<String>,
    pub columns: Option<usize>,
    pub lines: Option<usize>,
    pub exit_status: Option<i32>,
}

/// Reads `Script started on TIME [COMMAND="…" TERM="…" COLUMNS="80" …]`. A command may
/// contain quotes, so the fields after it are searched from the end.
pub(super) fn read(line: &[u8]) -> Says {
    let line = String::from_utf8_lossy(line);
    let Some((_, behind)) = line.trim_end().split_once(" on ") else {
        return Says::default();
    };
    let (time, mut fields) = match behind.split_once(" [") {
        Some((time, fields)) => (time, fields.strip_suffix(']').unwrap_or(fields)),
        None => (behind, ""),
    };
    let mut says = Says {
        time: Some(time.trim().to_owned()).filter(|time| !time.is_empty()),
        ..Says::default()
    };
    if let Some(at) = fields.rfind('<').filter(|_| fields.ends_with('>')) {
        fields = &fields[..at];
    }
    while let Some((before, name, value)) = last_field(fields) {
        let text = Some(value.to_owned());
        match name {
            "LINES" => says.lines = value.parse().ok(),
            "COLUMNS" => says.columns = value.parse().ok(),
            "TTY" => says.tty = text,
            "TERM" => says.terminal = text,
            "COMMAND_EXIT_CODE" => says.exit_status = value.parse().ok(),
            "COMMAND" => says.command = text,
            _ => {}
        }
        fields = before;
    }
    says
}

/// Returns the last `NAME="value"` in a string of fields, and the string before it.
fn last_field(fields: &str) -> Option<(&str, &str, &str)> {
    const BEHIND_COMMAND: [&str; 4] = ["LINES", "COLUMNS", "TTY", "TERM"];
    let inside = fields.trim_end().strip_suffix('"')?;
    let (before, value) = inside.rsplit_once("=\"")?;
    let (before, name) = before.rsplit_once(' ').unwrap_or(("", before));
    // If there is a command, it is the first field.
    match inside.strip_prefix("COMMAND=\"") {
        Some(_) if before.ends_with('"') && BEHIND_COMMAND.contains(&name) => {}
        Some(command) => return Some(("", "COMMAND", command)),
        None => {}
    }
    Some((before, name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let says = read(
            b"Script started on 2026-11-22 09:12:43+00:00 [COMMAND=\"bash -c \"echo b\"\" \
              TERM=\"xterm\" TTY=\"/dev/pts/0\" COLUMNS=\"80\" LINES=\"24\"]",
        );
        assert_eq!(says.time.as_deref(), Some("2026-11-22 09:12:43+00:00"));
        assert_eq!(says.command.as_deref(), Some("bash -c \"echo b\""));
        assert_eq!(says.terminal.as_deref(), Some("xterm"));
        assert_eq!(says.tty.as_deref(), Some("/dev/pts/0"));
        assert_eq!((says.columns, says.lines), (Some(80), Some(24)));
    }

    #[test]
    fn headers_without_a_terminal_and_of_old_are_read() {
        let says = read(
            b"Script started on 2026-11-22 09:12:42+00:00 [COMMAND=\"a=\"1\" b\" \
              <not executed on terminal>]",
        );
        assert_eq!(says.command.as_deref(), Some("a=\"1\" b"));
        assert_eq!(says.columns, None);
        let says = read(b"Script started on Tue 13 Feb 2018 04:05:06 PM UTC");
        assert_eq!(
            says.time.as_deref(),
            Some("Tue 13 Feb 2018 04:05:06 PM UTC")
        );
        let says = read(b"Script done on 2026-11-22 09:12:42+00:00 [COMMAND_EXIT_CODE=\"3\"]");
        assert_eq!(says.exit_status, Some(3));
        assert_eq!(read(b"\xff on [=\"\"\"").command, None);
    }

    #[test]
    fn a_file_of_several_recordings_is_taken_apart() {
        let file = b"Script started on A []\none\r\n\nScript done on B []\n\
                     Script started on C []\ntwo\r\n\nScript done on D []\n";
        let parts = split(file);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].body, b"one\r\n");
        assert_eq!(parts[1].header, Some(&b"Script started on C []"[..]));
        assert_eq!(parts[1].body, b"two\r\n");
    }

    #[test]
    fn a_recording_shown_in_a_recording_does_not_end_it() {
        let file = b"Script started on A\n$ cat typescript\r\nScript started on X\r\nx\r\n\r\n\
                     Script done on Y\r\n$ exit\r\n\nScript done on B\n";
        let parts = split(file);
        assert_eq!(parts.len(), 1);
        assert!(parts[0].body.ends_with(b"$ exit\r\n"));
        assert_eq!(split(b""), [Part::default()]);
        assert_eq!(split(b"plain")[0].body, b"plain");
    }
}
