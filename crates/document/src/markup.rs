//! Documents in markup languages.

use crate::document::{Block, Document};
use crate::inline::{Inline, Span};
use crate::sanitize::sanitize;
use crate::table::{Column, Row, Table};

/// A markup language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Markdown as GitHub renders it.
    Markdown,
    AsciiDoc,
    /// Emacs' Org mode.
    Org,
}

impl Document {
    /// Renders in a markup language, without figures, which are drawn for a terminal.
    pub fn markup(&self, markup: Markup) -> String {
        let blocks = self.0.iter().filter_map(|block| markup.block(block));
        blocks.collect::<Vec<String>>().join("\n")
    }
}

impl Markup {
    fn block(self, block: &Block) -> Option<String> {
        Some(match block {
            Block::Heading(title) => self.heading(title),
            Block::Text(text) => self.inline(&text.text) + "\n",
            Block::Note(text, _) => self.remark(text),
            Block::Ends([left, right], _) => format!("{} {}\n", self.text(left), self.text(right)),
            Block::Alternatives(documents) => documents.first()?.markup(self),
            Block::Table(table) => self.table(table),
            Block::Figure(_) | Block::Gap => return None,
        })
    }

    fn heading(self, title: &str) -> String {
        let sign = match self {
            Self::Markdown => "##",
            Self::AsciiDoc => "==",
            Self::Org => "*",
        };
        format!("{sign} {}\n", self.text(title))
    }

    fn remark(self, text: &str) -> String {
        let text = self.text(text);
        match self {
            Self::Markdown => format!("> {text}\n"),
            Self::AsciiDoc => format!("NOTE: {text}\n"),
            Self::Org => format!("#+begin_quote\n{text}\n#+end_quote\n"),
        }
    }

    fn inline(self, inline: &Inline) -> String {
        let parts = inline.0.iter().map(|span| match span {
            Span::Text(text) => self.text(text),
            Span::Code(text) => self.code(text),
            Span::Break => self.line_break().to_owned(),
        });
        parts.collect()
    }

    fn table(self, table: &Table) -> String {
        let notes = table.has_notes.then(|| Column::words("note"));
        let columns: Vec<&Column> = table.columns.iter().chain(&notes).collect();
        let titles: Vec<String> = columns.iter().map(|one| self.text(&one.title)).collect();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules = |left: &str, right: &str| -> Vec<String> {
            let rule = |column: &&Column| if column.is_number { right } else { left };
            columns.iter().map(|one| rule(one).to_owned()).collect()
        };
        let rows = table.rows.iter().map(|row| {
            let mut cells: Vec<String> = row.cells.iter().map(|cell| self.inline(cell)).collect();
            cells.resize(table.columns.len(), String::new());
            cells.extend(notes.iter().map(|_| self.notes(row)));
            cells
        });
        match self {
            Self::Markdown => {
                let head = line(&titles) + &line(&rules(":--", "--:"));
                head + &rows.map(|row| line(&row)).collect::<String>()
            }
            Self::AsciiDoc => {
                let cells = |row: Vec<String>| -> String {
                    row.iter().map(|cell| format!("| {cell}\n")).collect()
                };
                let body = rows.map(|row| format!("\n{}", cells(row)));
                format!(
                    "[cols=\"{}\",options=\"header\"]\n|===\n| {}\n{}|===\n",
                    rules("<", ">").join(","),
                    titles.join(" | "),
                    body.collect::<String>()
                )
            }
            Self::Org => {
                let rule = vec!["---"; columns.len()].join("+");
                let body = rows.map(|row| line(&row));
                format!("{}|{rule}|\n{}", line(&titles), body.collect::<String>())
            }
        }
    }

    /// The notes of a row, in a cell.
    fn notes(self, row: &Row) -> String {
        let notes = row.text.iter().chain(&row.below).chain([&row.marks]);
        let notes = notes.filter(|note| !note.is_empty());
        self.inline(&Inline::lines(notes.map(Inline::from)))
    }

