//! Checks that texts did not become syntax in output.

use std::collections::BTreeSet;

/// Fails on control and direction characters, which neither a terminal nor a reader of lines must
/// get.
#[track_caller]
pub fn check_plain(text: &str, what: &str) {
    let is_bad = |c: &char| {
        *c != '\n' && c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let found = text.chars().find(is_bad);
    assert_eq!(found, None, "{what}: {text:?}");
}

/// Returns the elements and attributes of a text in HTML, SVG or XML.
pub fn markup(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let end = rest
            .find(['>', ' ', '\n', '/'])
            .unwrap_or(rest.len())
            .max(1);
        let element = rest[..end.min(rest.len())].to_owned();
        let mut attribute = String::new();
        let mut quote = None;
        let mut length = end.min(rest.len());
        for c in rest[length..].chars() {
            length += c.len_utf8();
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '>') => break,
                (None, '=') => {
                    found.insert(format!("{element} {}", attribute.trim()));
                    attribute.clear();
                }
                (None, c) if c.is_whitespace() => attribute.clear(),
                (None, c) => attribute.push(c),
            }
        }
        found.insert(element);
        rest = &rest[length..];
    }
    found
}

pub fn check_markdown(text: &str) {
    check_plain(text, "markdown");
    // Every other piece between backquotes is code, in which nothing is interpreted.
    let unescaped = text.replace("\\`", "").replace("<br>", "");
    let bare: String = unescaped.split('`').step_by(2).collect();
    assert!(!bare.contains('<'), "{text}");
    assert!(!bare.replace("\\]", "").contains("]("), "{text}");
    // In cmark-gfm, any backslash before a pipe keeps the pipe in its cell.
    check_rows(&text.replace("\\|", ""));
    for line in text.lines().filter(|line| !line.starts_with('|')) {
        let is_ours = line.is_empty() || line.starts_with("## ") || line.starts_with("> ");
        assert!(is_ours || !line.starts_with(['#', '-', '=']), "{line}");
    }
}

/// Checks that all rows of a table have the same number of cells.
fn check_rows(text: &str) {
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        // A rule in Org has crosses where its columns meet.
        let borders = if line.starts_with("|-") {
            line.matches(['|', '+']).count()
        } else {
            line.matches('|').count()
        };
        assert_eq!(*columns.get_or_insert(borders), borders, "{line}");
    }
}

pub fn check_asciidoc(text: &str) {
    check_plain(text, "asciidoc");
    for line in text.lines() {
        let own = ["== ", "NOTE: ", "[cols=", "|===", "| "];
        let rest = own
            .iter()
            .find_map(|own| line.strip_prefix(own))
            .unwrap_or(line);
        let is_head = line.starts_with("| Verdict | ") || line.starts_with("| treatment | ");
        let means_something = [
            '|', '<', '{', '}', '*', '_', '#', '+', '~', '^', '$', '\\', '\'',
        ];
        // Allows line breaks and numeric character references.
        let bare = rest.trim_end_matches(" +").replace("&#", "&");
        let is_text = !bare.contains(means_something);
        assert!(is_text || is_head || line.starts_with("[cols="), "{line}");
    }
}

pub fn check_org(text: &str) {
    check_plain(text, "org");
    check_rows(text);
    for line in text.lines() {
        let is_ours = ["#+begin_quote", "#+end_quote"].contains(&line);
        assert!(is_ours || !line.starts_with('#'), "{line}");
        assert!(!line.contains("[[") && !line.contains("src_"), "{line}");
    }
}

/// Parses the fields of CSV by RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(
        !is_quoted && record.is_empty() && field.is_empty(),
        "{text}"
    );
    records
}

pub fn check_csv(text: &str) {
    let records = records(text);
    let columns = records[0].len();
    for record in &records {
        assert_eq!(record.len(), columns, "{record:?}");
        for field in record {
            let is_formula = field.starts_with(['=', '@', '\t', '\r'])
                || field.starts_with(['+', '-']) && field.parse::<f64>().is_err();
            assert!(!is_formula, "{field:?}");
        }
    }
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{9b}'),
        "{text:?}"
    );
}

pub fn check_benchstat(text: &str) {
    check_plain(text, "benchstat");
    for line in text.lines() {
        let known = [
            "goos: ",
            "goarch: ",
            "pkg: ",
            "cpu: ",
            "# ",
            "Unit ",
            "BenchmarkPair/",
        ];
        assert!(known.iter().any(|begin| line.starts_with(begin)), "{line}");
    }
    assert_eq!(text.matches("\npkg: ").count(), 1, "{text}");
}

pub fn check_xml(text: &str, known: &BTreeSet<String>) {
    check_plain(text, "junit");
    assert!(!text.contains(['\u{fffe}', '\u{ffff}']), "{text:?}");
    assert!(
        markup(text).is_subset(known),
        "{:?}",
        markup(text).difference(known)
    );
}

/// Fails if a page or plot has an element or attribute that does not occur with plain texts.
#[track_caller]
pub fn check_page(text: &str, known: &BTreeSet<String>) {
    check_plain(&text.replace('\t', " "), "page");
    let found = markup(text);
    let new: Vec<&String> = found.difference(known).collect();
    assert!(new.is_empty(), "{new:?}");
}
