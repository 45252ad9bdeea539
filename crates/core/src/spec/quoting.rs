//! Quotes paths for their place in a command line.

use super::Shell;

/// A construct around a place in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Single,
    Double,
    /// A subshell `(…)` or a command substitution `$(…)`.
    Parentheses,
    /// An expansion `${…}`.
    Parameter,
    Backquotes,
    Comment,
}

/// Tracks the quotes of a command line from its start.
#[derive(Debug)]
pub struct Quotes {
    /// Why quoting is impossible, if the shell has rules of its own.
    foreign_shell: Option<String>,
    /// Whether a shell reads the line; otherwise it is only split into words.
    is_shell: bool,
    within: Vec<Within>,
    /// The last character that was read.
    last: char,
    /// Number of consecutive `<` up to the last character.
    less: usize,
    is_escaped: bool,
    has_here_document: bool,
    has_dollar_quote: bool,
}

impl Quotes {
    /// Starts at the beginning of a line for a shell.
    pub fn new(shell: &Shell) -> Self {
        const LIKE_SH: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];
        let foreign_shell = match shell {
            Shell::Program(program) => {
                let name = program.rsplit('/').next().unwrap_or_default();
                (!LIKE_SH.contains(&name)).then(|| format!("{program} does not quote as sh does"))
            }
            Shell::Auto | Shell::None => None,
        };
        Self {
            foreign_shell,
            // Without a shell's special characters, a line has the same words with and without a
            // shell.
            is_shell: *shell != Shell::None,
            within: Vec::new(),
            last: ' ',
            less: 0,
            is_escaped: false,
            has_here_document: false,
            has_dollar_quote: false,
        }
    }

    /// Reads the next part of the line.
    pub fn pass(&mut self, text: &str) {
        text.chars().for_each(|c| self.pass_one(c));
    }

    fn pass_one(&mut self, c: char) {
        let top = self.within.last().copied();
        if self.is_escaped {
            self.is_escaped = false;
            // An escaped character is part of a word, whatever it is.
            (self.last, self.less) = ('x', 0);
            return;
        }
        match (top, c) {
            (Some(Within::Single), '\'')
            | (Some(Within::Double), '"')
            | (Some(Within::Comment), '\n')
            | (Some(Within::Parentheses), ')')
            | (Some(Within::Parameter), '}')
            | (Some(Within::Backquotes), '`') => {
                self.within.pop();
            }
            (Some(Within::Single | Within::Comment), _) => {}
            (_, '\\') => self.is_escaped = true,
            (Some(Within::Double), _) => self.expansion(c),
            (_, '"') => self.within.push(Within::Double),
            (Some(Within::Parameter), '\'') if self.within.contains(&Within::Double) => {}
            (_, '\'') => {
                self.has_dollar_quote |= self.last == '$';
                self.within.push(Within::Single);
            }
            (_, '#') if self.last.is_whitespace() || ";&|(".contains(self.last) => {
                self.within.push(Within::Comment);
            }
            (_, '(') if self.is_shell => self.within.push(Within::Parentheses),
            _ => self.expansion(c),
        }
        let may_begin = self.is_shell && !matches!(top, Some(Within::Single | Within::Comment));
        match c {
            '<' if may_begin => self.less += 1,
            _ => {
                self.has_here_document |= self.less == 2;
                self.less = 0;
            }
        }
        self.last = c;
    }

    /// Enters an expansion of the shell, which may be within double quotes too.
    fn expansion(&mut self, c: char) {
        let begun = match c {
            '`' => Within::Backquotes,
            '(' if self.last == '$' => Within::Parentheses,
            '{' if self.last == '$' => Within::Parameter,
            _ => return,
        };
        if self.is_shell {
            self.within.push(begun);
        }
    }

    /// Returns a path, quoted so that it stays one word, or a part of one word, at this place.
    ///
    /// # Errors
    /// Fails with the reason if no quoting keeps the path unchanged at this place.
    pub fn quoted(&self, path: &str) -> Result<String, String> {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
        if path.chars().all(is_plain) {
            return Ok(path.to_owned());
        }
        let place = match self.within.last() {
            _ if self.foreign_shell.is_some() => self.foreign_shell.as_deref(),
            _ if self.is_escaped => Some("a backslash precedes it"),
            _ if self.has_here_document => Some("the command has a here-document"),
            _ if self.has_dollar_quote => Some("the command has quotes of the form $'…'"),
            _ if self.within.contains(&Within::Backquotes) => Some("it is in backquotes: use $(…)"),
            _ if self.within.contains(&Within::Parameter) => Some("it is in ${…}"),
            Some(Within::Comment) => Some("it is in a comment"),
            _ => None,
        };
        if let Some(place) = place {
            return Err(format!(
                "its path has characters that cannot be quoted there: {place}"
            ));
        }
        Ok(match self.within.last() {
            Some(Within::Single) => path.replace('\'', r"'\''"),
            Some(Within::Double) => {
                let escape = |c: char| match c {
                    '\\' | '"' | '$' | '`' => format!("\\{c}"),
                    _ => c.to_string(),
                };
                path.chars().map(escape).collect()
            }
            _ => format!("'{}'", path.replace('\'', r"'\''")),
        })
    }
}

