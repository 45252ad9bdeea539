//! The history of measurements of a git repository: lines kept as notes on its commits.

use toll_system::process::{git, git_of_user};

use crate::repository::Repository;
use crate::series::Commit;

/// Name of the notes below `refs/notes/`.
const REF: &str = "toll";

/// A branch along first parents, with the notes on its commits.
pub struct Branch {
    /// The commits, the oldest first.
    pub commits: Vec<Commit>,
    /// Lines of notes, each with the name of its note for messages.
    pub lines: Vec<(String, String)>,
    /// Whether older commits are missing because the clone is shallow.
    pub is_shallow: bool,
}

/// Reads a branch with its notes in one call of git.
pub fn branch(repository: &Repository, tip: &str) -> Result<Branch, String> {
    let tip = repository.find(tip)?.hash;
    let notes = format!("--notes={REF}");
    let words = [
        "log",
        "--no-show-signature",
        "--no-color",
        "--no-patch",
        "--first-parent",
        "--reverse",
        "--no-notes",
        &notes,
        "--format=%x01%H%n%s%n%N",
        &tip,
    ];
    let printed = git(repository.directory(), &words)?;
    let mut branch = Branch {
        commits: Vec::new(),
        lines: Vec::new(),
        is_shallow: repository.is_shallow(),
    };
    for one in printed.split('\x01').skip(1) {
        let mut lines = one.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (hash, subject) = (next(), next());
        // Notes are written by others, and may contain the byte that separates commits.
        if !is_hash(&hash) {
            return Err(format!(
                "cannot read the notes of {tip}: a note has a byte that toll never writes; see git \
                 notes --ref={REF}"
            ));
        }
        let place = format!("the note of {}", hash.get(..12).unwrap_or(&hash));
        let noted = lines.filter(|line| !line.trim().is_empty());
        let noted = noted.map(|line| (place.clone(), line.to_owned()));
        branch.lines.extend(noted);
        branch.commits.push(Commit { hash, subject });
    }
    Ok(branch)
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Adds a line to the note on a commit.
pub fn append(repository: &Repository, commit: &str, line: &str) -> Result<(), String> {
    let directory = repository.directory();
    let reference = format!("--ref={REF}");
    let note = ["notes", &reference, "append", "-m", line, commit];
    // git refuses to commit without a user name, which CI often lacks.
    let unnamed = ["-c", "user.name=toll", "-c", "user.email=toll@localhost"];
    let is_named = git(directory, &["var", "GIT_COMMITTER_IDENT"]).is_ok();
    let before: &[&str] = if is_named { &[] } else { &unnamed };
    git_of_user(directory, &[before, &note].concat()).map(drop)
}
