//! Texts that several rows of a table share, each printed once below it.

/// The texts in the order of their first rows; each is marked with a letter.
pub struct Footnotes(Vec<String>);

impl Footnotes {
    /// Collects the texts that occur more than once.
    pub fn shared<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut shared: Vec<String> = Vec::new();
        for text in texts.clone() {
            let is_known = shared.iter().any(|one| one == text);
            if !is_known
                && texts
                    .clone()
                    .filter(|other| *other == text)
                    .nth(1)
                    .is_some()
            {
                shared.push(text.to_owned());
            }
        }
        Self(shared)
    }

    /// Returns the mark of a text, such as `[a]`; `None` if only one row has the text.
    pub fn mark(&self, text: &str) -> Option<String> {
        let place = self.0.iter().position(|one| one == text)?;
        let letter = char::from(b'a' + u8::try_from(place % 26).unwrap_or(0));
        let round = match place / 26 {
            0 => String::new(),
            round => (round + 1).to_string(),
        };
        Some(format!("[{letter}{round}]"))
    }

    /// Returns one line for each text: `[a] skipped: no such file system`.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.iter();
        lines
            .map(|text| format!("{} {text}", self.mark(text).unwrap_or_default()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_once_gets_no_letter() {
        let notes = Footnotes::shared(["x", "once", "y", "x", "y", "x"].into_iter());
        assert_eq!(notes.mark("x").as_deref(), Some("[a]"));
        assert_eq!(notes.mark("once"), None);
        assert_eq!(notes.lines(), ["[a] x", "[b] y"]);
    }
}
