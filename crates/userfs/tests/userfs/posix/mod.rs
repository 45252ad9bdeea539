//! What POSIX lays down for calls on names and attributes, as tables of calls
//! and outcomes, in the manner of `pjdfstest`. Each table is also run on the
//! directory without a mount: a line that fails there says something wrong.

mod calls;
mod files;
mod names;
mod permissions;
mod times;

use std::path::Path;

use crate::common::{Mounted, SETTINGS, can_mount};
use calls::{Line, perform};

/// Runs the lines of a table in an empty directory. Returns what came out
/// otherwise than it should, and how many lines there were.
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
    if !can_mount() {
        return;
    }
    let plain = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(plain.path(), open).unwrap();
    let (wrong, count) = run(table, plain.path());
    assert!(wrong.is_empty(), "without a mount: {wrong:#?}");
    for setting in &SETTINGS {
        let mounted = Mounted::new(setting);
        let (wrong, _) = run(table, &mounted.at);
        assert!(wrong.is_empty(), "in {setting:?}: {wrong:#?}");
    }
    eprintln!("{count} lines, {} times", SETTINGS.len() + 1);
}

macro_rules! tables {
    ($($test:ident: $table:path;)*) => {
        $(
            #[test]
            fn $test() {
                check($table);
            }
        )*
    };
}

tables! {
    mkdir_and_rmdir_do_what_posix_says: names::DIRECTORIES;
    open_does_what_posix_says: names::OPEN;
    unlink_does_what_posix_says: names::UNLINK;
    link_does_what_posix_says: names::LINK;
    symlink_does_what_posix_says: names::SYMLINK;
    rename_does_what_posix_says: names::RENAME;
    rename_with_flags_does_what_linux_says: names::RENAME_FLAGS;
    mknod_does_what_posix_says: files::NODES;
    long_and_strange_names_do_what_posix_says: files::STRANGE;
    truncate_does_what_posix_says: files::TRUNCATE;
    chmod_does_what_posix_says: permissions::CHMOD;
    chown_does_what_posix_says: permissions::CHOWN;
    access_by_others_does_what_posix_says: permissions::ACCESS;
    sticky_directories_do_what_posix_says: permissions::STICKY;
    set_group_id_directories_do_what_linux_says: permissions::SET_GROUP_ID;
    writing_takes_set_user_id_away_as_posix_says: permissions::SET_USER_ID;
    utimensat_does_what_posix_says: times::UTIMENSAT;
    changes_of_times_are_what_posix_says: times::CHANGES;
}
