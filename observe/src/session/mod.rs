//! Converts a terminal session recorded by `script` to the text that was on the screen.

mod history;
mod row;
mod screen;
mod script;
mod terminal;
mod timing;

use serde::Serialize;

use script::Part;
use terminal::Terminal;
use timing::Step;

pub use history::{AlternateScreen, Line, Title};
pub use screen::{COLUMNS_MAX, LINES_MAX};
pub use timing::Timing;

/// Number of columns that programs assume if the size is unknown.
const COLUMNS_DEFAULT: usize = 80;
const LINES_DEFAULT: usize = 24;

/// Overrides the recording's terminal size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub columns: Option<usize>,
    pub lines: Option<usize>,
}

#[derive(Debug, Serialize)]
pub struct Session {
    /// Version of this document: 1.
    pub version: u32,
    /// The recordings in the file. There is one, unless `script -a` has appended
    /// others.
    pub recordings: Vec<Recording>,
}

#[derive(Debug, Serialize)]
pub struct Recording {
    pub started: Option<String>,
    pub ended: Option<String>,
    /// The recorded command; `None` for a plain shell.
    pub command: Option<String>,
    pub terminal: Option<String>,
    /// The terminal that `script` ran on.
    pub tty: Option<String>,
    pub exit_status: Option<i32>,
    pub screen_columns: usize,
    pub screen_lines: usize,
    /// Whether the size was not recorded, so that the size of old terminals is assumed.
    pub is_size_assumed: bool,
    pub lines: Vec<Line>,
    pub titles: Vec<Title>,
    /// Last contents of editors and pagers, which are not in the text.
    pub alternate_screens: Vec<AlternateScreen>,
    pub invalid_bytes: u64,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    pub titles: bool,
    /// The last content of each alternate screen.
    pub alternate_screens: bool,
}

/// Converts a recording to text.
///
/// The timing, if there is one, belongs to the file's first recording, as in
/// `scriptreplay`. Time and memory grow with the length of the file.
#[must_use]
pub fn clean(file: &[u8], timing: Option<&Timing>, settings: Settings) -> Session {
    let parts = script::split(file);
    let recordings = parts.iter().enumerate().map(|(index, part)| {
        let timing = timing.filter(|_| index == 0);
        clean_part(part, timing, settings)
    });
    let mut recordings: Vec<Recording> = recordings.collect();
    if timing.is_some() && recordings.len() > 1 {
        let note = "the timing belongs to the first recording of the file";
        recordings[0].notes.push(note.into());
    }
    Session {
        version: 1,
        recordings,
    }
}

fn clean_part(part: &Part, timing: Option<&Timing>, settings: Settings) -> Recording {
    let says = part.header.map(script::read).unwrap_or_default();
    let ending = part.footer.map(script::read).unwrap_or_default();
    let fact = |name| timing.and_then(|timing| timing.number(name));
    // A recorded size of 0 means that the size is unknown.
    let known = |size: Option<usize>| size.filter(|size| *size > 0);
    let columns = settings.columns.or(known(says.columns.or(fact("COLUMNS"))));
    let lines = settings.lines.or(known(says.lines.or(fact("LINES"))));
    let screen_columns = columns.unwrap_or(COLUMNS_DEFAULT).clamp(1, COLUMNS_MAX);
    let screen_lines = lines.unwrap_or(LINES_DEFAULT).clamp(1, LINES_MAX);
    let mut notes = Vec::new();
    let has_feeds = part.body.contains(&b'\n');
    let feeds_to_begin = has_feeds && !part.body.windows(2).any(|pair| pair == b"\r\n");
    if feeds_to_begin {
        notes.push(
            "no line ends in a carriage return, so this is not what a terminal received; each \
             line feed is assumed to begin a line"
                .into(),
        );
    }
    let mut terminal = Terminal::new(screen_columns, screen_lines, feeds_to_begin);
    match timing {
        Some(timing) => replay(&mut terminal, part.body, timing, &mut notes),
        None => terminal.feed(part.body),
    }
    let finished = terminal.finish();
    if finished.is_cut {
        notes.push("the recording ends within a control sequence, which is not shown".into());
    }
    Recording {
        started: says.time,
        ended: ending.time,
        command: says.command,
        terminal: says.terminal,
        tty: says.tty,
        exit_status: ending.exit_status,
        screen_columns,
        screen_lines,
        is_size_assumed: columns.is_none() || lines.is_none(),
        lines: finished.history.lines,
        titles: finished.history.titles,
        alternate_screens: finished.history.alternate_screens,
        invalid_bytes: finished.invalid_bytes,
        notes,
    }
}

/// Feeds the output to the terminal, each part with the time when it was written.
fn replay(terminal: &mut Terminal, body: &[u8], timing: &Timing, notes: &mut Vec<String>) {
    let is_mixed = timing.is_mixed();
    let mut rest = body;
    let mut is_short = false;
    for (now_ns, step) in &timing.steps {
        let mut take = |count: usize| {
            let (bytes, behind) = rest.split_at(count.min(rest.len()));
            is_short |= bytes.len() < count;
            rest = behind;
            bytes
        };
        terminal.set_time(*now_ns);
        match step {
            Step::Output(count) => terminal.feed(take(*count)),
            // Skips typed input. If the input was echoed, the output contains it.
            Step::Input(count) if is_mixed => {
                take(*count);
            }
            Step::Input(_) => {}
            Step::Resize { columns, lines } => terminal.resize(*columns, *lines),
        }
    }
    if is_short {
        notes.push("the timing covers more bytes than were recorded".into());
    }
    if !rest.is_empty() {
        notes.push(format!(
            "the timing does not cover the last {} bytes",
            rest.len()
        ));
        terminal.feed(rest);
    }
}

impl Session {
    /// Returns the text: UTF-8 whose only control character is the line feed that ends
    /// each line.
    #[must_use]
    pub fn text(&self, shown: Shown) -> String {
        let mut text = String::new();
        for recording in &self.recordings {
            recording.append_to(&mut text, shown);
        }
        text
    }
}

impl Recording {
    fn append_to(&self, text: &mut String, shown: Shown) {
        let titles: &[Title] = if shown.titles { &self.titles } else { &[] };
        let screens: &[AlternateScreen] = if shown.alternate_screens {
            &self.alternate_screens
        } else {
            &[]
        };
        let mut titles = titles.iter().peekable();
        let mut screens = screens.iter().peekable();
        // Events at a last line without text come after all lines.
        for index in 0..=self.lines.len() {
            let is_last = index == self.lines.len();
            while let Some(title) = titles.next_if(|title| is_last || title.line <= index) {
                text.push_str(&format!("[title: {}]\n", title.text));
            }
            while let Some(screen) = screens.next_if(|screen| is_last || screen.line <= index) {
                text.push_str("[alternate screen:]\n");
                for line in &screen.text {
                    text.push_str(line);
                    text.push('\n');
                }
                text.push_str("[end of the alternate screen]\n");
            }
            if let Some(line) = self.lines.get(index) {
                text.push_str(&line.text);
                text.push('\n');
            }
        }
    }
}
