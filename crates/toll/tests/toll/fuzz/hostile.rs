//! Hostile texts: whatever they contain for make, a shell, git, ssh, a path, a terminal or a page,
//! they stay plain texts.
//!
//! Each test feeds one entry point with such texts. All entry points are listed here:
//!
//! | text | test |
//! |---|---|
//! | values of options, words of a command line, names of files and directories there | `command_line` |
//! | documents, tables and experiment files | `documents` |
//! | kernels: definitions, images, patches, modules, fragments, releases | `kernels` |
//! | commits, branches, submissions, nodes of a cluster, servers, sessions, traced files | `outside` |

mod checks;
mod command_line;
mod documents;
mod kernels;
mod outside;
mod text;

use std::path::{Path, PathBuf};

use toll_testing::{Arguments, Bench, Ran};

use self::checks::check_plain;
use self::text::{CANARY, OBEYED};
use crate::fuzz::drive::{self, Case};

/// Prepares a directory for commands, with a file that an obeyed text could remove.
fn place() -> Bench {
    let bench = Bench::new();
    bench.write(CANARY, CANARY);
    bench
}

/// Feeds random texts to an entry point, and checks after each whether it was obeyed.
fn feed(entry: &str, cases: u64, bench: &Bench, check: impl Fn(&str, &mut Case)) {
    let before = obeyed_above(bench);
    drive::fuzz(
        &format!("hostile-{entry}"),
        cases,
        text::make,
        |text, case| {
            check(text, case);
            check_inert(bench);
            assert_eq!(obeyed_above(bench), before);
        },
    );
}

/// Runs `toll`, which must end by itself and print nothing that a terminal would obey.
#[track_caller]
fn ran<A: Arguments + ?Sized>(bench: &Bench, arguments: &A) -> Ran {
    let ran = bench.run(arguments);
    check_ran(&ran);
    ran
}

#[track_caller]
fn check_ran(ran: &Ran) {
    // These are the exit statuses that the manual page lists.
    let is_known = ran.code.is_some_and(|code| (0..=6).contains(&code));
    assert!(is_known && !ran.stderr.contains("panicked"), "{ran:#?}");
    check_plain(&ran.stdout, "standard output");
    check_plain(&ran.stderr, "standard error");
}

#[track_caller]
fn ok<A: Arguments + ?Sized>(bench: &Bench, arguments: &A) -> Ran {
    let ran = ran(bench, arguments);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran
}

/// Fails if a text was obeyed or led out of the directory.
#[track_caller]
fn check_inert(bench: &Bench) {
    assert_eq!(obeyed_below(&bench.path("")), None);
    assert_eq!(bench.read(CANARY), CANARY);
}

/// Returns files of obeyed texts in the directories above, which a path could lead to.
fn obeyed_above(bench: &Bench) -> Vec<PathBuf> {
    let root = bench.path("");
    root.ancestors().skip(1).filter_map(obeyed_in).collect()
}

fn entries(directory: &Path) -> impl Iterator<Item = std::fs::DirEntry> {
    std::fs::read_dir(directory).into_iter().flatten().flatten()
}

fn obeyed_in(directory: &Path) -> Option<PathBuf> {
    let is_obeyed = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(OBEYED)
    };
    entries(directory).map(|entry| entry.path()).find(is_obeyed)
}

fn obeyed_below(directory: &Path) -> Option<PathBuf> {
    let below = entries(directory).filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir()));
    obeyed_in(directory).or_else(|| {
        below
            .map(|one| one.path())
            .find_map(|one| obeyed_below(&one))
    })
}
