//! Reports and comparisons of many samples, and a list of many runs.

use std::path::{Path, PathBuf};

use super::program::Toll;
use super::{Answer, QUESTIONS, Question, SAMPLES};

/// Treatments of [`many`], the twin among them, and its blocks: 200 trials.
const TRIALS: u64 = 5 * 40;

/// Runs in the store that is listed.
pub(super) const RUNS_LISTED: usize = 50;

fn many(iterations: u64) -> String {
    format!(
        "format = 1\n\
         name = 'many-samples'\n\
         title = 'Many samples'\n\
         question = 'How long do a report and a comparison of so many samples take?'\n\
         metric = 'duration_per_call_ns'\n\
         [workload]\n\
         kind = 'crossing'\n\
         calls = 10\n\
         [[factor]]\n\
         name = 'operation'\n\
         levels = ['user-call', 'vdso', 'clock-syscall', 'empty-syscall']\n\
         [run]\n\
         iterations = {iterations}\n\
         min_blocks = 40\n\
         max_blocks = 40\n\
         [[claim]]\n\
         id = 'vdso'\n\
         text = 'a clock read through the vDSO costs less than one by a system call'\n\
         of = {{ operation = 'vdso' }}\n\
         to = {{ operation = 'clock-syscall' }}\n\
         direction = 'less'\n"
    )
}

/// A store for each of [`SAMPLES`], with two runs of so many samples.
pub(super) fn stores(
    toll: &Toll,
    directory: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<(u64, PathBuf)>, String> {
    let make = |samples: u64| {
        tell(&format!("two runs of {samples} samples"));
        let store = directory.join(format!("{samples}.sqlite"));
        let file = directory.join("many.toml");
        std::fs::write(&file, many(samples / TRIALS))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        for seed in ["1", "2"] {
            let file = file.to_string_lossy();
            toll.run(&store, &["run", "-q", "--no-html", "--seed", seed, &file])?;
        }
        Ok((samples, store))
    };
    SAMPLES.into_iter().map(make).collect()
}

/// A store of [`RUNS_LISTED`] small runs.
pub(super) fn store_of_runs(toll: &Toll, directory: &Path) -> Result<PathBuf, String> {
    let store = directory.join("runs.sqlite");
    for _ in 0..RUNS_LISTED {
        toll.run(&store, &["run", "-q", "--no-html", "-N", "-r", "6", "true"])?;
    }
    Ok(store)
}

/// Asks one question of one store.
pub(super) fn answer(
    toll: &Toll,
    question: Question,
    (samples, store): &(u64, PathBuf),
) -> Result<Answer, String> {
    let line: &[&str] = match question {
        Question::Show => &["show", "1"],
        Question::Report => &["report", "1", "--html", "report.html"],
        Question::Compare => &["compare", "1", "2"],
    };
    let took = toll.run(store, line)?;
    Ok(Answer {
        question,
        samples: *samples,
        wall_ns: took.wall_ns,
        max_rss_bytes: took.max_rss_bytes,
    })
}

/// Every question to every store.
pub(super) fn all_questions(stores: &[(u64, PathBuf)]) -> Vec<(Question, (u64, PathBuf))> {
    let ask = |question| stores.iter().map(move |store| (question, store.clone()));
    QUESTIONS.into_iter().flat_map(ask).collect()
}
