//! Reading and writing the lines of a history, wherever they are.

use std::io::Write;
use std::path::PathBuf;

use toll_system::{Failure, output};
use toll_system::bounded::{open_bounded, read_bounded};

use crate::repository::Repository;
use crate::notes;
use crate::series::{Commit, Line, Series, parse, series};

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A repository, and where its history is kept.
pub struct Place {
    pub repository: Repository,
    /// `None` for notes.
    file: Option<PathBuf>,
}

/// What is known of a branch.
pub struct History {
    pub commits: Vec<Commit>,
    pub lines: Vec<Line>,
    /// Whether older commits are missing because the clone is shallow.
    pub is_shallow: bool,
}

impl Place {
    pub fn new(repository: Repository, file: Option<PathBuf>) -> Self {
        Self { repository, file }
    }

    /// Reads the lines along a branch. Of those that cannot be read it tells.
    pub fn read(&self, tip: &str) -> anyhow::Result<History> {
        let branch = notes::branch(&self.repository, tip).map_err(Failure::Usage)?;
        let texts = match &self.file {
            None => branch.lines,
            Some(file) if !file.exists() => Vec::new(),
            Some(file) => {
                let bytes = open_bounded(file, FILE_BYTES_MAX)
                    .and_then(|opened| read_bounded(opened, FILE_BYTES_MAX))
                    .map_err(|error| output::cannot_read(file, &error))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let name = |(index, line): (usize, &str)| {
                    (format!("{}:{}", file.display(), index + 1), line.to_owned())
                };
                let lines = text.lines().enumerate();
                lines
                    .filter(|(_, line)| !line.trim().is_empty())
                    .map(name)
                    .collect()
            }
        };
        let mut lines = Vec::new();
        for (place, text) in texts {
            match parse(&text) {
                Ok(line) => lines.push(line),
                Err(why) => output::note(&format!("warning: {place} is left out: {why}")),
            }
        }
        Ok(History {
            commits: branch.commits,
            lines,
            is_shallow: branch.is_shallow,
        })
    }

    /// Reads the series of a branch; that there is none is an error.
    pub fn series(&self, tip: &str) -> anyhow::Result<(History, Vec<Series>)> {
        let history = self.read(tip)?;
        let found = series(&history.commits, &history.lines);
        if history.is_shallow {
            output::note(
                "warning: the clone is shallow: records of older commits are left out; git fetch \
                 --unshallow gets them",
            );
        }
        if found.is_empty() {
            let merged = match &self.file {
                Some(_) => "",
                None => {
                    ", or git fetch origin refs/notes/toll:refs/notes/toll gets those of others"
                }
            };
            return Err(Failure::Usage(format!(
                "cannot find a record of {tip} and the commits before it; toll history record \
                 makes one{merged}"
            ))
            .into());
        }
        Ok((history, found))
    }

    /// Adds a line.
    pub fn append(&self, line: &Line) -> anyhow::Result<()> {
        let text = line.text();
        let Some(file) = &self.file else {
            let kept = notes::append(&self.repository, line.commit(), &text);
            return kept.map_err(|why| anyhow::anyhow!("cannot keep the note: {why}"));
        };
        let opened = std::fs::File::options()
            .create(true)
            .append(true)
            .open(file);
        let written = opened.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
    }
}
