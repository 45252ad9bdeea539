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
            Block::Ends([left, right], _) => self.text(&format!("{left} {right}")) + "\n",
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
        let lines = inline.0.split(|span| matches!(span, Span::Break));
        let lines = lines.map(|spans| self.line(spans));
        lines.collect::<Vec<String>>().join(self.line_break())
    }

    /// A text on one line.
    fn text(self, text: &str) -> String {
        self.line(&[Span::Text(text.to_owned())])
    }

    fn line(self, spans: &[Span]) -> String {
        let mut line = String::new();
        for span in spans {
            match span {
                Span::Text(text) => self.escape(text, &mut line),
                Span::Code(text) => self.code(text, &mut line),
                Span::Break => {}
            }
        }
        self.start(line.trim_start())
    }

    fn table(self, table: &Table) -> String {
        let has_notes = table.rows.iter().any(|row| notes(row).next().is_some());
        let note = has_notes.then(|| Column::words("note"));
        let columns: Vec<&Column> = table.columns.iter().chain(&note).collect();
        let titles: Vec<String> = columns.iter().map(|one| self.text(&one.title)).collect();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules = |left: &str, right: &str| -> Vec<String> {
            let rule = |column: &&Column| if column.is_number { right } else { left };
            columns.iter().map(|one| rule(one).to_owned()).collect()
        };
        let rows = table.rows.iter().map(|row| {
            let mut cells: Vec<String> = row.cells.iter().map(|cell| self.inline(cell)).collect();
            cells.resize(table.columns.len(), String::new());
            let note = || self.inline(&Inline::lines(notes(row).map(Inline::from)));
            cells.extend(has_notes.then(note));
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

    /// Separates lines within a cell.
    fn line_break(self) -> &'static str {
        match self {
            Self::Markdown => "<br>",
            Self::AsciiDoc => " +\n",
            // A row of a table must be one line.
            Self::Org => "; ",
        }
    }

    /// Keeps an escaped line from beginning a list, a title, a comment or another block. The start
    /// of a cell is treated like that of a line, for Org evaluates a cell that begins with `=`.
    fn start(self, line: &str) -> String {
        let signs: &[char] = match self {
            Self::Markdown => &['-', '+', '='],
            Self::AsciiDoc => &['-', '.', '/', '•'],
            Self::Org => &['#', '-', ':', '%', '=', '!'],
        };
        let number = list_number(line);
        // Org has keywords in capitals, and users add their own. After `COMMENT` at the start of a
        // heading, all below it is hidden.
        let capitals = line.bytes().take_while(u8::is_ascii_uppercase).count();
        let is_keyword = self == Self::Org && capitals >= 4;
        if number.is_none() && !is_keyword && !line.starts_with(signs) {
            return line.to_owned();
        }
        match self {
            Self::Markdown => {
                let (number, rest) = line.split_at(number.unwrap_or(0));
                format!("{number}\\{rest}")
            }
            Self::AsciiDoc => {
                let mut rest = line.chars();
                let first = rest.next().map(reference).unwrap_or_default();
                first + rest.as_str()
            }
            Self::Org => format!("\u{200b}{line}"),
        }
    }

    /// Adds text to a line, escaped for use in cells as well.
    fn escape(self, text: &str, line: &mut String) {
        let text = sanitize(text);
        match self {
            Self::Markdown => markdown(&text, line),
            Self::AsciiDoc => asciidoc(&text, line),
            Self::Org => org(&text, line),
        }
    }

    /// Adds text in a fixed-width font to a line.
    fn code(self, text: &str, line: &mut String) {
        // Signs with nothing between them would be text.
        if text.is_empty() {
            return;
        }
        match self {
            // A backquote would end the code, and GitHub splits cells even at pipes
            // within code unless they are escaped.
            Self::Markdown => {
                let inside = sanitize(text).replace('`', "'").replace('|', "\\|");
                line.push_str(&format!("`{inside}`"));
            }
            // A space beside a sign keeps it from being one.
            Self::AsciiDoc | Self::Org if text.trim() != text => self.escape(text, line),
            Self::AsciiDoc => {
                line.push('`');
                self.escape(text, line);
                line.push('`');
            }
            // Org has no escapes within code.
            Self::Org if text.contains(['|', '~', '\u{200b}']) => self.escape(text, line),
            // Org could read a cell in `=` as a formula.
            Self::Org => line.push_str(&format!("~{}~", sanitize(text))),
        }
    }
}

fn notes(row: &Row) -> impl Iterator<Item = &String> {
    let notes = row.text.iter().chain(&row.below).chain([&row.marks]);
    notes.filter(|note| !note.is_empty())
}

/// The length of a number or letter at the start of a line that would begin a list: `1. x`, `a) x`.
fn list_number(line: &str) -> Option<usize> {
    let length = line.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (number, rest) = line.split_at(length);
    let is_number = length == 1 || number.bytes().all(|digit| digit.is_ascii_digit());
    let rest = rest.strip_prefix(['.', ')'])?;
    let is_marked = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (is_number && is_marked).then_some(length)
}

/// Escapes text for GitHub, which renders HTML and ends a cell at a pipe.
fn markdown(text: &str, line: &mut String) {
    for character in text.chars() {
        match character {
            '&' => line.push_str("&amp;"),
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '$' | '!' => {
                line.push('\\');
                line.push(character);
            }
            // A mention would notify people, and an address would become a link.
            '@' => line.push_str("@\u{200b}"),
            other => line.push(other),
        }
    }
}

/// Writes characters as numeric references, which AsciiDoc keeps everywhere; most other
/// punctuation is markup somewhere.
fn asciidoc(text: &str, line: &mut String) {
    for character in text.chars() {
        let is_plain = match character {
            // AsciiDoc replaces two of these characters in a row, or one before `>`.
            '-' | '.' => !line.ends_with(character),
            _ => {
                !character.is_ascii() || character.is_alphanumeric() || " ,/%?".contains(character)
            }
        };
        if is_plain {
            line.push(character);
        } else {
            line.push_str(&reference(character));
        }
    }
}

fn reference(character: char) -> String {
    format!("&#{};", u32::from(character))
}

/// Adds zero-width spaces, which keep characters from being read as markup.
fn org(text: &str, line: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '|' => line.push_str("\\vert{}"),
            '$' => line.push_str("\\dollar{}"),
            '_' | '^' => {
                line.push('\u{200b}');
                line.push(character);
            }
            '*' | '/' | '=' | '~' | '+' | '[' | '{' | '<' | '\\' | '@' => {
                line.push(character);
                line.push('\u{200b}');
            }
            // `elisp:x` would be a link, and `:x:` a tag of a heading. A time has digits.
            ':' => {
                let ends_word = characters.peek() == Some(&' ');
                let is_time = line.ends_with(|before: char| before.is_ascii_digit());
                if !ends_word && !is_time {
                    line.push('\u{200b}');
                }
                line.push(':');
            }
            other => line.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{ends, heading, notes, paragraph, table};
    use crate::style::Paint;

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

    /// Text that would begin a block, and its escaped forms in Markdown, AsciiDoc and Org.
    const STARTS: [(&str, [&str; 3]); 31] = [
        (".title", [".title", "&#46;title", ".title"]),
        (". item", ["\\. item", "&#46; item", "\u{200b}. item"]),
        (
            "// remark",
            ["// remark", "&#47;/ remark", "/\u{200b}/\u{200b} remark"],
        ),
        (
            "////",
            ["////", "&#47;///", "/\u{200b}/\u{200b}/\u{200b}/\u{200b}"],
        ),
        ("- item", ["\\- item", "&#45; item", "\u{200b}- item"]),
        ("  - item", ["\\- item", "&#45; item", "\u{200b}- item"]),
        ("---", ["\\---", "&#45;&#45;-", "\u{200b}---"]),
        ("* item", ["\\* item", "&#42; item", "*\u{200b} item"]),
        ("+ item", ["\\+ item", "&#43; item", "+\u{200b} item"]),
        ("• item", ["• item", "&#8226; item", "• item"]),
        ("1. item", ["1\\. item", "&#49;. item", "\u{200b}1. item"]),
        (
            "12) item",
            ["12\\) item", "12&#41; item", "\u{200b}12) item"],
        ),
        ("a. item", ["a\\. item", "&#97;. item", "\u{200b}a. item"]),
        ("1.", ["1\\.", "&#49;.", "\u{200b}1."]),
        (
            "= title",
            ["\\= title", "&#61; title", "\u{200b}=\u{200b} title"],
        ),
        (
            "===",
            [
                "\\===",
                "&#61;&#61;&#61;",
                "\u{200b}=\u{200b}=\u{200b}=\u{200b}",
            ],
        ),
        ("# title", ["\\# title", "&#35; title", "\u{200b}# title"]),
        (
            "#+x: y",
            ["\\#+x: y", "&#35;&#43;x&#58; y", "\u{200b}#+\u{200b}x: y"],
        ),
        ("| cell", ["\\| cell", "&#124; cell", "\\vert{} cell"]),
        (
            ":name: x",
            [":name: x", "&#58;name&#58; x", "\u{200b}:name: x"],
        ),
        ("[x]", ["\\[x\\]", "&#91;x&#93;", "[\u{200b}x]"]),
        ("> quote", ["&gt; quote", "&#62; quote", "> quote"]),
        (
            "~~~",
            [
                "\\~\\~\\~",
                "&#126;&#126;&#126;",
                "~\u{200b}~\u{200b}~\u{200b}",
            ],
        ),
        ("```", ["\\`\\`\\`", "&#96;&#96;&#96;", "```"]),
        ("    code", ["code", "code", "code"]),
        ("\tcode", ["code", "code", "code"]),
        ("%%(x)", ["%%(x)", "%%&#40;x&#41;", "\u{200b}%%(x)"]),
        ("COMMENT x", ["COMMENT x", "COMMENT x", "\u{200b}COMMENT x"]),
        ("CLOCK: x", ["CLOCK: x", "CLOCK&#58; x", "\u{200b}CLOCK: x"]),
        // None of these begins a block.
        ("3.21 ms", ["3.21 ms", "3.21 ms", "3.21 ms"]),
        ("Done. Next", ["Done. Next", "Done. Next", "Done. Next"]),
    ];

    #[test]
    fn text_of_others_begins_no_block() {
        for (text, expected) in STARTS {
            let all = [Markup::Markdown, Markup::AsciiDoc, Markup::Org];
            for (markup, start) in all.into_iter().zip(expected) {
                let of = |document: Document| document.markup(markup);
                let plain = |text: Inline| of(paragraph(text, 0, Paint::Plain));
                assert_eq!(plain(text.into()), format!("{start}\n"));
                assert_eq!(plain(Inline::code("") + text), format!("{start}\n"));
                let second = Inline::lines(["x".into(), text.into()]);
                let line_break = markup.line_break();
                assert_eq!(plain(second), format!("x{line_break}{start}\n"));
                let ends = of(ends([text.to_owned(), "right".to_owned()], Paint::Plain));
                assert!(ends.starts_with(start), "{ends}");
                let note = of(notes([text], Paint::Plain));
                let title = of(heading(text));
                let cells = of(table([Column::words(text)], [Row::new([text])]));
                let (note_start, sign) = match markup {
                    Markup::Markdown => ("> ", "##"),
                    Markup::AsciiDoc => ("NOTE: ", "=="),
                    Markup::Org => ("#+begin_quote\n", "*"),
                };
                assert!(
                    note.starts_with(&format!("{note_start}{start}\n")),
                    "{note}"
                );
                assert_eq!(title, format!("{sign} {start}\n"));
                assert_eq!(cells.matches(&format!("| {start}")).count(), 2, "{cells}");
            }
        }
    }

    #[test]
    fn notes_of_rows_have_a_column_if_there_are_any() {
        let markdown = |row: Row| {
            let columns = [Column::words("a"), Column::numbers("b")];
            table(columns, [row, Row::new(["3"])]).markup(Markup::Markdown)
        };
        let plain = Row::new(["1", "2"]);
        assert_eq!(
            markdown(plain),
            "| a | b |\n| :-- | --: |\n| 1 | 2 |\n| 3 |  |\n"
        );
        let noted = Row {
            text: Some("x".into()),
            below: vec!["y".into(), "z".into()],
            ..Row::new(["1", "2"])
        };
        assert_eq!(
            markdown(noted),
            "| a | b | note |\n| :-- | --: | :-- |\n| 1 | 2 | x<br>y<br>z |\n| 3 |  |  |\n"
        );
    }

    #[test]
    fn org_sees_no_link_and_no_tag() {
        let org = |text: &str| Markup::Org.text(text);
        assert_eq!(org("elisp:x 12:30 y: z"), "elisp\u{200b}:x 12:30 y: z");
        assert_eq!(org("title :noexport:"), "title \u{200b}:noexport\u{200b}:");
    }

    #[test]
    fn dashes_of_two_texts_do_not_join_in_asciidoc() {
        let text = Inline::from("a-") + "-b";
        assert_eq!(Markup::AsciiDoc.inline(&text), "a-&#45;b");
    }

    #[test]
    fn code_ends_where_it_should() {
        let all = [Markup::Markdown, Markup::AsciiDoc, Markup::Org];
        let code = |text: &str| all.map(|markup| markup.inline(&Inline::code(text)));
        assert_eq!(code("sleep 1"), ["`sleep 1`", "`sleep 1`", "~sleep 1~"]);
        assert_eq!(code("a`|"), ["`a'\\|`", "`a&#96;&#124;`", "a`\\vert{}"]);
        assert_eq!(code("a~b")[2], "a~\u{200b}b");
        assert_eq!(code("a "), ["`a `", "a ", "a "]);
        assert_eq!(code(""), [""; 3]);
    }
}
