//! What is wrong with an experiment.

/// A description of what is wrong, and a word of the file that locates the problem.
pub struct Problem {
    pub message: String,
    pub mention: Option<String>,
}

pub(super) fn problem(mention: &str, message: String) -> Problem {
    Problem {
        message,
        mention: Some(mention.to_owned()),
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self {
            message,
            mention: None,
        }
    }
}
