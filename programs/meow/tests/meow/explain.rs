//! What `--explain` prints, from which tests also see which method was used.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Ended, Files, appendable, content, run, skip};

/// Longer than what goes through the buffer at once.
const LONG: usize = 1 << 20;

#[track_caller]
fn explained(ended: &Ended, words: &[&str]) {
    assert!(ended.status.success(), "{}", ended.errors);
    for word in words {
        assert!(ended.errors.contains(word), "{word}: {}", ended.errors);
    }
}

#[test]
fn each_way_is_told_with_its_reason_and_what_it_moved() {
    let files = Files::new();
    files.file("long", &content(LONG));
    files.file("short", &content(1024));
    for (stdin, arguments, parts) in [
        (
            &b""[..],
            &["long"][..],
            &[
                "meow: long (a file) to standard output (a pipe): splice: the pipe takes",
                "; 69632 bytes by read and write in ",
                "; 978944 bytes by splice in ",
            ][..],
        ),
        (
            b"",
            &["short"],
            &[
                "read and write: the file is short",
                "; 1024 bytes by read and write in 2 calls",
            ],
        ),
        (b"", &["--copy", "long"], &["read and write: with --copy"]),
        (
            &content(LONG),
            &[],
            &[
                "meow: - (a pipe) to standard output (a pipe): splice: pages move",
                "; 69632 bytes by read and write in ",
                "; 978944 bytes by splice in ",
            ],
        ),
        (
            b"short\n",
            &[],
            &["read and write: too few bytes came for another method; 6 bytes by read and write"],
        ),
        (
            b"",
            &["-n", "short"],
            &["read and write: the options change what is copied"],
        ),
    ] {
        let ended = files.run_with_pipes(stdin, &[&["--explain"], arguments].concat());
        explained(&ended, parts);
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
        let is_spliced = parts.iter().any(|part| part.contains("splice"));
        assert_eq!(
            ended.errors.contains("splice"),
            is_spliced,
            "{}",
            ended.errors
        );
    }
    let log = appendable(files.path("log"));
    explained(
        &files.run_between(Stdio::null(), &["--explain", "long"], log),
        &["to standard output (a file that is appended to): read and write: the kernel's own"],
    );
}

#[test]
fn a_file_goes_to_a_file_of_another_file_system_inside_the_kernel() {
    let files = Files::new();
    let path = files.file("long", &content(LONG));
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return skip("there is no /dev/shm to write to");
    };
    let there = elsewhere.path().join("copy");
    let sink = File::create(&there).unwrap();
    if sink.metadata().unwrap().dev() == path.metadata().unwrap().dev() {
        return skip("the build is on the file system of /dev/shm");
    }
    explained(
        &files.run_between(Stdio::null(), &["--explain", "long"], sink),
        &["; copy_file_range stopped: Invalid cross-device link; 1048576 bytes by splice in "],
    );
    assert_eq!(std::fs::read(there).unwrap(), content(LONG));
}

#[test]
fn two_files_share_blocks_where_the_file_system_can() {
    let has = |program: &str| {
        let mut places = ["/usr/sbin", "/sbin", "/usr/bin"].iter();
        places.any(|place| Path::new(place).join(program).exists())
    };
    if !rustix::process::geteuid().is_root() {
        return skip("an XFS on a loop device needs root");
    }
    if !has("mkfs.xfs") || !has("filefrag") {
        return skip("mkfs.xfs or filefrag is missing; install xfsprogs and e2fsprogs");
    }
    let files = Files::new();
    files.file("long", &content(LONG));
    // The mount belongs to the namespace and ends with it.
    let mut command = files.meow_under(
        r#"exec unshare -m sh -ec '
            truncate -s 512M image; mkfs.xfs -q image; mkdir mount
            mount -o loop image mount; rm image
            cp long mount/long; cd mount
            "$0" --explain long >copy; cmp long copy
            sync; filefrag -v copy' "$0""#,
    );
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let ended = run(command);
    explained(
        &ended,
        &[
            "copy_file_range: the file system may share",
            "; 1048576 bytes by copy_file_range in 1 call",
        ],
    );
    let extents = String::from_utf8(ended.output).unwrap();
    assert!(extents.contains("shared"), "{extents}");
}
