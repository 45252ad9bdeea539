//! POSIX rules for calls on names and attributes, as tables of calls and outcomes
//! (`tables/`) in the style of `pjdfstest`. Each table also runs in a directory without a
//! mount: a line that fails there is itself wrong.

mod calls;

use std::path::Path;

use crate::mounts::common::{SETTINGS, each, set_mode};
pub use calls::truncate;
use calls::{Line, perform};

/// Runs the lines of a table in an empty directory. Returns the lines with an unexpected
/// outcome, and the number of lines.
fn run(table: &str, directory: &Path) -> (Vec<String>, usize) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for text in table.lines().map(str::trim) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        count += 1;
        let line = Line::parse(text);
        let found = perform(&line, directory);
        if !line.is_met_by(&found) {
            wrong.push(format!("{text}: {found}"));
        }
    }
    (wrong, count)
}

fn check(table: &str) {
    let plain = tempfile::tempdir().unwrap();
    set_mode(plain.path(), 0o755);
    let (wrong, count) = run(table, plain.path());
    assert!(wrong.is_empty() && count > 0, "without a mount: {wrong:#?}");
    each(&SETTINGS, |mounted| {
        let (wrong, _) = run(table, &mounted.at);
        assert!(wrong.is_empty(), "in {:?}: {wrong:#?}", mounted.setting);
    });
}

macro_rules! tables {
    ($($test:ident: $table:literal;)*) => {$(
        #[test]
        fn $test() {
            check(include_str!(concat!("tables/", $table, ".txt")));
        }
    )*};
}

tables! {
    mkdir_and_rmdir_do_what_posix_says: "directories";
    open_does_what_posix_says: "open";
    unlink_does_what_posix_says: "unlink";
    link_does_what_posix_says: "link";
    symlink_does_what_posix_says: "symlink";
    rename_does_what_posix_says: "rename";
    rename_with_flags_does_what_linux_says: "rename_flags";
    mknod_does_what_posix_says: "nodes";
    long_and_strange_names_do_what_posix_says: "strange";
    truncate_does_what_posix_says: "truncate";
    chmod_does_what_posix_says: "chmod";
    chown_does_what_posix_says: "chown";
    access_by_others_does_what_posix_says: "access";
    sticky_directories_do_what_posix_says: "sticky";
    set_group_id_directories_do_what_linux_says: "set_group_id";
    writing_takes_set_user_id_away_as_posix_says: "set_user_id";
    utimensat_does_what_posix_says: "utimensat";
    changes_of_times_are_what_posix_says: "changes";
}
