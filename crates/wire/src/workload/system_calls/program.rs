//! The language for programs of system calls: one call per line.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use serde::{Deserialize, Serialize};

use super::names::{self, number};

/// A program, parsed from its text. Values and buffers are numbered across all parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Program {
    text: String,
    pub before: Vec<Statement>,
    pub timed: Vec<Statement>,
    pub after: Vec<Statement>,
    /// Number of results that are kept.
    pub values: usize,
    /// Initial content of each buffer.
    pub buffers: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Line number, from 1.
    pub line: usize,
    pub call: Call,
    pub arguments: Vec<Argument>,
    /// Index of the value that keeps the result.
    pub result: Option<usize>,
    /// Number of the error that the call must fail with.
    pub error: Option<i32>,
    /// What the child process that this call creates does before it ends.
    pub child: Option<Vec<Statement>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    System {
        name: String,
        number: i64,
    },
    /// Two arguments that must be equal.
    Assert,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    Number(u64),
    /// The result of an earlier call.
    Value(usize),
    /// The address of a buffer.
    Buffer(usize),
    /// A signed word in a buffer, of 4 or 8 bytes.
    Word {
        buffer: usize,
        place: usize,
        bytes: usize,
    },
    /// The address of a buffer that is filled in before each call.
    Record {
        buffer: usize,
        items: Vec<Item>,
    },
}

/// Bytes of a record that depend on the program's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub offset: usize,
    pub bytes: usize,
    pub content: Argument,
}

/// Largest total size of all buffers, in bytes.
const BUFFER_BYTES_MAX: usize = 16 << 20;

impl From<Program> for String {
    fn from(program: Program) -> Self {
        program.text
    }
}

impl TryFrom<String> for Program {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut reader = Reader::default();
        let lines = text.lines().enumerate();
        for (line, words) in lines.map(|(place, words)| (place + 1, words.trim())) {
            let read = reader.line(line, words);
            read.map_err(|why| format!("cannot read line {line} of the program: {why}"))?;
        }
        reader.finish(text)
    }
}

impl Program {
    /// Returns the names of the program's system calls, in order.
    pub fn names(&self) -> Vec<&str> {
        fn add<'a>(statements: &'a [Statement], names: &mut Vec<&'a str>) {
            for statement in statements {
                if let Call::System { name, .. } = &statement.call {
                    names.push(name);
                }
                add(statement.child.as_deref().unwrap_or_default(), names);
            }
        }
        let mut names = Vec::new();
        for part in [&self.before, &self.timed, &self.after] {
            add(part, &mut names);
        }
        names
    }
}

/// What a name refers to.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Value(usize),
    Buffer(usize),
}

#[derive(Default)]
struct Reader {
    /// Parts that are complete.
    parts: Vec<Vec<Statement>>,
    current: Vec<Statement>,
    /// For each nested child that is being read, outermost first: the statements before it.
    above: Vec<Vec<Statement>>,
    names: BTreeMap<String, Slot>,
    values: usize,
    buffers: Vec<Vec<u8>>,
}

impl Reader {
    fn line(&mut self, line: usize, words: &str) -> Result<(), String> {
        match words {
            "" => Ok(()),
            _ if words.starts_with('#') => Ok(()),
            "---" if !self.above.is_empty() => Err("the child has no closing }".into()),
            "---" => {
                self.parts.push(std::mem::take(&mut self.current));
                Ok(())
            }
            "}" => {
                let outer = self.above.pop().ok_or("this } closes no child")?;
                let child = std::mem::replace(&mut self.current, outer);
                let parent = self.current.last_mut().expect("a call creates each child");
                parent.child = Some(child);
                Ok(())
            }
            _ => self.statement(line, words),
        }
    }

