//! Constraints between factors: `method != byte or size <= 1MiB`.
//!
//! Grammar, from loose to tight: `or`, `and`, `not`, then a comparison (`==`,
//! `!=`, `<`, `<=`, `>`, `>=`, `in [a, b]`) or a parenthesis. A word is a factor
//! or a fixed parameter if one has that name, else a value; quotes make it a
//! value always.

use super::level::Level;

/// A constraint, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    // Lists, so that a long chain is no deep nesting.
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Compare(Term, Operator, Term),
    In(Term, Vec<Term>),
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    text: String,
    is_quoted: bool,
    /// The text as a value, read once for all treatments.
    value: Level,
}

impl Term {
    fn new(text: &str, is_quoted: bool) -> Self {
        Self {
            text: text.to_owned(),
            is_quoted,
            value: Level::new(text),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Term(Term),
    Operator(Operator),
    Punctuation(char),
}

/// Deepest nesting of an expression; it bounds the parser's recursion.
const DEPTH_MAX: usize = 64;

impl Expression {
    /// Parses a constraint.
    ///
    /// # Errors
    /// If the text is no expression of the grammar above.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens =
            tokenize(text).map_err(|why| format!("cannot read constraint {text:?}: {why}"))?;
        let mut parser = Parser {
            tokens: &tokens,
            at: 0,
            depth: 0,
        };
        let node = parser
            .or()
            .and_then(|node| match parser.peek() {
                None => Ok(node),
                Some(token) => Err(format!("{} is left over", describe(token))),
            })
            .map_err(|why| format!("cannot read constraint {text:?}: {why}"))?;
        Ok(Self(node))
    }

    /// Evaluates the constraint; `lookup` gives the level of a factor or the
    /// value of a fixed parameter by name.
    ///
    /// # Errors
    /// If two words without numbers are compared by order.
    pub fn holds<'a>(&'a self, lookup: &dyn Fn(&str) -> Option<&'a Level>) -> Result<bool, String> {
        evaluate(&self.0, lookup)
    }

    /// The first comparison of which no side is known by name, in words. Two
    /// values always compare the same, so one of them is a mistyped name.
    pub fn comparison_without(&self, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
        unknown_comparison(&self.0, is_known)
    }
}

fn unknown_comparison(node: &Node, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
    let known = |term: &Term| !term.is_quoted && is_known(&term.text);
    match node {
        Node::Or(parts) | Node::And(parts) => parts
            .iter()
            .find_map(|part| unknown_comparison(part, is_known)),
        Node::Not(inner) => unknown_comparison(inner, is_known),
        Node::In(term, _) => (!known(term)).then(|| term.text.clone()),
        Node::Compare(left, _, right) => {
            (!known(left) && !known(right)).then(|| format!("{} and {}", left.text, right.text))
        }
    }
}

fn evaluate<'a>(
    node: &'a Node,
    lookup: &dyn Fn(&str) -> Option<&'a Level>,
) -> Result<bool, String> {
    let level = |term: &'a Term| {
        let named = match term.is_quoted {
            true => None,
            false => lookup(&term.text),
        };
        named.unwrap_or(&term.value)
    };
    // The first part that decides, as far as it can be evaluated.
    let any = |parts: &'a [Node], decisive: bool| {
        for part in parts {
            if evaluate(part, lookup)? == decisive {
                return Ok(decisive);
            }
        }
        Ok(!decisive)
    };
    match node {
        Node::Or(parts) => any(parts, true),
        Node::And(parts) => any(parts, false),
        Node::Not(inner) => Ok(!evaluate(inner, lookup)?),
        Node::In(term, list) => {
            let wanted = level(term);
            Ok(list.iter().any(|item| level(item).same(wanted)))
        }
        Node::Compare(left, operator, right) => compare(level(left), *operator, level(right)),
    }
}

fn compare(left: &Level, operator: Operator, right: &Level) -> Result<bool, String> {
    match operator {
        Operator::Equal => return Ok(left.same(right)),
        Operator::NotEqual => return Ok(!left.same(right)),
        _ => {}
    }
    let (Some(a), Some(b)) = (left.number, right.number) else {
        return Err(format!(
            "cannot compare {} with {} by order: both need to be numbers or sizes",
            left.text, right.text
        ));
    };
    Ok(match operator {
        Operator::Less => a < b,
        Operator::LessEqual => a <= b,
        Operator::Greater => a > b,
        Operator::GreaterEqual => a >= b,
        Operator::Equal | Operator::NotEqual => unreachable!("handled above"),
    })
}

fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '%');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(operator) = leading_operator(rest) {
            tokens.push(Token::Operator(operator.0));
            operator.1
        } else if matches!(first, '(' | ')' | '[' | ']' | ',') {
            tokens.push(Token::Punctuation(first));
            1
        } else if first == '\'' || first == '"' {
            let inner = &rest[1..];
            let end = inner.find(first).ok_or("a quote is not closed")?;
            tokens.push(Token::Term(Term::new(&inner[..end], true)));
            end + 2
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Term(Term::new(&rest[..end], false)));
            end
        } else {
            return Err(format!("{first:?} is not understood"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn leading_operator(text: &str) -> Option<(Operator, usize)> {
    [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessEqual),
        (">=", Operator::GreaterEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ]
    .into_iter()
    .find(|(sign, _)| text.starts_with(sign))
    .map(|(sign, operator)| (operator, sign.len()))
}

fn describe(token: &Token) -> String {
    match token {
        Token::Term(term) => format!("{:?}", term.text),
        Token::Operator(operator) => format!("a comparison ({operator:?})"),
        Token::Punctuation(sign) => format!("{sign:?}"),
    }
}

/// A part alone is itself.
fn single(mut parts: Vec<Node>, of_several: fn(Vec<Node>) -> Node) -> Node {
    match parts.len() {
        1 => parts.remove(0),
        _ => of_several(parts),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_it = |term: &Term| !term.is_quoted && term.text == word;
        let found = matches!(self.peek(), Some(Token::Term(term)) if is_it(term));
        self.at += usize::from(found);
        found
    }

    fn take_punctuation(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Punctuation(sign));
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<Node, String> {
        let mut parts = vec![self.and()?];
        while self.take_word("or") {
            parts.push(self.and()?);
        }
        Ok(single(parts, Node::Or))
    }

    fn and(&mut self) -> Result<Node, String> {
        let mut parts = vec![self.not()?];
        while self.take_word("and") {
            parts.push(self.not()?);
        }
        Ok(single(parts, Node::And))
    }

    fn not(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let node = if self.take_word("not") {
            Node::Not(Box::new(self.not()?))
        } else if self.take_punctuation('(') {
            let inner = self.or()?;
            if !self.take_punctuation(')') {
                return Err("a parenthesis is not closed".into());
            }
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
        let Some(Token::Operator(operator)) = self.peek() else {
            return Err("a comparison such as == or <= or in is missing".into());
        };
        let operator = *operator;
        self.at += 1;
        Ok(Node::Compare(left, operator, self.term()?))
    }

    fn term(&mut self) -> Result<Term, String> {
        match self.peek() {
            Some(Token::Term(term)) => {
                let term = term.clone();
                self.at += 1;
                Ok(term)
            }
            Some(other) => Err(format!(
                "{} stands where a name or value should",
                describe(other)
            )),
            None => Err("it ends where a name or value should stand".into()),
        }
    }

    fn list(&mut self) -> Result<Vec<Term>, String> {
        if !self.take_punctuation('[') {
            return Err("in needs a list such as [a, b]".into());
        }
        let mut items = vec![self.term()?];
        while self.take_punctuation(',') {
            items.push(self.term()?);
        }
        if !self.take_punctuation(']') {
            return Err("a list is not closed".into());
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, levels: &[(&str, &str)]) -> Result<bool, String> {
        let expression = Expression::parse(text)?;
        let known: Vec<(&str, Level)> = levels
            .iter()
            .map(|(factor, level)| (*factor, Level::new(level)))
            .collect();
        let find = |name: &str| known.iter().find(|(factor, _)| *factor == name);
        expression.holds(&|name| find(name).map(|(_, level)| level))
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(
            holds("a == 1 or a == 2 and b == 9", &[("a", "1"), ("b", "0")]),
            Ok(true)
        );
        assert_eq!(
            holds("(a == 1 or a == 2) and b == 9", &[("a", "1"), ("b", "0")]),
            Ok(false)
        );
    }

    #[test]
    fn a_chain_may_be_longer_than_the_stack_is_deep() {
        for (word, expected) in [("or", true), ("and", false)] {
            let text = vec!["a == 1"; 100_000].join(&format!(" {word} "));
            let text = format!("{text} {word} a == 2");
            assert_eq!(holds(&text, &[("a", "2")]), Ok(expected));
            let parsed = Expression::parse(&text).unwrap();
            assert_eq!(parsed.comparison_without(&|_| true), None);
        }
    }

    #[test]
    fn sizes_compare_by_bytes_whatever_their_unit() {
        let levels = [("buffer", "64KiB"), ("size", "1M")];
        assert_eq!(holds("buffer <= size", &levels), Ok(true));
        assert_eq!(holds("buffer == 65536", &levels), Ok(true));
        assert_eq!(holds("size < 1000k", &levels), Ok(false));
    }

    #[test]
    fn words_compare_by_equality_and_membership() {
        let levels = [("method", "page-aligned")];
        assert_eq!(holds("method in [page, page-aligned]", &levels), Ok(true));
        assert_eq!(holds("not method == 'page'", &levels), Ok(true));
        assert!(holds("method < page", &levels).is_err());
    }

    #[test]
    fn a_quoted_word_is_never_a_factor() {
        assert_eq!(holds("a == 'b'", &[("a", "b"), ("b", "c")]), Ok(true));
        assert_eq!(holds("a == b", &[("a", "b"), ("b", "c")]), Ok(false));
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
