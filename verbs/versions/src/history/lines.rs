//! Reads and writes the lines of a history, in notes or in a file.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use toll_system::bounded::{open_bounded, read_bounded};
use toll_system::{Failure, kept_files, output};

use crate::notes;
use crate::repository::Repository;
use crate::series::{Commit, Line, Series, parse, series};

/// Size of the largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Names a repository and the place of its history.
#[derive(Debug, Args)]
pub struct PlaceArguments {
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub tree: PathBuf,
    /// Keep records as lines of this file instead of as notes
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PlaceArguments {
    pub fn open(&self) -> anyhow::Result<Place> {
        // No result may overwrite the file, since lines are added to it.
        if let Some(file) = &self.file {
            kept_files::check(file)?;
        }
        let repository = Repository::open(&self.tree).map_err(Failure::Prerequisite)?;
        Ok(Place {
            repository,
            file: self.file.clone(),
        })
    }
}

/// A repository, and the place of its history.
pub struct Place {
    pub repository: Repository,
    /// The file of the history; `None` for notes.
    file: Option<PathBuf>,
}

/// The commits of a branch and their recorded lines.
pub struct History {
    pub commits: Vec<Commit>,
    pub lines: Vec<Line>,
    /// Whether older commits are missing because the clone is shallow.
    pub is_shallow: bool,
}

impl Place {
    /// Reads the lines along a branch. Prints a warning for each line that cannot be read.
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

    /// Reads the series of a branch. A branch without a series is an error.
    pub fn series(&self, tip: &str) -> anyhow::Result<(History, Vec<Series>)> {
        let history = self.read(tip)?;
        let found = series(&history.commits, &history.lines);
        if history.is_shallow {
            output::note(
                "warning: the clone is shallow: records of older commits are left out; git fetch \
                 --unshallow fetches them",
            );
        }
        if found.is_empty() {
            let merged = match &self.file {
                Some(_) => "",
                None => {
                    ", or git fetch origin refs/notes/toll:refs/notes/toll fetches more records"
                }
            };
            return Err(Failure::Usage(format!(
                "cannot find a record of {tip} or an earlier commit; toll history record \
                 makes one{merged}"
            ))
            .into());
        }
        Ok((history, found))
    }

    /// Adds a line to the notes of the line's commit, or to the file.
    pub fn append(&self, line: &Line) -> anyhow::Result<()> {
        let text = line.text();
        let Some(file) = &self.file else {
            let kept = notes::append(&self.repository, line.commit(), &text);
            return kept.map_err(|why| anyhow::anyhow!("cannot add the note: {why}"));
        };
        let opened = std::fs::File::options()
            .create(true)
            .append(true)
            .open(file);
        let written = opened.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
    }
}