/// Returns a command line with each placeholder replaced by a path.
///
/// # Errors
/// If the line cannot hold the path.
pub fn put_path(
    line: &str,
    placeholder: &str,
    path: &str,
    shell: &Shell,
) -> Result<String, String> {
    let cannot = |why: &str| format!("cannot replace {placeholder} in `{line}` by {path}: {why}");
    if line.contains(placeholder) && path.contains('{') {
        return Err(cannot("its path has a brace, which begins a placeholder"));
    }
    let mut quotes = Quotes::new(shell);
    let mut pieces = line.split(placeholder);
    let first = pieces.next().unwrap_or_default();
    let mut whole = first.to_owned();
    quotes.pass(first);
    for piece in pieces {
        let quoted = quotes.quoted(path).map_err(|why| cannot(&why))?;
        quotes.pass(&quoted);
        quotes.pass(piece);
        whole.push_str(&quoted);
        whole.push_str(piece);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "/a b'c\"d$e`f\\g;*(h)!#~i\n&|<>j";

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let put = put_path(line, "{tree}", NASTY, &Shell::Auto).unwrap();
        let words = shlex::split(&put).unwrap();
        assert_eq!(words, [expected.replace("@", NASTY)], "{put}");
    }

    #[test]
    fn a_path_is_one_word_in_quotes_of_any_kind_and_in_none() {
        check("{tree}/x", "@/x");
        check("\"{tree}/x\"", "@/x");
        check("'{tree}/x'", "@/x");
        check("a\"b{tree}\"'c{tree}'{tree}", "ab@c@@");
        check("\\'{tree}", "'@");
    }

    #[test]
    fn a_plain_path_is_put_anywhere_as_it_is() {
        for line in [
            "`x {tree}`",
            "${x:-{tree}}",
            "\\{tree}",
            "cat <<E\n{tree}\nE",
            "# {tree}",
        ] {
            let put = put_path(line, "{tree}", "/a/b-c_1.d", &Shell::Auto).unwrap();
            assert_eq!(put, line.replace("{tree}", "/a/b-c_1.d"));
        }
    }

    #[test]
    fn what_cannot_be_quoted_is_refused_with_the_reason() {
        for (line, reason) in [
            ("`cat {tree}`", "backquotes"),
            ("x=${y:-{tree}}", "${…}"),
            ("\\{tree}", "backslash"),
            ("cat <<E\n{tree}\nE", "here-document"),
            ("x # {tree}", "comment"),
            ("$'a' {tree}", "$'…'"),
        ] {
            let error = put_path(line, "{tree}", NASTY, &Shell::Auto).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let fish = Shell::Program("/usr/bin/fish".into());
        assert!(put_path("{tree}", "{tree}", NASTY, &fish).is_err());
        assert!(put_path("{tree}", "{tree}", "/a{b", &Shell::Auto).is_err());
    }

    #[test]
    fn what_ends_before_the_path_does_not_matter() {
        let same = |line: &str, expected: &str| {
            let put = put_path(line, "{tree}", "/a b", &Shell::Auto).unwrap();
            assert_eq!(put, expected);
        };
        same("echo `date` ${HOME} {tree}", "echo `date` ${HOME} '/a b'");
        same(
            "echo \"$(cat {tree})\" {tree}",
            "echo \"$(cat '/a b')\" '/a b'",
        );
        same("echo \"$(cat \"{tree}\")\"", "echo \"$(cat \"/a b\")\"");
        same("a # it's\n{tree}", "a # it's\n'/a b'");
        same("a#'b {tree}'", "a#'b /a b'");
        same(
            "(cd {tree}) && x <<<y {tree}",
            "(cd '/a b') && x <<<y '/a b'",
        );
    }
}