    fn statement(&mut self, line: usize, words: &str) -> Result<(), String> {
        let (words, has_child) = match words.strip_suffix('{') {
            Some(words) => (words, true),
            None => (words, false),
        };
        let (words, error) = match words.rsplit_once("->") {
            Some((words, name)) => (words, Some(error_number(name.trim())?)),
            None => (words, None),
        };
        let (result, words) = match words.split_once(" = ") {
            Some((name, words)) if is_name(name.trim()) => (Some(name.trim()), words),
            _ => (None, words),
        };
        let words = words.trim();
        let (name, rest) = words.split_once(' ').unwrap_or((words, ""));
        let call = match name {
            "assert" => Call::Assert,
            _ => Call::System {
                name: name.to_owned(),
                number: number_of_call(name)?,
            },
        };
        let mut characters = rest.chars().peekable();
        let mut arguments = Vec::new();
        while skip_space(&mut characters) {
            arguments.push(self.argument(&mut characters)?);
        }
        let (count, most) = (arguments.len(), if call == Call::Assert { 2 } else { 6 });
        if count > most || call == Call::Assert && count < most {
            return Err(format!("{name} has {count} arguments; {most} are possible"));
        }
        let result = result.map(|name| self.value(name)).transpose()?;
        self.current.push(Statement {
            line,
            call,
            arguments,
            result,
            error,
            child: None,
        });
        if has_child {
            self.above.push(std::mem::take(&mut self.current));
        }
        Ok(())
    }

    fn argument(&mut self, characters: &mut Peekable<Chars<'_>>) -> Result<Argument, String> {
        match characters.peek() {
            Some('"') => {
                let mut bytes = quoted(characters, '"')?;
                bytes.push(0);
                self.buffer(bytes).map(Argument::Buffer)
            }
            Some('[') => {
                characters.next();
                self.record(characters)
            }
            _ => {
                let word = word(characters);
                self.word(&word)
            }
        }
    }

    /// Reads a number, a constant, a name, `NAME.PLACE`, `NAME.PLACE.8`, `:BYTES` or `NAME:BYTES`.
    fn word(&mut self, word: &str) -> Result<Argument, String> {
        if let Some((name, bytes)) = word.split_once(':') {
            let bytes = usize::try_from(number(bytes)?).unwrap_or(usize::MAX);
            fits(bytes)?;
            let buffer = self.buffer(vec![0; bytes])?;
            if !name.is_empty() {
                self.bind(name, Slot::Buffer(buffer))?;
            }
            return Ok(Argument::Buffer(buffer));
        }
        if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
            return constants(word).map(Argument::Number);
        }
        let (name, place) = match word.split_once('.') {
            Some((name, place)) => (name, Some(place)),
            None => (word, None),
        };
        let slot = self.names.get(name).copied();
        match (slot, place) {
            (None, _) => Err(format!("{name} is not defined above this line")),
            (Some(Slot::Value(value)), None) => Ok(Argument::Value(value)),
            (Some(Slot::Buffer(buffer)), None) => Ok(Argument::Buffer(buffer)),
            (Some(Slot::Value(_)), Some(_)) => Err(format!("{name} is not a buffer")),
            (Some(Slot::Buffer(buffer)), Some(place)) => {
                let (place, bytes) = match place.strip_suffix(".8") {
                    Some(place) => (place, 8),
                    None => (place, 4),
                };
                let place = usize::try_from(number(place)?).unwrap_or(usize::MAX);
                let words = self.buffers[buffer].len() / bytes;
                if place < words {
                    Ok(Argument::Word {
                        buffer,
                        place,
                        bytes,
                    })
                } else {
                    Err(format!("{name} has only {words} words of {bytes} bytes"))
                }
            }
        }
    }

    /// Reads the content of brackets: `ITEM/BYTES`, `'bytes'`, and `:BYTES` for zeros.
    fn record(&mut self, characters: &mut Peekable<Chars<'_>>) -> Result<Argument, String> {
        let mut content: Vec<u8> = Vec::new();
        let mut items = Vec::new();
        loop {
            if !skip_space(characters) {
                return Err("the record has no closing ]".into());
            }
            fits(content.len())?;
            match characters.peek() {
                Some(']') => {
                    characters.next();
                    break;
                }
                Some('\'') => content.extend(quoted(characters, '\'')?),
                Some(':') => {
                    let zeros = word(characters);
                    let zeros = usize::try_from(number(&zeros[1..])?).unwrap_or(usize::MAX);
                    content.resize(content.len() + zeros.min(BUFFER_BYTES_MAX), 0);
                }
                _ => {
                    let argument = self.argument(characters)?;
                    let bytes = width(characters)?;
                    items.push(Item {
                        offset: content.len(),
                        bytes,
                        content: argument,
                    });
                    content.resize(content.len() + bytes, 0);
                }
            }
        }
        let buffer = self.buffer(content)?;
        Ok(Argument::Record { buffer, items })
    }

    fn buffer(&mut self, content: Vec<u8>) -> Result<usize, String> {
        let held: usize = self.buffers.iter().map(Vec::len).sum();
        fits(held + content.len())?;
        self.buffers.push(content);
        Ok(self.buffers.len() - 1)
    }

    /// Returns the index of a named value, which a later call may set again.
    fn value(&mut self, name: &str) -> Result<usize, String> {
        if let Some(Slot::Value(value)) = self.names.get(name) {
            return Ok(*value);
        }
        self.values += 1;
        self.bind(name, Slot::Value(self.values - 1))?;
        Ok(self.values - 1)
    }

    fn bind(&mut self, name: &str, slot: Slot) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("{name:?} is not a name; use lower-case letters"));
        }
        match self.names.insert(name.to_owned(), slot) {
            None => Ok(()),
            Some(_) => Err(format!("the name {name} is defined twice")),
        }
    }

    fn finish(mut self, text: String) -> Result<Program, String> {
        if !self.above.is_empty() {
            return Err("cannot read the program: the child has no closing }".into());
        }
        self.parts.push(self.current);
        let mut parts = self.parts.into_iter();
        let count = parts.len();
        let mut part = || parts.next().unwrap_or_default();
        // A single part is the timed one.
        let before = if count > 1 { part() } else { Vec::new() };
        let program = Program {
            before,
            timed: part(),
            after: part(),
            values: self.values,
            buffers: self.buffers,
            text,
        };
        match count {
            1..=3 => Ok(program),
            _ => Err("cannot read the program: it may have at most three parts".into()),
        }
    }
}

