//! Asking a tool to compare two commands.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use toll_stats::Welch;

use super::{Answer, LEVEL, Tool};
use crate::process::{command, output};
use crate::toll::{Toll, parse, remove_store};

/// Both tools, and where they may write.
pub(super) struct Tools {
    pub(super) toll: Toll,
    pub(super) hyperfine: PathBuf,
}

/// What a tool told.
pub(super) struct Told {
    pub(super) answer: Answer,
    pub(super) p: Option<f64>,
    pub(super) ratio: f64,
    pub(super) wall_s: f64,
}

impl Tools {
    /// Has two commands compared.
    ///
    /// # Errors
    /// If the tool fails, or tells something else than expected.
    pub(super) fn compare(&self, tool: Tool, commands: [&str; 2]) -> Result<Told, String> {
        match tool {
            Tool::Toll => self.toll(commands),
            Tool::Hyperfine => self.hyperfine(commands),
        }
    }

    fn toll(&self, commands: [&str; 2]) -> Result<Told, String> {
        let begin = Instant::now();
        let store = self.toll.kept.join("runs.sqlite");
        let mut child = self.toll.command(&store);
        child.args([
            "run",
            "-q",
            "--no-html",
            "--json",
            "-n",
            "first",
            "-n",
            "second",
        ]);
        let text = output(child.args(commands))?;
        let wall_s = begin.elapsed().as_secs_f64();
        remove_store(&store);
        let document = parse(&text)?;
        let comparison = &document["runs"][0]["analysis"]["comparisons"][0];
        let answer = match comparison["relation"].as_str() {
            Some("worse") => Answer::Longer,
            Some("better") => Answer::Shorter,
            Some(_) => Answer::None,
            None => return Err("cannot read what toll tells: it compared nothing".into()),
        };
        Ok(Told {
            answer,
            p: None,
            ratio: comparison["ratio"]["value"].as_f64().unwrap_or(f64::NAN),
            wall_s,
        })
    }

    fn hyperfine(&self, commands: [&str; 2]) -> Result<Told, String> {
        let begin = Instant::now();
        let times = self.toll.kept.join("times.json");
        let mut child = command(&self.hyperfine);
        child
            .args(["--shell=none", "--style=none", "--export-json"])
            .arg(&times);
        output(child.args(commands))?;
        let wall_s = begin.elapsed().as_secs_f64();
        let text = std::fs::read_to_string(&times)
            .map_err(|error| format!("cannot read hyperfine's times: {error}"))?;
        let document = parse(&text)?;
        let times_of = |index: usize| -> Result<Vec<f64>, String> {
            let runs = document["results"][index]["measurements"].as_array();
            let seconds = |run: &Value| run["time_wall_clock"]["value"].as_f64();
            let times = runs.map(|runs| runs.iter().filter_map(seconds).collect::<Vec<_>>());
            times.filter(|times| times.len() > 1).ok_or_else(|| {
                "cannot read hyperfine's times: there are too few; give hyperfine 2.0 or newer"
                    .to_owned()
            })
        };
        let (first, second) = (times_of(0)?, times_of(1)?);
        // As hyperfine's script `welch_ttest.py` compares what hyperfine exported.
        let p = Welch::new(&first, &second).p(0.0);
        let ratio = toll_stats::mean(&second) / toll_stats::mean(&first);
        Ok(Told {
            answer: answer_of(p, ratio),
            p: Some(p),
            ratio,
            wall_s,
        })
    }

    /// What a tool says of itself.
    pub(super) fn versions(&self) -> Vec<String> {
        let version = |program: &Path| output(command(program).arg("--version"));
        [&self.toll.program, &self.hyperfine]
            .map(|program| version(program).unwrap_or_else(|reason| reason))
            .into()
    }
}

/// What Welch's test says.
pub(super) fn answer_of(p: f64, ratio: f64) -> Answer {
    match (p < LEVEL, ratio > 1.0) {
        (false, _) => Answer::None,
        (true, true) => Answer::Longer,
        (true, false) => Answer::Shorter,
    }
}
