//! Errors in experiment files.

use super::near::suggestion;
use super::problem::Problem;

/// What is wrong with an experiment file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The file, or the name of a built-in experiment.
    pub origin: String,
    /// Line, from 1, if known.
    pub line: Option<usize>,
    /// `cannot X: why; what to do`.
    pub message: String,
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.origin, self.message),
            None => write!(f, "{}: {}", self.origin, self.message),
        }
    }
}

impl std::error::Error for SpecError {}

/// A text with its name, which turns byte offsets into line numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl SourceText<'_> {
    pub fn error(&self, offset: Option<usize>, message: impl Into<String>) -> SpecError {
        let line = offset.map(|offset| {
            let before = &self.text.as_bytes()[..offset.min(self.text.len())];
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        });
        SpecError {
            origin: self.origin.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// Reports a problem at the line of the word that shows it. The word is looked for in the
    /// statement that begins at an offset or, without an offset, anywhere.
    pub fn problem(&self, statement: Option<usize>, problem: Problem) -> SpecError {
        let rest = &self.text[statement.unwrap_or_default()..];
        // The next statement begins with a line in brackets.
        let end = statement.and_then(|_| Some(1 + rest.get(1..)?.find("\n[")?));
        let searched = &rest[..end.unwrap_or(rest.len())];
        let at = problem.mention.and_then(|word| {
            // The value is given where the word is quoted; of several such places, the last one
            // counts.
            let quoted = ['"', '\''].map(|quote| format!("{quote}{word}{quote}"));
            let mut quoted = quoted.iter().filter_map(|quoted| searched.rfind(quoted));
            quoted.next().or_else(|| searched.find(&word))
        });
        let offset = at.map(|at| statement.unwrap_or_default() + at);
        self.error(offset.or(statement), problem.message)
    }

    pub fn toml_error(&self, error: &toml::de::Error) -> SpecError {
        let message = error.message();
        // Errors of this program's own readers have this form already.
        let message = if message.starts_with("cannot ") {
            message.to_owned()
        } else {
            format!("cannot read it: {message}")
        };
        let offset = error.span().map(|span| span.start);
        let Some((word, known)) = unknown_word(&message) else {
            return self.error(offset, message);
        };
        let near = suggestion(word, known);
        // serde may report an unknown key at the line of the whole statement.
        let mention = Some(format!("{word} ="));
        let message = format!("{message}{near}");
        self.problem(offset, Problem { message, mention })
    }
}

/// Returns the key or word that serde does not know, and the words that it does know.
fn unknown_word(message: &str) -> Option<(&str, Vec<&str>)> {
    if !message.contains("unknown field") && !message.contains("unknown variant") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}
