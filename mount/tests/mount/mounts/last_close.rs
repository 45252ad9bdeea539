//! The last close wins, whatever file has the name by then. A close never succeeds if
//! its content cannot be found afterwards.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::mounts::common::{
    CACHED, Mounted, REMOTE_CACHED, assert_same, close, each, without_new_processes,
};

/// Opens a file with this content, writes to it, lets others change something, and
/// closes it.
fn each_changed(
    content: &[u8],
    (written, at): (&[u8], u64),
    others: impl Fn(&Mounted),
    check: impl Fn(&Mounted),
) {
    each(CACHED.iter().chain(REMOTE_CACHED), |mounted| {
        fs::write(mounted.behind("f"), content).unwrap();
        let alone = without_new_processes();
        let file = mounted.open("f");
        file.write_all_at(written, at).unwrap();
        others(mounted);
        close(file).unwrap();
        drop(alone);
        check(mounted);
    });
}

/// Gives the file's name at the source to a new file.
fn replace(mounted: &Mounted, content: &[u8]) {
    fs::write(mounted.behind("new"), content).unwrap();
    fs::rename(mounted.behind("new"), mounted.behind("f")).unwrap();
}

fn begins_with_ten_bytes(mounted: &Mounted) {
    let behind = mounted.read_behind("f");
    assert_eq!(
        behind.get(..10),
        Some(&b"ten bytes!"[..]),
        "{:?}",
        mounted.setting
    );
    mounted.assert_read("f", behind);
}

#[test]
fn what_is_closed_last_is_there_though_the_source_replaced_the_empty_file_before() {
    let replace = |mounted: &Mounted| replace(mounted, &[1; 40 << 10]);
    each_changed(b"", (b"ten bytes!", 0), replace, |mounted| {
        begins_with_ten_bytes(mounted);
        if mounted.setting.mode == "whole" {
            assert_eq!(mounted.read_behind("f").len(), 10);
        }
    });
}

#[test]
fn what_is_closed_last_is_there_though_another_mount_replaced_the_empty_file_before() {
    each(CACHED.iter().chain(REMOTE_CACHED), |mounted| {
        let place = tempfile::tempdir().unwrap();
        let other = Mounted::existing(&mounted.source, place.path(), &CACHED[0]);
        File::create(mounted.behind("f")).unwrap();
        let alone = without_new_processes();
        let first = mounted.open("f");
        first.write_all_at(b"ten bytes!", 0).unwrap();
        let second = other.open("f");
        second.write_all_at(&[1; 40 << 10], 0).unwrap();
        close(second).unwrap();
        mounted.assert_behind("f", [1; 40 << 10]);
        close(first).unwrap();
        drop(alone);
        begins_with_ten_bytes(mounted);
        begins_with_ten_bytes(&other);
    });
}

#[test]
fn a_part_that_is_closed_last_is_there_though_the_source_replaced_the_large_file_before() {
    let replace = |mounted: &Mounted| replace(mounted, &vec![2; 2 << 20]);
    each_changed(
        &vec![1; 2 << 20],
        (b"ten bytes!", 1 << 20),
        replace,
        |mounted| {
            // In mode `whole`, all content is this file's. In mode `blocks`, the ranges
            // that it has not written are the other file's.
            let rest = if mounted.setting.mode == "whole" {
                1
            } else {
                2
            };
            let mut expected = vec![rest; 2 << 20];
            expected[1 << 20..][..10].copy_from_slice(b"ten bytes!");
            mounted.assert_behind("f", expected);
        },
    );
}

#[test]
fn a_file_with_two_names_is_not_written_through_what_had_its_name_before() {
    // The file that has the name by now can only be written in place.
    let replace = |mounted: &Mounted| {
        fs::write(mounted.behind("g"), [2; 100]).unwrap();
        fs::remove_file(mounted.behind("f")).unwrap();
        fs::hard_link(mounted.behind("g"), mounted.behind("f")).unwrap();
    };
    each_changed(
        &[1; 100],
        (b"ten bytes!", 0),
        replace,
        begins_with_ten_bytes,
    );
}

#[test]
fn a_name_that_the_source_removed_is_there_again_after_the_last_close() {
    for size in [10, 40 << 10] {
        let remove = |mounted: &Mounted| fs::remove_file(mounted.behind("f")).unwrap();
        let written = vec![3; size];
        each_changed(b"", (&written, 0), remove, |mounted| {
            assert_same(&mounted.read_behind("f"), &written, &size.to_string());
        });
    }
}
