//! The list of calls and signals. The list is written while the command runs, so that memory does
//! not limit its length.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::anyhow;
use serde::Serialize;
use toll_calls::assembly::Event;
use toll_calls::model::{ListedCall, ListedSignal};
use toll_document::{Document, Paint, Style, plain_json};
use toll_system::output;

use crate::lines;

/// Output of the calls one by one, followed by the summary.
pub struct CallList {
    to: Box<dyn Write>,
    /// Whether calls are written as elements of a list in the JSON document of the summary.
    is_json: bool,
    folds: bool,
    style: Style,
    is_empty: bool,
    /// The thread that made the first call.
    first_thread: Option<u32>,
    /// Whether a second thread was seen: from then on, each line names its thread.
    has_threads: bool,
    /// The first error of a write. After it, nothing more is written.
    broken: Option<io::Error>,
}

impl CallList {
    /// Begins a list in a file (`-`: standard output), or on standard error.
    pub fn begin(to: Option<&Path>, is_json: bool) -> anyhow::Result<Self> {
        let style = output::style_aside(to);
        let (to, folds): (Box<dyn Write>, bool) = match to {
            None => (Box::new(io::stderr()), output::is_bounded(&io::stderr())),
            Some(path) if path.as_os_str() == "-" => {
                (Box::new(io::stdout()), output::is_bounded(&io::stdout()))
            }
            Some(path) => (Box::new(BufWriter::new(output::create_file(path)?)), false),
        };
        let mut list = Self {
            to,
            is_json,
            folds,
            style,
            is_empty: true,
            first_thread: None,
            has_threads: false,
            broken: None,
        };
        if is_json {
            list.write("{\n  \"call_list\": [");
        }
        Ok(list)
    }

    /// Adds the call and the signal of an event, if there are any.
    pub fn add(&mut self, event: &Event) {
        if let Some(call) = ListedCall::from_event(event) {
            self.add_one(call.thread, &call, |has_threads| {
                lines::of_call(&call, has_threads)
            });
        }
        if let Some(signal) = ListedSignal::from_event(event) {
            self.add_one(signal.thread, &signal, |has_threads| {
                lines::of_signal(&signal, has_threads)
            });
        }
    }

    fn add_one(&mut self, thread: u32, one: &impl Serialize, line: impl FnOnce(bool) -> String) {
        let first = *self.first_thread.get_or_insert(thread);
        self.has_threads |= thread != first;
        if !self.is_json {
            let line = line(self.has_threads);
            let shown = if self.folds {
                lines::fold(&line, self.style.width)
            } else {
                Document::line(line, Paint::Plain)
            };
            return self.write(&shown.show(self.style));
        }
        let comma = if self.is_empty { "" } else { "," };
        self.is_empty = false;
        match serde_json::to_string(one) {
            Ok(line) => self.write(&format!("{comma}\n    {}", plain_json(line))),
            Err(error) => self.broken = Some(error.into()),
        }
    }

    /// Ends the list, and writes the text of the summary after it. Returns the first error of a
    /// write. A closed pipe is not an error.
    pub fn finish(mut self, summary: &str) -> anyhow::Result<()> {
        match summary.strip_prefix('{') {
            Some(members) if self.is_json => self.write(&format!("\n  ],{members}")),
            _ => self.write(&format!("\n{summary}")),
        }
        let flushed = self.to.flush().err();
        match self.broken.or(flushed) {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(anyhow!("cannot write the list of calls: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// Writes text. An error ends the list, not the command.
    fn write(&mut self, text: &str) {
        if self.broken.is_none() {
            self.broken = self.to.write_all(text.as_bytes()).err();
        }
    }
}