/// Refuses to exceed the limit on the bytes of all buffers together.
fn fits(bytes: usize) -> Result<(), String> {
    if bytes <= BUFFER_BYTES_MAX {
        Ok(())
    } else {
        Err(format!(
            "all buffers together may have at most {BUFFER_BYTES_MAX} bytes"
        ))
    }
}

fn is_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(fits)
}

/// Skips spaces, and returns whether anything follows them.
fn skip_space(characters: &mut Peekable<Chars<'_>>) -> bool {
    while characters.next_if(|c| c.is_whitespace()).is_some() {}
    characters.peek().is_some()
}

fn word(characters: &mut Peekable<Chars<'_>>) -> String {
    let is_part = |c: &char| !c.is_whitespace() && !"]/".contains(*c);
    std::iter::from_fn(|| characters.next_if(is_part)).collect()
}

/// Reads the number of bytes after a slash; 8 if there is no slash.
fn width(characters: &mut Peekable<Chars<'_>>) -> Result<usize, String> {
    if characters.next_if_eq(&'/').is_none() {
        return Ok(8);
    }
    match word(characters).as_str() {
        "1" => Ok(1),
        "2" => Ok(2),
        "4" => Ok(4),
        other => Err(format!("an item has 1, 2, 4 or 8 bytes, not {other:?}")),
    }
}

fn quoted(characters: &mut Peekable<Chars<'_>>, quote: char) -> Result<Vec<u8>, String> {
    characters.next();
    let text: String = std::iter::from_fn(|| characters.next_if(|c| *c != quote)).collect();
    match characters.next() {
        Some(_) => Ok(text.into_bytes()),
        None => Err(format!("a string has no closing {quote}")),
    }
}

/// Accepts the name of a system call, or a number for calls that only some kernels have.
fn number_of_call(name: &str) -> Result<i64, String> {
    let named = names::system_call(name);
    let given = || name.parse().ok().filter(|number| *number >= 0);
    named
        .or_else(given)
        .ok_or_else(|| format!("there is no system call {name}"))
}

/// Parses numbers and constants joined by `|`.
fn constants(words: &str) -> Result<u64, String> {
    let mut each = words.split('|').map(constant);
    each.try_fold(0, |all, one| Ok(all | one?))
}

fn constant(word: &str) -> Result<u64, String> {
    match names::constant(word) {
        Some(value) => Ok(value),
        None => number(word),
    }
}

/// Returns the number of an error (errno(3)). The kernel's largest error number is 4095.
fn error_number(name: &str) -> Result<i32, String> {
    let number = i32::try_from(constant(name)?).ok();
    let known = number.filter(|number| (1..4096).contains(number));
    known.ok_or_else(|| format!("{name} is not an error"))
}

#[cfg(test)]
mod tests;