    /// Separates lines within a cell.
    fn line_break(self) -> &'static str {
        match self {
            Self::Markdown => "<br>",
            Self::AsciiDoc => " +\n",
            // A row of a table must be one line.
            Self::Org => "; ",
        }
    }

    /// Escapes text, for use in cells as well.
    fn text(self, text: &str) -> String {
        let text = sanitize(text);
        match self {
            Self::Markdown => markdown(&text),
            Self::AsciiDoc => asciidoc(&text),
            Self::Org => org(&text),
        }
    }

    /// Text in a fixed-width font.
    fn code(self, text: &str) -> String {
        match self {
            // A backquote would end the code, and GitHub splits cells even at pipes
            // within code unless they are escaped.
            Self::Markdown => {
                let inside = sanitize(text).replace('`', "'").replace('|', "\\|");
                format!("`{inside}`")
            }
            Self::AsciiDoc => format!("`{}`", self.text(text)),
            // Org has no escapes within code.
            Self::Org if text.contains(['|', '=', '\u{200b}']) || text.trim() != text => {
                self.text(text)
            }
            Self::Org => format!("={}=", sanitize(text)),
        }
    }
}

/// Escapes text for GitHub, which renders HTML and ends a cell at a pipe.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    // At the start of a line, these characters make lists and underline headings.
    if text.starts_with(['-', '+', '=']) {
        escaped.push('\\');
    }
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '$' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            // A mention would notify people, and an address would become a link.
            '@' => escaped.push_str("@\u{200b}"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes characters as numeric references, which AsciiDoc keeps everywhere; most other
/// punctuation is markup somewhere.
fn asciidoc(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = ' ';
    for character in text.chars() {
        let is_plain = match character {
            // AsciiDoc replaces two of these characters in a row, or one before `>`.
            '-' | '.' => before != character,
            _ => {
                !character.is_ascii() || character.is_alphanumeric() || " ,/%?".contains(character)
            }
        };
        if is_plain {
            escaped.push(character)
        } else {
            escaped.push_str(&format!("&#{};", u32::from(character)))
        }
        before = character;
    }
    escaped
}

/// Adds zero-width spaces, which keep characters from being read as markup.
fn org(text: &str) -> String {
    let mut escaped = String::new();
    for (position, character) in text.chars().enumerate() {
        match character {
            '|' => escaped.push_str("\\vert{}"),
            '_' | '^' => {
                escaped.push('\u{200b}');
                escaped.push(character);
            }
            '*' | '/' | '=' | '~' | '+' | '[' | '{' | '<' | '\\' | '$' | '@' => {
                escaped.push(character);
                escaped.push('\u{200b}');
            }
            '#' | '-' | ':' if position == 0 => {
                escaped.push('\u{200b}');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_the_language_stay_text() {
        let text = "a|b *c* <i> &amp; {x}";
        let check = |markup: Markup, expected: &str| assert_eq!(markup.text(text), expected);
        check(Markup::Markdown, "a\\|b \\*c\\* &lt;i&gt; &amp;amp; {x}");
        check(
            Markup::AsciiDoc,
            "a&#124;b &#42;c&#42; &#60;i&#62; &#38;amp&#59; &#123;x&#125;",
        );
        check(
            Markup::Org,
            "a\\vert{}b *\u{200b}c*\u{200b} <\u{200b}i> &amp; {\u{200b}x}",
        );
    }

    #[test]
    fn code_ends_where_it_should() {
        let all = [Markup::Markdown, Markup::AsciiDoc, Markup::Org];
        let code = |text: &str| all.map(|markup| markup.code(text));
        assert_eq!(code("sleep 1"), ["`sleep 1`", "`sleep 1`", "=sleep 1="]);
        assert_eq!(code("a`|"), ["`a'\\|`", "`a&#96;&#124;`", "a`\\vert{}"]);
        assert_eq!(code("a=b")[2], "a=\u{200b}b");
    }
}
