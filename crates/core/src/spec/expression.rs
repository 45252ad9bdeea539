//! Constraints between factors: `method != byte or size <= 1MiB`.
//!
//! Grammar, from loose to tight: `or`, `and`, `not`, then a comparison (`==`,
//! `!=`, `<`, `<=`, `>`, `>=`, `in [a, b]`) or a parenthesis. A word is a factor
//! or a fixed parameter if one has that name, else a value. A quoted word is
//! always a value.

use super::level::Level;

#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Node);

/// The meaning of a word in a constraint.
#[derive(Debug, Clone, Copy)]
pub enum Word<'a> {
    /// A name, with its level.
    Level(&'a Level),
    /// A name whose level is not known.
    Open,
    /// A value.
    Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    // Lists, so that a long chain does not nest deeply.
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    /// Two terms with the sign between them.
    Compare(Term, &'static str, Term),
    In(Term, Vec<Term>),
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    is_quoted: bool,
    /// The text as a value, parsed once for all treatments.
    value: Level,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Term(Term),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// All tokens except words, longer ones first.
const SIGNS: &[&str] = &["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ","];

/// The signs that compare.
const COMPARISONS: &[&str] = SIGNS.split_at(6).0;

/// Deepest nesting of an expression; bounds the parser's recursion.
const DEPTH_MAX: usize = 64;

impl Expression {
    pub fn parse(text: &str) -> Result<Self, String> {
        let parse = || {
            let mut parser = Parser {
                tokens: tokenize(text)?,
                at: 0,
                depth: 0,
            };
            let node = parser.or()?;
            match parser.tokens.get(parser.at) {
                None => Ok(Self(node)),
                Some(token) => Err(format!("{} does not belong there", describe(token))),
            }
        };
        parse().map_err(|why: String| format!("cannot read constraint {text:?}: {why}"))
    }

    /// Evaluates the constraint; `lookup` gives the meaning of a word. Returns `None` if
    /// the result depends on a level that is not known. Fails if two words without numbers
    /// are compared by order.
    pub fn holds<'a>(&'a self, lookup: &dyn Fn(&str) -> Word<'a>) -> Result<Option<bool>, String> {
        evaluate(&self.0, lookup)
    }

    /// Returns, in words, the first comparison in which neither side is a known name. Comparing two
    /// fixed values always gives the same result, so one of them must be a mistyped name.
    pub fn comparison_without(&self, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
        unknown_comparison(&self.0, is_known)
    }
}

fn unknown_comparison(node: &Node, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
    let known = |term: &Term| !term.is_quoted && is_known(&term.value.text);
    match node {
        Node::Or(parts) | Node::And(parts) => parts
            .iter()
            .find_map(|part| unknown_comparison(part, is_known)),
        Node::Not(inner) => unknown_comparison(inner, is_known),
        Node::In(term, _) => (!known(term)).then(|| term.value.text.clone()),
        Node::Compare(left, _, right) => (!known(left) && !known(right))
            .then(|| format!("{} and {}", left.value.text, right.value.text)),
    }
}

fn evaluate<'a>(node: &'a Node, lookup: &dyn Fn(&str) -> Word<'a>) -> Result<Option<bool>, String> {
    let level = |term: &'a Term| {
        if term.is_quoted {
            Some(&term.value)
        } else {
            match lookup(&term.value.text) {
                Word::Level(level) => Some(level),
                Word::Open => None,
                Word::Value => Some(&term.value),
            }
        }
    };
    // Stops at the first part that decides. A part that cannot be evaluated leaves the result open.
    let any = |parts: &'a [Node], decisive: bool| {
        let mut result = Some(!decisive);
        for part in parts {
            match evaluate(part, lookup)? {
                Some(holds) if holds == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    };
    match node {
        Node::Or(parts) => any(parts, true),
        Node::And(parts) => any(parts, false),
        Node::Not(inner) => Ok(evaluate(inner, lookup)?.map(|holds| !holds)),
        Node::In(term, list) => {
            let is_same = |item| Some(level(item)?.same(level(term)?));
            let found: Vec<Option<bool>> = list.iter().map(is_same).collect();
            let is_open = found.contains(&None) && !found.contains(&Some(true));
            Ok((!is_open).then(|| found.contains(&Some(true))))
        }
        Node::Compare(left, sign, right) => match (level(left), level(right)) {
            (Some(left), Some(right)) => compare(left, sign, right).map(Some),
            _ => Ok(None),
        },
    }
}

fn compare(left: &Level, sign: &str, right: &Level) -> Result<bool, String> {
    match (sign, left.number, right.number) {
        ("==", ..) => Ok(left.same(right)),
        ("!=", ..) => Ok(!left.same(right)),
        ("<", Some(a), Some(b)) => Ok(a < b),
        ("<=", Some(a), Some(b)) => Ok(a <= b),
        (">", Some(a), Some(b)) => Ok(a > b),
        (">=", Some(a), Some(b)) => Ok(a >= b),
        _ => Err(format!(
            "cannot compare {} with {} by order: both need to be numbers or sizes",
            left.text, right.text
        )),
    }
}

fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '%');
    let term = |text: &str, is_quoted| {
        let value = Level::new(text);
        Token::Term(Term { is_quoted, value })
    };
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else if first == '\'' || first == '"' {
            let inner = &rest[1..];
            let end = inner.find(first).ok_or("a quote is not closed")?;
            tokens.push(term(&inner[..end], true));
            end + 2
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(term(&rest[..end], false));
            end
        } else {
            return Err(format!("{first:?} is not understood"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn describe(token: &Token) -> String {
    match token {
        Token::Term(term) => format!("{:?}", term.value.text),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn take(&mut self, is_it: impl Fn(&Token) -> bool) -> Option<Token> {
        let token = self
            .tokens
            .get(self.at)
            .filter(|token| is_it(token))
            .cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_it = |term: &Term| !term.is_quoted && term.value.text == word;
        self.take(|token| matches!(token, Token::Term(term) if is_it(term)))
            .is_some()
    }

    fn take_sign(&mut self, signs: &[&str]) -> Option<&'static str> {
        match self.take(|token| matches!(token, Token::Sign(sign) if signs.contains(sign)))? {
            Token::Sign(sign) => Some(sign),
            Token::Term(_) => None,
        }
    }

    fn or(&mut self) -> Result<Node, String> {
        self.chain("or", Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<Node, String> {
        self.chain("and", Self::not, Node::And)
    }

    /// Parses parts with a word between them; a single part is returned unchanged.
    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node, String>,
        of_several: fn(Vec<Node>) -> Node,
    ) -> Result<Node, String> {
        let first = part(self)?;
        if !self.take_word(word) {
            return Ok(first);
        }
        let mut parts = vec![first, part(self)?];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(of_several(parts))
    }

    fn not(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let node = if self.take_word("not") {
            Node::Not(Box::new(self.not()?))
        } else if self.take_sign(&["("]).is_some() {
            let inner = self.or()?;
            self.take_sign(&[")"])
                .ok_or("a parenthesis is not closed")?;
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, String> {
        let left = self.term()?;
        if self.take_word("in") {
            return Ok(Node::In(left, self.list()?));
        }
        let sign = self.take_sign(COMPARISONS);
        let sign = sign.ok_or("a comparison such as == or <= or in is missing")?;
        Ok(Node::Compare(left, sign, self.term()?))
    }

    fn term(&mut self) -> Result<Term, String> {
        match self.take(|token| matches!(token, Token::Term(_))) {
            Some(Token::Term(term)) => Ok(term),
            _ => Err(match self.tokens.get(self.at) {
                Some(other) => {
                    format!("{} is where a name or value should be", describe(other))
                }
                None => "it ends where a name or value should be".into(),
            }),
        }
    }

    fn list(&mut self) -> Result<Vec<Term>, String> {
        self.take_sign(&["["])
            .ok_or("`in` needs a list such as [a, b]")?;
        let mut items = vec![self.term()?];
        while self.take_sign(&[","]).is_some() {
            items.push(self.term()?);
        }
        self.take_sign(&["]"]).ok_or("a list is not closed")?;
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, levels: &[(&str, &str)]) -> Result<Option<bool>, String> {
        let expression = Expression::parse(text)?;
        let known: Vec<(&str, Level)> = levels
            .iter()
            .map(|(factor, level)| (*factor, Level::new(level)))
            .collect();
        let find = |name: &str| known.iter().find(|(factor, _)| *factor == name);
        let word = |name: &str| match find(name) {
            Some((_, level)) if level.text == "?" => Word::Open,
            Some((_, level)) => Word::Level(level),
            None => Word::Value,
        };
        expression.holds(&word)
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(
            holds("a == 1 or a == 2 and b == 9", &[("a", "1"), ("b", "0")]),
            Ok(Some(true))
        );
        assert_eq!(
            holds("(a == 1 or a == 2) and b == 9", &[("a", "1"), ("b", "0")]),
            Ok(Some(false))
        );
    }

    #[test]
    fn a_chain_may_be_longer_than_the_stack_is_deep() {
        for (word, expected) in [("or", true), ("and", false)] {
            let text = vec!["a == 1"; 100_000].join(&format!(" {word} "));
            let text = format!("{text} {word} a == 2");
            assert_eq!(holds(&text, &[("a", "2")]), Ok(Some(expected)));
            let parsed = Expression::parse(&text).unwrap();
            assert_eq!(parsed.comparison_without(&|_| true), None);
        }
    }

    #[test]
    fn sizes_compare_by_bytes_whatever_their_unit() {
        let levels = [("buffer", "64KiB"), ("size", "1M")];
        assert_eq!(holds("buffer <= size", &levels), Ok(Some(true)));
        assert_eq!(holds("buffer == 65536", &levels), Ok(Some(true)));
        assert_eq!(holds("size < 1000k", &levels), Ok(Some(false)));
    }

    #[test]
    fn words_compare_by_equality_and_membership() {
        let levels = [("method", "page-aligned")];
        assert_eq!(
            holds("method in [page, page-aligned]", &levels),
            Ok(Some(true))
        );
        assert_eq!(holds("not method == 'page'", &levels), Ok(Some(true)));
        assert!(holds("method < page", &levels).is_err());
    }

    #[test]
    fn what_depends_on_an_unknown_level_is_open_wherever_it_stands() {
        for (text, expected) in [
            ("a < 2", None),
            ("not a == 2", None),
            ("2 in [3, a]", None),
            ("2 in [2, a]", Some(true)),
            ("a in [2, 3]", None),
            ("a == 2 and b == 1", None),
            ("a == 2 and b == 2", Some(false)),
            ("b == 2 and a == 2", Some(false)),
            ("a == 2 or b == 1", Some(true)),
            ("a == 2 or b == 2", None),
        ] {
            let levels = [("a", "?"), ("b", "1")];
            assert_eq!(holds(text, &levels), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_quoted_word_is_never_a_factor() {
        assert_eq!(holds("a == 'b'", &[("a", "b"), ("b", "c")]), Ok(Some(true)));
        assert_eq!(holds("a == b", &[("a", "b"), ("b", "c")]), Ok(Some(false)));
    }

    #[test]
    fn what_is_no_expression_is_refused_with_a_reason() {
        for text in [
            "", "a", "a ==", "== a", "a == b c", "(a == b", "a in b", "a in [b", "a = b", "'x",
            "a == b)", "a == ;",
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.starts_with("cannot read constraint"), "{error}");
        }
        let deep = format!("{}a == b{}", "(".repeat(200), ")".repeat(200));
        assert!(Expression::parse(&deep).unwrap_err().contains("nested"));
    }
}
