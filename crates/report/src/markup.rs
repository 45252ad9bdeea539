//! Markup languages of documents: headings, remarks and tables.

use toll_document::{Column, sanitize};

/// A markup language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// Markdown as GitHub renders it.
    Markdown,
    AsciiDoc,
    /// Emacs' Org mode.
    Org,
}

impl Markup {
    /// A heading of a section.
    pub fn heading(self, title: &str) -> String {
        let sign = match self {
            Self::Markdown => "##",
            Self::AsciiDoc => "==",
            Self::Org => "*",
        };
        format!("{sign} {}\n", self.text(title))
    }

    /// A highlighted remark.
    pub fn remark(self, text: &str) -> String {
        let text = self.text(text);
        match self {
            Self::Markdown => format!("> {text}\n"),
            Self::AsciiDoc => format!("NOTE: {text}\n"),
            Self::Org => format!("#+begin_quote\n{text}\n#+end_quote\n"),
        }
    }

    /// A table. The cells are marked up already, the titles are not.
    pub fn table(self, columns: &[Column], rows: &[Vec<String>]) -> String {
        let titles: Vec<String> = columns.iter().map(|one| self.text(&one.title)).collect();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules = |left: &str, right: &str| -> Vec<String> {
            let rule = |column: &Column| if column.is_number { right } else { left };
            columns.iter().map(|one| rule(one).to_owned()).collect()
        };
        let body = rows.iter().map(|row| line(row));
        match self {
            Self::Markdown => {
                let head = line(&titles) + &line(&rules(":--", "--:"));
                head + &body.collect::<String>()
            }
            Self::AsciiDoc => {
                let cells = |row: &[String]| -> String {
                    row.iter().map(|cell| format!("| {cell}\n")).collect()
                };
                let body = rows.iter().map(|row| format!("\n{}", cells(row)));
                format!(
                    "[cols=\"{}\",options=\"header\"]\n|===\n| {}\n{}|===\n",
                    rules("<", ">").join(","),
                    titles.join(" | "),
                    body.collect::<String>()
                )
            }
            Self::Org => {
                let rule = vec!["---"; columns.len()].join("+");
                format!("{}|{rule}|\n{}", line(&titles), body.collect::<String>())
            }
        }
    }

    /// Separates lines within a cell.
    pub fn line_break(self) -> &'static str {
        match self {
            Self::Markdown => "<br>",
            Self::AsciiDoc => " +\n",
            // A row of a table must be one line.
            Self::Org => "; ",
        }
    }

    /// Escapes text, for use in cells as well.
    pub fn text(self, text: &str) -> String {
        let text = sanitize(text);
        match self {
            Self::Markdown => markdown(&text),
            Self::AsciiDoc => asciidoc(&text),
            Self::Org => org(&text),
        }
    }

    /// Text in a fixed-width font.
    pub fn code(self, text: &str) -> String {
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
