//! Reads statements of an experiment file, so that errors name their lines.

use toml::Spanned;

use super::SpecError;
use super::error::SourceText;
use super::problem::Problem;

/// Reads the statements of a file.
pub(super) struct Reader<'a> {
    pub source: SourceText<'a>,
}

impl Reader<'_> {
    /// Reads one statement; an error gets its line.
    pub fn at<T, R, E: Into<Problem>>(
        &self,
        spanned: Spanned<T>,
        read: impl FnOnce(T) -> Result<R, E>,
    ) -> Result<R, SpecError> {
        let offset = spanned.span().start;
        let read = read(spanned.into_inner());
        read.map_err(|problem| self.source.problem(Some(offset), problem.into()))
    }

    /// Reads all statements of one kind.
    pub fn each<T, R>(
        &self,
        list: Vec<Spanned<T>>,
        read: impl Fn(T) -> Result<R, Problem>,
    ) -> Result<Vec<R>, SpecError> {
        list.into_iter().map(|item| self.at(item, &read)).collect()
    }
}
